"""Case 17 (phoronix-test-suite 760, pyperf 158): tuning left the system changed after Ctrl-C.

Whatever is changed is put back on every way out, kill -9 included: the next start repairs. Real processes, a fake /sys.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import FILES, POLICY, QUIET, Started, settings_of, wait_until

ONLY_PREPARE = """
import sys, time
from pathlib import Path
from harness.preparation import quiet
with quiet(True, Path(sys.argv[2]), root=Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(60)
"""


def _killed(machine: Path, state: Path) -> None:
    """Prepare the machine in a real process and kill it without a chance."""
    process = subprocess.Popen(
        [sys.executable, "-c", ONLY_PREPARE, str(machine), str(state)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    assert settings_of(machine) == QUIET  # nobody was there to put it back


def test_after_kill_9_the_doctor_puts_everything_back(machine: Path, own_folders: Path, weigh_on: Started) -> None:
    _killed(machine, own_folders / "state")
    doctor = weigh_on(machine, "doctor", "--json")
    found = {finding["name"]: finding for finding in json.loads(doctor.communicate(timeout=120)[0])}
    assert settings_of(machine) == FILES
    assert found["repair"]["works"] is True
    assert "governor of policy0 is powersave again" in found["repair"]["text"]
    assert not (own_folders / "state/preparation.journal").exists()


def test_after_kill_9_whatever_measures_next_repairs_first(machine: Path, own_folders: Path) -> None:
    from agents.device.lock import device_lock
    from harness.preparation import repairing

    _killed(machine, own_folders / "state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repairing, "ROOT", machine)
        with device_lock("the next run"):
            assert settings_of(machine) == FILES


def test_after_kill_9_a_setting_that_somebody_changed_is_left_and_said(
    machine: Path, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from harness.preparation import repair

    _killed(machine, own_folders / "state")
    (machine / POLICY / "scaling_governor").write_text("schedutil\n")
    said = " ".join(repair(own_folders / "state", machine))
    assert "governor of policy0 was set to schedutil by somebody else" in said
    assert settings_of(machine) == {**FILES, f"{POLICY}/scaling_governor": "schedutil"}
    assert repair(own_folders / "state", machine) == ()


@pytest.mark.slow
@pytest.mark.parametrize("measuring", [False, True], ids=["planning", "measuring"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_real_run_that_is_stopped_puts_everything_back(
    machine: Path, own_folders: Path, tiny_onnx: Path, weigh_on: Started, number: signal.Signals, measuring: bool
) -> None:
    run = weigh_on(
        machine, "run", str(tiny_onnx), "--backend", "onnxruntime", "--target", "cpu", "--prepare", "--duration", "30",
        "--no-store",
    )  # fmt: skip
    wait_until(lambda: settings_of(machine) == QUIET)
    if measuring:
        wait_until(lambda: any((own_folders / "state/runs").glob("*/work/*/job.json")))
    run.send_signal(number)
    said = run.communicate(timeout=60)[1]
    assert settings_of(machine) == FILES, said
    assert run.returncode not in (0, -number), said  # an end with words, not a death
    assert "Traceback" not in said
    assert not (own_folders / "state/preparation.journal").exists()


@pytest.mark.slow
def test_a_real_run_that_ends_well_says_what_it_changed(
    machine: Path, tiny_onnx: Path, weigh_on: Started, tmp_path: Path
) -> None:
    record = tmp_path / "run.json"
    run = weigh_on(
        machine, "run", str(tiny_onnx), "--backend", "onnxruntime", "--target", "cpu", "--prepare", "--no-turbo",
        "--duration", "0.3", "--trials", "1", "--no-store", "--json", str(record),
    )  # fmt: skip
    _, said = run.communicate(timeout=120)
    assert run.returncode == 0, said
    assert settings_of(machine) == FILES
    preparation = json.loads(record.read_text())["preparation"]
    changes = {change["what"]: change for change in preparation["changes"]}
    assert changes["governor of policy0"] == {
        "what": "governor of policy0",
        "before": "powersave",
        "during": "performance",
        "restored": True,
    }
    assert {"turbo", "NMI watchdog"} < set(changes)
    assert all(change["restored"] for change in changes.values())


def test_turbo_belongs_to_preparation(machine: Path, weigh_on: Started) -> None:
    run = weigh_on(machine, "run", "quick", "--no-turbo")
    assert "--prepare" in run.communicate(timeout=60)[1]
    assert run.returncode == 2
