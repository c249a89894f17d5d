"""Which nodes a delegate took, and which precision the arithmetic has, from the interpreter's own list of nodes.

`_get_ops_details()` is private, so everything here answers None where it is missing or looks different.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Nodes that do the arithmetic, and which two of their operands multiply (the first of a transposed convolution is a shape).
ARITHMETIC = {
    "CONV_2D": (0, 1),
    "CONV_3D": (0, 1),
    "DEPTHWISE_CONV_2D": (0, 1),
    "FULLY_CONNECTED": (0, 1),
    "BATCH_MATMUL": (0, 1),
    "TRANSPOSE_CONV": (1, 2),
}
DELEGATE = "DELEGATE"
Node = Mapping[str, Any]


def nodes_of(interpreter: Any) -> list[Node] | None:
    """The interpreter's nodes (those that a delegate replaced come first, the delegate's own after), or None.

    Older runtimes leave the operands' types out; then they are taken from the list of tensors.
    """
    try:
        types = {int(detail["index"]): detail["dtype"] for detail in interpreter.get_tensor_details()}
        return [
            {
                "op_name": str(node["op_name"]),
                "inputs": [int(index) for index in node["inputs"]],
                "outputs": [int(index) for index in node["outputs"]],
                "operand_types": node.get("operand_types", [types[int(i)] for i in node["inputs"] if int(i) in types]),
            }
            for node in interpreter._get_ops_details()
        ]
    except Exception:  # private interface: anything may come
        return None


def delegated(nodes: Sequence[Node], delegate: Node) -> set[int]:
    """Positions of the nodes that a delegate replaced: all that lead to its outputs, back to its inputs."""
    producers = {
        int(output): position
        for position, node in enumerate(nodes)
        if node["op_name"] != DELEGATE
        for output in node["outputs"]
    }
    borders = {int(index) for index in delegate["inputs"]}
    pending = [int(index) for index in delegate["outputs"]]
    replaced: set[int] = set()
    while pending:
        index = pending.pop()
        position = producers.get(index)
        if index in borders or position is None or position in replaced:
            continue
        replaced.add(position)
        pending.extend(int(operand) for operand in nodes[position]["inputs"])
    return replaced


def shares(nodes: Sequence[Node], own: int, names: tuple[str, str]) -> dict[str, float] | None:
    """Shares of the file's nodes by who computes them.

    `own` is the number of nodes that the list had before the default delegate was applied: a delegate node before it was
    asked for by the user (`names[0]`), one after it is XNNPACK (`names[1]`). The rest runs in built-in kernels.
    """
    total = sum(1 for node in nodes if node["op_name"] != DELEGATE)
    if total == 0:
        return None
    counts = {names[0]: 0, names[1]: 0}
    for position, node in enumerate(nodes):
        if node["op_name"] == DELEGATE:
            counts[names[0] if position < own else names[1]] += len(delegated(nodes, node))
    counts["builtin"] = total - sum(counts.values())
    return {name: count / total for name, count in counts.items() if count}


def precision_of(nodes: Sequence[Node]) -> str | None:
    """Precision of the arithmetic: int8, fp32, fp16, "mixed" (quantised weights on float inputs, or both kinds)."""
    kinds = set()
    for node in nodes:
        factors = ARITHMETIC.get(node["op_name"])
        types = [np.dtype(kind) for kind in node["operand_types"]]
        if factors is None or len(types) <= max(factors):
            continue
        pair = [types[position] for position in factors]
        whole = [np.issubdtype(kind, np.integer) for kind in pair]
        if all(whole):
            kinds.add("int8")
        elif any(whole):
            kinds.add("mixed")
        else:
            kinds.add("fp16" if np.float16 in pair else "fp32")
    if not kinds:
        floats = {np.dtype(kind).name for node in nodes for kind in node["operand_types"]}
        return "fp32" if "float32" in floats else None
    return kinds.pop() if len(kinds) == 1 else "mixed"
