"""Preparation changes only what is on its list, says what was refused, and puts everything back."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.errors import NotDone, WeighbridgeError
from harness.preparation import pending, quiet, repair
from harness.preparation import settings as writing
from harness.preparation.process import quiet_processors
from harness.preparation.settings import Setting, wanted

from .conftest import FILES, POLICIES, settings_of


def test_a_machine_is_quiet_inside_and_as_before_outside(machine: Path, state: Path) -> None:
    priority, processors = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)
    with quiet(True, state, root=machine) as prepared:
        assert prepared is not None
        inside = settings_of(machine)
        assert inside[f"{POLICIES}/policy1/scaling_governor"] == "performance"
        assert inside[f"{POLICIES}/policy0/energy_performance_preference"] == "performance"
        assert inside["proc/sys/kernel/nmi_watchdog"] == "0"
        assert inside["sys/devices/system/cpu/intel_pstate/no_turbo"] == "0"  # turbo is another wish
        assert not any(change.restored for change in prepared.record().changes)
    assert settings_of(machine) == FILES
    assert (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)) == (priority, processors)
    changes = {change.what: change for change in prepared.record().changes}
    assert changes["governor of policy0"].before == "powersave"
    assert changes["governor of policy0"].during == "performance"
    assert all(change.restored for change in changes.values())
    assert "NUMA balancing" not in changes  # it was off already
    assert list(state.glob("*.journal")) == []


def test_turbo_goes_off_on_its_own_wish_only(machine: Path, state: Path) -> None:
    with quiet(True, state, turbo_off=True, root=machine):
        assert settings_of(machine)["sys/devices/system/cpu/intel_pstate/no_turbo"] == "1"
    assert settings_of(machine) == FILES


def test_nothing_happens_without_the_wish(machine: Path, state: Path) -> None:
    with quiet(False, state, root=machine) as prepared:
        assert prepared is None
        assert settings_of(machine) == FILES
    assert not state.exists()


@pytest.mark.parametrize("way_out", [ValueError("a defect"), KeyboardInterrupt(), SystemExit(3)])
def test_every_exception_puts_everything_back(machine: Path, state: Path, way_out: BaseException) -> None:
    with pytest.raises(type(way_out)), quiet(True, state, root=machine):
        raise way_out
    assert settings_of(machine) == FILES
    assert list(state.glob("*.journal")) == []


def test_a_signal_waits_until_everything_is_put_back(
    machine: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, sent = writing.write, []

    def write(root: Path, path: str, value: str) -> None:
        if value == "powersave" and not sent:
            sent.append(path)
            os.kill(os.getpid(), signal.SIGINT)  # Ctrl-C in the middle of putting back
        real(root, path, value)

    monkeypatch.setattr("harness.preparation.repairing.write", write)
    with pytest.raises(KeyboardInterrupt), quiet(True, state, root=machine):
        pass
    assert sent
    assert settings_of(machine) == FILES


def test_the_journal_is_on_disk_before_the_change(machine: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = writing.write, []

    def write(root: Path, path: str, value: str) -> None:
        entries = {entry.path: entry for entry in pending(state)}
        assert entries[path].during == value
        assert entries[path].before == FILES[path]
        seen.append(path)
        real(root, path, value)

    monkeypatch.setattr("harness.preparation.preparing.write", write)
    with quiet(True, state, root=machine):
        pass
    assert len(seen) == 6


def test_what_is_refused_is_named_and_never_fatal(machine: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = writing.write

    def write(root: Path, path: str, value: str) -> None:
        if "scaling_governor" in path:
            raise PermissionError(errno.EACCES, "Permission denied")
        real(root, path, value)

    monkeypatch.setattr("harness.preparation.preparing.write", write)
    (machine / "sys/devices/system/cpu/intel_pstate/no_turbo").unlink()
    with quiet(True, state, turbo_off=True, root=machine) as prepared:
        assert prepared is not None
    refused = prepared.record().refused
    assert refused["governor of policy0"] == "Permission denied; it takes root"
    assert refused["turbo"] == "this system has no switch for it"
    assert "governor of policy0" not in {change.what for change in prepared.record().changes}


def test_a_machine_without_frequency_control_says_so(tmp_path: Path) -> None:
    found, refused = wanted(tmp_path, turbo_off=False)
    assert found == []
    assert "no cpufreq" in refused["governor"]


def test_a_governor_that_is_not_offered_is_refused(machine: Path) -> None:
    (machine / POLICIES / "policy1/scaling_available_governors").write_text("schedutil ondemand")
    found, refused = wanted(machine, turbo_off=False)
    assert refused["governor of policy1"] == "its driver offers only schedutil, ondemand"
    assert "governor of policy1" not in {setting.name for setting in found}


def test_what_somebody_else_changed_meanwhile_is_left_and_said(
    machine: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    governor = machine / POLICIES / "policy0/scaling_governor"
    with quiet(True, state, root=machine) as prepared:
        governor.write_text("schedutil\n")
    assert governor.read_text() == "schedutil\n"
    assert "governor of policy0 was set to schedutil by somebody else" in capsys.readouterr().err
    assert prepared is not None
    assert [change.what for change in prepared.record().changes if not change.restored] == ["governor of policy0"]


def test_without_a_journal_nothing_is_changed(machine: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WeighbridgeError, match="no journal") as caught, quiet(True, tmp_path / "file", root=machine):
        pass
    assert "--prepare" in caught.value.fix
    assert settings_of(machine) == FILES


def test_two_preparations_at_once_are_refused(machine: Path, state: Path) -> None:
    with (
        quiet(True, state, root=machine),
        pytest.raises(NotDone, match="Another run has prepared"),
        quiet(True, state, root=machine),
    ):
        pass
    assert settings_of(machine) == FILES


def test_repair_leaves_a_living_preparation_alone(machine: Path, state: Path) -> None:
    with quiet(True, state, root=machine):
        inside = settings_of(machine)
        assert repair(state, machine) == ()
        assert settings_of(machine) == inside
        assert len(pending(state)) == 6


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("etc/shadow", "root"),
        (f"{POLICIES}/policy0/../../../../../../etc/passwd", "x"),
        ("/proc/sys/kernel/nmi_watchdog", "0"),
        (f"{POLICIES}/policy0/scaling_governor", "performance\nx"),
        (f"{POLICIES}/policy0/scaling_governor", "../x"),
    ],
)
def test_only_plain_words_into_files_of_the_list(path: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not on the list"):
        Setting("x", path, value)
    with pytest.raises(ValueError, match="not on the list"):
        writing.write(tmp_path, path, value)


def _abandoned(state: Path, entries: list[dict[str, str]], boot: str = "boot-one", machine: str | None = None) -> Path:
    from harness.canonical import sha256_hex

    state.mkdir(exist_ok=True)
    identity = sha256_hex(b"machine-one") if machine is None else machine
    head = {"schema": "weighbridge/preparation/1", "boot": boot, "machine": identity, "pid": 1}
    journal = state / "preparation.journal"
    journal.write_text("".join(json.dumps(line) + "\n" for line in (head, *entries)))
    return journal


def test_a_journal_that_names_another_file_writes_nothing(machine: Path, state: Path) -> None:
    secret = machine / "etc/machine-id"
    journal = _abandoned(state, [{"name": "x", "path": "etc/machine-id", "before": "owned", "during": "machine-one"}])
    said = " ".join(repair(state, machine))
    assert "nothing that this product changes" in said
    assert secret.read_text() == "machine-one\n"
    assert journal.exists()


def test_a_restart_has_put_everything_back_already(machine: Path, state: Path) -> None:
    path = f"{POLICIES}/policy0/scaling_governor"
    (machine / path).write_text("performance\n")  # this system's own choice after the restart
    entry = {"name": "governor of policy0", "path": path, "before": "powersave", "during": "performance"}
    journal = _abandoned(state, [entry], boot="boot-zero")
    assert "restart" in " ".join(repair(state, machine))
    assert (machine / path).read_text() == "performance\n"
    assert not journal.exists()


def test_another_machines_journal_in_a_shared_folder_is_left_alone(machine: Path, state: Path) -> None:
    path = f"{POLICIES}/policy0/scaling_governor"
    (machine / path).write_text("performance\n")
    entry = {"name": "governor of policy0", "path": path, "before": "powersave", "during": "performance"}
    journal = _abandoned(state, [entry], machine="f" * 64)
    assert repair(state, machine) == ()
    assert pending(state, machine) == ()
    with pytest.raises(NotDone) as caught, quiet(True, state, root=machine):
        pass
    assert "another machine's" in caught.value.fix
    assert (machine / path).read_text() == "performance\n"
    assert journal.exists()


def test_a_line_that_was_cut_off_belongs_to_no_change(machine: Path, state: Path) -> None:
    path = f"{POLICIES}/policy0/scaling_governor"
    (machine / path).write_text("performance\n")
    journal = _abandoned(
        state, [{"name": "governor of policy0", "path": path, "before": "powersave", "during": "performance"}]
    )
    with journal.open("a") as file:
        file.write('{"name": "governor of policy1", "pa')
    assert any("governor of policy0 is powersave again" in sentence for sentence in repair(state, machine))
    assert settings_of(machine) == FILES
    assert not journal.exists()


def test_a_damaged_journal_is_said_and_kept(machine: Path, state: Path) -> None:
    journal = _abandoned(state, [])
    journal.write_text("nonsense\n")
    assert "cannot be read" in " ".join(repair(state, machine))
    assert journal.exists()


def test_one_processor_of_each_core_and_the_first_core_for_the_rest(tmp_path: Path) -> None:
    for number in range(8):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{number}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{number % 4},{number % 4 + 4}\n")
    assert quiet_processors(set(range(8)), tmp_path) == {1, 2, 3}
    assert quiet_processors({0, 1, 4, 5}, tmp_path) == {0, 1}
    assert quiet_processors({0, 1}, tmp_path / "nothing told") == {0, 1}


def _with_tunables(machine: Path, governor: str, folder: str, before: str) -> None:
    """Both policies under a governor with one tunable, and a file beside it that only tells."""
    for number in (0, 1):
        (machine / POLICIES / f"policy{number}/scaling_governor").write_text(f"{governor}\n")
        (machine / POLICIES / f"policy{number}/scaling_available_governors").write_text(f"performance {governor}")
    (machine / POLICIES / folder).mkdir(parents=True)
    (machine / POLICIES / folder / "up_threshold").write_text(f"{before}\n")
    (machine / POLICIES / folder / "sampling_rate_min").write_text("10000\n")
    (machine / POLICIES / folder / "sampling_rate_min").chmod(0o444)


@pytest.mark.parametrize(("folder", "policies"), [("policy1/ondemand", (1,)), ("ondemand", (0, 1))])
def test_what_the_kernel_forgets_with_a_governor_is_put_back_too(
    folder: str, policies: tuple[int, ...], machine: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Raspberry Pi's system sets ondemand's tunables; the kernel frees them with the last policy that leaves."""
    _with_tunables(machine, "ondemand", folder, before="50")
    tunable, real = machine / POLICIES / folder / "up_threshold", writing.write

    def write(root: Path, path: str, value: str) -> None:
        real(root, path, value)
        governors = [(machine / POLICIES / f"policy{n}/scaling_governor").read_text().strip() for n in policies]
        if "ondemand" not in governors:
            tunable.unlink(missing_ok=True)
        elif not tunable.exists():
            tunable.write_text("95\n")  # its default

    monkeypatch.setattr("harness.preparation.preparing.write", write)
    monkeypatch.setattr("harness.preparation.repairing.write", write)
    with quiet(True, state, root=machine) as prepared:
        assert not tunable.exists()
    assert tunable.read_text() == "50\n"
    assert prepared is not None
    assert all(change.restored for change in prepared.record().changes)
    assert list(state.glob("*.journal")) == []


def test_a_speed_that_somebody_holds_by_hand_stays(machine: Path, state: Path) -> None:
    (machine / POLICIES / "policy0/scaling_governor").write_text("userspace\n")
    with quiet(True, state, root=machine) as prepared:
        assert prepared is not None
        assert (machine / POLICIES / "policy0/scaling_governor").read_text() == "userspace\n"
    assert "by hand" in prepared.record().refused["governor of policy0"]


@pytest.mark.parametrize("trouble", [psutil.AccessDenied(1), OSError(errno.EINVAL, "Invalid argument")])
def test_a_priority_that_cannot_be_taken_back_keeps_no_setting(
    trouble: Exception, machine: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = psutil.Process().ionice()
    with quiet(True, state, root=machine) as prepared:
        assert prepared is not None
        changed = {change.what for change in prepared.record().changes}

        def refuse(*args: object) -> None:
            raise trouble

        monkeypatch.setattr(psutil.Process, "ionice", refuse)
    assert settings_of(machine) == FILES
    monkeypatch.undo()
    psutil.Process().ionice(*((before.ioclass, before.value) if before.ioclass else (before.ioclass,)))
    told = {change.what for change in prepared.record().changes if not change.restored}
    assert told == changed & {"priority of reading files"}


def test_a_signal_just_before_putting_back_begins_costs_nothing(
    machine: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import contextmanager

    from harness.preparation import preparing

    real, came = preparing._signals_wait, []

    @contextmanager
    def waiting() -> Iterator[None]:
        if not came:
            came.append(signal.SIGINT)
            raise KeyboardInterrupt
        with real():
            yield

    monkeypatch.setattr(preparing, "_signals_wait", waiting)
    with pytest.raises(KeyboardInterrupt), quiet(True, state, root=machine):
        pass
    assert settings_of(machine) == FILES
    with quiet(True, state, root=machine):  # the lock is free
        pass


@pytest.mark.parametrize(
    "entry",
    [
        '{"name": "x", "path": 7, "before": "a", "during": "b"}',
        '{"name": "\\u001b[2J", "path": "x", "before": "a", "during": "b"}',
        "[" * 100_000,
        "7",
    ],
)
def test_a_journal_that_somebody_wrote_by_hand_is_never_fatal(entry: str, machine: Path, state: Path) -> None:
    journal = _abandoned(state, [])
    journal.write_text(journal.read_text() + entry + "\n")
    said = " ".join(repair(state, machine))
    assert "cannot be read" in said
    assert said.isprintable()
    assert settings_of(machine) == FILES
    assert journal.exists()
