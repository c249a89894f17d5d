"""What the adapters share: shapes, buffers, threads per slot, and how the processor is named."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from backends.base import Array, InferenceFailed, LoadOptions, ModelRejected, OptionUnsupported
from backends.slots import SlotThreads, first_line
from backends.tensors import pin, processor_name, require_counts, write


@pytest.mark.parametrize(
    ("declared", "asked", "expected"),
    [
        (["N", 3, None], None, (1, 3, 1)),
        (["N", 3, -1], (4, 3, 9), (4, 3, 9)),
        ([2, 3], (2, 3), (2, 3)),
        ([], (), ()),
    ],
)
def test_free_sizes_take_what_is_asked_and_are_one_otherwise(
    declared: list, asked: tuple[int, ...] | None, expected: tuple[int, ...]
) -> None:
    assert pin("x", declared, asked) == expected


@pytest.mark.parametrize("asked", [(4, 4), (4,), (4, 3, 1), (0, 3), (-1, 3)])
def test_a_shape_that_does_not_fit_is_refused_with_both_shapes(asked: tuple[int, ...]) -> None:
    with pytest.raises(ModelRejected, match=r"shape \?x3; it cannot take"):
        pin("x", ["N", 3], asked)


@pytest.mark.parametrize("given", [np.zeros((1, 3), np.float32), np.zeros((2, 3), np.float64), np.zeros(3, np.float32)])
def test_writing_never_broadcasts_or_casts(given: Array) -> None:
    with pytest.raises(InferenceFailed, match=r"the model wants float32 \(2, 3\)"):
        write([np.zeros((2, 3), np.float32)], [given])


def test_writing_too_few_inputs_is_refused() -> None:
    with pytest.raises(InferenceFailed, match="takes 2 inputs, 1 were given"):
        write([np.zeros(1), np.zeros(1)], [np.zeros(1)])


@pytest.mark.parametrize("options", [LoadOptions(threads=0), LoadOptions(streams=0), LoadOptions(device_index=-1)])
def test_counts_that_cannot_be_meant_are_refused(options: LoadOptions) -> None:
    with pytest.raises(OptionUnsupported, match="cannot be meant"):
        require_counts(options)


def test_slots_run_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=5)

    def call(slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        meeting.wait()  # raises unless the other slot arrives too
        return [inputs[0] + slot]

    slots = SlotThreads(2, call)
    slots.submit(0, [np.zeros(1)])
    slots.submit(1, [np.zeros(1)])
    assert (slots.wait(1)[0][0], slots.wait(0)[0][0]) == (1, 0)
    slots.close()
    slots.close()


def test_a_failing_call_fails_its_own_wait_and_leaves_the_slot_usable() -> None:
    def call(slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        if not inputs:
            raise ValueError("the runtime's words.\nand its stack")
        return inputs

    slots = SlotThreads(1, call)
    slots.submit(0, [])
    with pytest.raises(InferenceFailed, match=r"failed: the runtime's words\.$"):
        slots.wait(0)
    slots.submit(0, [np.ones(1)])
    assert slots.wait(0)[0][0] == 1
    slots.close()


def test_the_first_that_has_ended_comes_first() -> None:
    gate = threading.Event()

    def call(slot: int, inputs: Sequence[Array]) -> Sequence[Array]:
        if slot == 0:
            assert gate.wait(30)
        return inputs

    slots = SlotThreads(2, call)
    slots.submit(0, [np.zeros(1)])
    for number in range(3):  # a slow slot does not stall the other
        slots.submit(1, [np.full(1, number)])
        assert slots.next_done() == 1
        assert slots.wait(1)[0][0] == number
    gate.set()
    assert slots.next_done() == 0
    slots.wait(0)
    with pytest.raises(InferenceFailed, match="No request"):
        slots.next_done()
    slots.close()


def test_an_end_that_was_waited_for_is_not_told_again() -> None:
    slots = SlotThreads(2, lambda slot, inputs: inputs)
    slots.submit(0, [np.zeros(1)])
    slots.wait(0)
    slots.submit(1, [np.zeros(1)])
    assert slots.next_done() == 1
    slots.wait(1)
    slots.close()


def test_single_stream_starts_no_thread() -> None:
    before = threading.active_count()
    SlotThreads(4, lambda slot, inputs: inputs).close()
    assert threading.active_count() == before


def test_only_the_telling_line_of_a_message_is_kept() -> None:
    assert first_line(RuntimeError("\n  cannot do that. \n at line 7")) == "cannot do that"
    assert first_line(KeyError()) == "KeyError"
    assert len(first_line(RuntimeError("x" * 1000))) == 300


X86 = (
    "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Acme Server 9000\n\nprocessor\t: 1\nmodel name\t: Acme Server 9000\n"
)
PI = "processor\t: 0\nCPU part\t: 0xd0b\n\nRevision\t: d04170\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n"


@pytest.mark.parametrize(("text", "name"), [(X86, "Acme Server 9000"), (PI, "Raspberry Pi 5 Model B Rev 1.0")])
def test_the_processor_is_named_as_the_kernel_names_it(tmp_path: Path, text: str, name: str) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    assert processor_name(path) == name


def test_without_a_kernels_name_there_is_still_one(tmp_path: Path) -> None:
    assert processor_name(tmp_path / "absent")
