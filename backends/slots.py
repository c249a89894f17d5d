"""Requests in flight for runtimes that only offer a blocking call: one thread for each slot, started when first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread

from backends.base import Array, BackendError, InferenceFailed

Call = Callable[[int, Sequence[Array]], Sequence[Array]]
Answer = tuple[Sequence[Array] | None, Exception | None]


class SlotThreads:
    """Runs `call(slot, inputs)` of each slot on that slot's own thread. The call must release the interpreter's lock."""

    def __init__(self, slots: int, call: Call) -> None:
        self._call = call
        self._asked: list[SimpleQueue[Sequence[Array] | None]] = [SimpleQueue() for _ in range(slots)]
        self._answered: list[SimpleQueue[Answer]] = [SimpleQueue() for _ in range(slots)]
        self._done: SimpleQueue[int] = SimpleQueue()
        self._busy = [False] * slots
        self._threads: list[Thread | None] = [None] * slots

    def submit(self, slot: int, inputs: Sequence[Array]) -> None:
        """Start a request. Raises InferenceFailed where the slot's last answer was not waited for."""
        if self._busy[slot]:
            raise InferenceFailed(f"Slot {slot} is still busy.", "Wait for its answer before the next request.")
        if self._threads[slot] is None:
            thread = Thread(target=self._serve, args=(slot,), name=f"slot-{slot}", daemon=True)
            self._threads[slot] = thread
            thread.start()
        self._busy[slot] = True
        self._asked[slot].put(inputs)

    def next_done(self) -> int:
        """Return the slot of a request that has ended, whichever was first. Raises InferenceFailed where none runs."""
        while any(self._busy):
            slot = self._done.get()
            if self._busy[slot]:  # else: somebody has waited for it already
                return slot
        raise InferenceFailed("No request is in flight.")

    def done_within(self, timeout_s: float) -> int | None:
        """Return the slot of a request that has ended; None where none did within so many seconds."""
        try:
            slot = self._done.get(timeout=max(0.0, timeout_s))
        except Empty:
            return None
        return slot if self._busy[slot] else None

    def wait(self, slot: int) -> Sequence[Array]:
        """Return the answer of the slot's request, or raise what the call raised."""
        if not self._busy[slot]:
            raise InferenceFailed(f"Slot {slot} has no request to wait for.")
        outputs, error = self._answered[slot].get()
        self._busy[slot] = False
        if error is not None:
            raise error
        assert outputs is not None
        return outputs

    def close(self) -> None:
        """Let running requests end and stop the threads. Harmless twice."""
        for slot, thread in enumerate(self._threads):
            if thread is not None:
                self._asked[slot].put(None)
                thread.join()
                self._threads[slot] = None

    def _serve(self, slot: int) -> None:
        while (inputs := self._asked[slot].get()) is not None:
            answer: Answer
            try:
                answer = (self._call(slot, inputs), None)
            except BackendError as error:
                answer = (None, error)
            except Exception as error:  # whatever a runtime throws belongs to the thread that waits
                answer = (None, InferenceFailed(f"The request on slot {slot} failed: {first_line(error)}."))
            self._answered[slot].put(answer)
            self._done.put(slot)


class ThreadedSession:
    """The calls for requests in flight of a session whose `prepare` makes the threads."""

    _threads: SlotThreads | None = None

    def submit(self, slot: int, inputs: Sequence[Array]) -> None:
        """Start a request on the slot's own thread."""
        assert self._threads is not None, "prepare() comes first"
        self._threads.submit(slot, inputs)

    def next_done(self) -> int:
        """Return the slot of a request that has ended."""
        assert self._threads is not None, "prepare() comes first"
        return self._threads.next_done()

    def done_within(self, timeout_s: float) -> int | None:
        """Return the slot of a request that has ended, None after so many seconds."""
        assert self._threads is not None, "prepare() comes first"
        return self._threads.done_within(timeout_s)

    def wait(self, slot: int) -> Sequence[Array]:
        """Return the outputs of the slot's request."""
        assert self._threads is not None, "prepare() comes first"
        return self._threads.wait(slot)


def first_line(error: BaseException, limit: int = 300) -> str:
    """The first telling line of a runtime's message, without its trailing full stop, for use inside a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text[:limit].rstrip(" .:")
