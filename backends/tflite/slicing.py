"""Share of the time by who computes, measured by cutting the file where one delegate's part ends and another's begins.

The interpreter's own profiler cannot be reached from Python. So copies of the file that end after the first part, the first
two, and so on are run with the same kernels; what a copy takes longer than the one before is the time of its last part. The
parts are taken in the file's order of nodes, which is the interpreter's too unless a delegate moves them.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from backends.base import Array
from backends.tflite.placement import DELEGATE, Node, delegated

MOST_PARTS = 24  # more copies would take longer than the share is worth
RUNS = 21
Make = Callable[[Path], Any]  # an allocated interpreter over this file, with the kernels of the session


@dataclass(frozen=True)
class Part:
    """Nodes in a row that one computes: up to `end`, exclusive, in the file's order."""

    owner: str
    end: int


def parts_of(nodes: Sequence[Node], own: int, names: tuple[str, str]) -> list[Part]:
    """Cut the file's nodes where the owner changes; see `backends.tflite.placement.shares` for `own` and `names`."""
    owners: dict[int, str] = {}
    for position, node in enumerate(nodes):
        if node["op_name"] == DELEGATE:
            for replaced in delegated(nodes, node):
                owners[replaced] = names[0] if position < own else names[1]
    real = [position for position, node in enumerate(nodes) if node["op_name"] != DELEGATE]
    found, end = [], 0
    for owner, run in groupby(owners.get(position, "builtin") for position in real):
        end += sum(1 for _ in run)
        found.append(Part(owner, end))
    return found


def time_shares(
    model: Path, folder: Path, parts: Sequence[Part], make: Make, inputs: Sequence[Array]
) -> dict[str, float] | None:
    """Return shares of the time by owner, writing the copies into `folder`; None where the file cannot be cut.

    `inputs` are those of one real sample.
    """
    if len({part.owner for part in parts}) == 1:
        return {parts[0].owner: 1.0}
    if not parts or len(parts) > MOST_PARTS:
        return None
    spent: Counter[str] = Counter()
    before = 0.0
    copy = folder / "cut.tflite"
    try:
        for part in parts:
            copy.write_bytes(cut(model, part.end))
            lasted = _median_us(make(copy), inputs)
            spent[part.owner] += max(0, round((lasted - before) * 1000))  # a part may be shorter than the clock's noise
            before = max(before, lasted)
    except Exception:  # a file that is built otherwise than most: no shares, the measurement stands
        return None
    total = sum(spent.values())
    return {name: count / total for name, count in spent.most_common() if count} if total else None


def cut(model: Path, end: int) -> bytes:
    """Return the file with its first `end` nodes only; what they hand on to the rest are its outputs."""
    schema = importlib.import_module("ai_edge_litert.schema_py_generated")
    flatbuffers = importlib.import_module("flatbuffers")
    made = schema.ModelT.InitFromPackedBuf(model.read_bytes(), 0)
    if len(made.subgraphs) != 1:
        raise ValueError("a network with branches is not cut")
    graph = made.subgraphs[0]
    kept, rest = graph.operators[:end], graph.operators[end:]
    given = [int(index) for operator in kept for index in operator.outputs]
    wanted = {int(index) for operator in rest for index in operator.inputs} | {int(index) for index in graph.outputs}
    graph.operators = kept
    graph.outputs = [index for index in given if index in wanted]
    made.signatureDefs = None
    builder = flatbuffers.Builder(1024)
    builder.Finish(made.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _median_us(interpreter: Any, inputs: Sequence[Array]) -> float:
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        interpreter.invoke()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e3
