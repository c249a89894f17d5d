"""A quiet machine for the length of a run, on request: changed inside `with quiet(...)`, put back on every way out.

Normal end, exception, Ctrl-C, SIGTERM and SIGHUP (which the caller turns into KeyboardInterrupt) leave through `put_back`,
during which further signals wait. kill -9 leaves the journal, and the next start repairs.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import NotDone, WeighbridgeError
from harness.preparation import repairing
from harness.preparation.journal import LOCK, Entry, Journal
from harness.preparation.process import ProcessSettings
from harness.preparation.settings import GONE, going_with, read, wanted, write
from harness.records import Change, Preparation

_WAITING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class QuietMachine:
    """What was changed. `put_back` may be called before the end of the `with`; it does its work once."""

    def __init__(self, folder: Path, root: Path, turbo_off: bool) -> None:
        self._folder = folder
        self._root = root
        self._turbo_off = turbo_off
        self._journal: Journal | None = None
        self._process = ProcessSettings(root)
        self._entries: list[Entry] = []
        self._of_process: list[tuple[str, str, str]] = []
        self._refused: dict[str, str] = {}
        self._outcomes: dict[str, repairing.PutBack] = {}
        self._not_restored: set[str] = set()
        self._over = False

    def apply(self) -> None:
        """Change what can be changed; what is refused is noted with the reason."""
        self._journal = Journal(self._folder, self._root)
        settings, self._refused = wanted(self._root, self._turbo_off)
        for setting in settings:
            before = read(self._root, setting.path)
            if before is None:
                self._refused[setting.name] = "its present value cannot be read, so it could not be put back"
            elif before != setting.value:
                for name, path, value in going_with(self._root, setting):  # before it, and so put back after it
                    self._note(Entry(name, path, value, GONE))
                self._note(Entry(setting.name, setting.path, before, setting.value))
                try:
                    write(self._root, setting.path, setting.value)
                    if read(self._root, setting.path) != setting.value:
                        self._refused[setting.name] = "the system did not take the value"
                except OSError as error:
                    self._refused[setting.name] = _why(error)
        self._of_process, refused = self._process.apply()
        self._refused.update(refused)

    def _note(self, entry: Entry) -> None:
        assert self._journal is not None
        if entry.path not in {known.path for known in self._entries}:  # tunables may be shared by policies
            self._journal.add(entry)
            self._entries.append(entry)

    def put_back(self) -> None:
        """Put everything back, and say on standard error what could not be, or was changed by others meanwhile."""
        if self._over:
            return
        with _signals_wait():
            self._over = True
            outcomes = repairing.put_back(self._root, self._entries)
            self._not_restored = self._process.put_back()
            self._outcomes = {outcome.entry.path: outcome for outcome in outcomes}
            if self._journal is not None:
                self._journal.close(done=all(outcome.how != "failed" for outcome in outcomes))
        for outcome in outcomes:
            if outcome.how == "failed" or (outcome.how == "changed by others" and outcome.entry.during != GONE):
                _tell(outcome.sentence)

    def record(self) -> Preparation:
        """Return what the run record says about it."""
        changes = [
            Change(entry.name, entry.before, entry.during, self._is_restored(entry))
            for entry in self._entries
            if entry.name not in self._refused and entry.during != GONE
        ]
        changes += [
            Change(name, before, during, self._over and name not in self._not_restored)
            for name, before, during in self._of_process
        ]
        return Preparation(tuple(changes), dict(self._refused))

    def _is_restored(self, entry: Entry) -> bool:
        outcome = self._outcomes.get(entry.path)
        return outcome is not None and outcome.how in ("restored", "untouched")


@contextmanager
def quiet(
    asked: bool, folder: Path, turbo_off: bool = False, root: Path | None = None
) -> Iterator[QuietMachine | None]:
    """Prepare the machine if `asked`; None otherwise. `folder` is the state folder, `root` where /proc and /sys hang.

    Raises NotDone where another process has prepared this machine, WeighbridgeError where no journal can be written: without
    one, nothing is changed.
    """
    if not asked:
        yield None
        return
    from filelock import FileLock, Timeout

    root = repairing.ROOT if root is None else root
    lock = FileLock(folder / LOCK, timeout=0)
    for sentence in repairing.repair(folder, root):
        _tell(sentence)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise NotDone("Another run has prepared this machine.", "Wait for its end.") from error
    except OSError as error:
        raise _no_journal(folder, error) from error
    machine = QuietMachine(folder, root, turbo_off)
    try:
        try:
            machine.apply()
        except FileExistsError as error:
            fix = "`weigh doctor` says what is left to put back; it may need more rights."
            if repairing.pending(folder) and not repairing.pending(folder, root):
                fix = "Its journal is another machine's: set WEIGHBRIDGE_STATE to a folder that this machine has alone."
            raise NotDone("An earlier preparation has not been put back.", fix) from error
        except OSError as error:
            raise _no_journal(folder, error) from error
        yield machine
    finally:
        try:
            machine.put_back()
        finally:
            try:
                machine.put_back()  # does nothing, unless a signal came before the first one had begun
            finally:
                lock.release()


def _no_journal(folder: Path, error: OSError) -> WeighbridgeError:
    return WeighbridgeError(
        f"The machine is not prepared: no journal can be written in {folder} ({error.strerror or error}).",
        "Free some space there, set WEIGHBRIDGE_STATE to a folder that can be written, or run without --prepare.",
    )


def _why(error: OSError) -> str:
    words = error.strerror or str(error)
    return f"{words}; it takes root" if isinstance(error, PermissionError) else words


def _tell(sentence: str) -> None:
    import sys

    print(sentence, file=sys.stderr, flush=True)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let no signal in between two settings that are put back; what came is delivered afterwards.

    By handlers and not by a mask: another thread, whose mask is open, would take it, and Python would run the handler
    in the main thread all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs handlers in the main thread only
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in _WAITING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)
