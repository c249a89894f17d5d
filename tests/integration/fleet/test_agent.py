"""The agent on its device: one run at a time, each started once, none under a lease that is over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from agents.device.agent import REQUEST, Request, execute, read_request, report, write_request
from agents.device.bundle_file import unpack
from agents.device.lock import DeviceBusy, device_lock, is_held
from agents.device.run_status import StatusWriter, boot_id
from harness.canonical import sha256_hex
from harness.errors import ModelError, NotDone, UsageError
from harness.folders import state_dir


def request(fence_token: int = 1, scope: str = "store", **fields: object) -> Request:
    made = {"run_id": str(uuid.uuid4()), "dispatch_id": str(uuid.uuid4()), "device": "pi5", "suite": "quick"}
    return Request(**{**made, "fence_scope": scope, "fence_token": fence_token, **fields})  # type: ignore[arg-type]


@pytest.fixture
def folder_for(tmp_path: Path):
    def make(wanted: Request) -> Path:
        folder = tmp_path / wanted.run_id
        folder.mkdir()
        (folder / REQUEST).write_bytes(write_request(wanted))
        return folder

    return make


def test_the_result_lies_there_before_done_says_so(folder_for, make_bundle) -> None:
    wanted = request(backends=("onnxruntime",), workloads=("a", "b"))
    folder, bundle = folder_for(wanted), make_bundle(run_id=wanted.run_id)
    seen = []

    def runner(asked: Request, place: Path, progress) -> object:
        progress(1, 4, "case 1")
        seen.append((asked, json.loads((place / "status.json").read_text()), report(place)["alive"]))
        return bundle

    execute(folder, runner)
    ((asked, status, alive),) = seen
    assert asked == wanted
    assert (status["state"], status["done"], status["total"], status["pid"]) == ("running", 1, 4, os.getpid())
    assert alive is True
    found = report(folder)
    assert (found["alive"], found["status"]["state"]) == (False, "finished")
    data = (folder / "result.bundle").read_bytes()
    assert found["done"]["sha256"] == sha256_hex(data)
    assert unpack(data) == bundle
    assert not list(folder.glob("*.part"))


def test_a_run_is_started_once(folder_for, make_bundle) -> None:
    wanted = request()
    folder = folder_for(wanted)
    calls = []

    def runner(asked: Request, place: Path, progress) -> object:
        calls.append(asked)
        return make_bundle(run_id=wanted.run_id)

    execute(folder, runner)
    with pytest.raises(NotDone, match="started already"):
        execute(folder, runner)
    assert len(calls) == 1
    assert report(folder)["status"]["state"] == "finished"


def test_a_second_run_is_refused_while_the_first_goes_on(folder_for) -> None:
    first, second = request(1), request(2)
    folder = folder_for(second)
    code = "import sys; from pathlib import Path; from agents.device.agent import execute; execute(Path(sys.argv[1]), None)"
    with device_lock(first.run_id):
        done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
    assert done.returncode == 1
    said = report(folder)["status"]
    assert (said["state"], first.run_id in said["reason"]) == ("failed", True)
    assert not (folder / "DONE").exists()


def test_the_devices_lock_ends_with_its_process() -> None:
    """kill -9 leaves nothing behind that would keep the device."""
    code = (
        "import time; from agents.device.lock import device_lock\n"
        "with device_lock('r'): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    assert is_held(state_dir() / "device.lock")
    with pytest.raises(DeviceBusy, match=f"process {holder.pid}"), device_lock("other"):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait(10)
    with device_lock("other"):
        assert is_held(state_dir() / "device.lock")
    assert not is_held(state_dir() / "device.lock")


def test_a_lease_that_is_over_is_refused(folder_for, make_bundle) -> None:
    def runner(asked: Request, place: Path, progress) -> object:
        return make_bundle(run_id=asked.run_id)

    execute(folder_for(request(7)), runner)
    old = folder_for(request(6))
    with pytest.raises(NotDone, match="lease 6 is over"):
        execute(old, runner)
    assert report(old)["status"]["state"] == "failed"
    execute(folder_for(request(8)), runner)
    execute(folder_for(request(1, scope="another store")), runner)  # its tokens count by themselves


@pytest.mark.parametrize("error", [ModelError("no model", "get it"), ValueError("a bug"), KeyboardInterrupt()])
def test_whatever_goes_wrong_stands_in_the_status(folder_for, error: BaseException) -> None:
    folder = folder_for(request())

    def runner(asked: Request, place: Path, progress) -> object:
        raise error

    with pytest.raises(type(error)):
        execute(folder, runner)
    found = report(folder)
    assert (found["alive"], found["done"], found["status"]["state"]) == (False, None, "failed")
    assert str(error) in found["status"]["reason"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"schema": "weighbridge/request/2"}',
        b'{"schema": "weighbridge/request/1", "surprise": 1}',
        write_request(request()).replace(b'"backends": []', b'"backends": "all"'),
        write_request(request()).replace(b'"fence_token": 1', b'"fence_token": "1"'),
        write_request(request(run_id="../../up")),
    ],
)
def test_a_request_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / REQUEST).write_bytes(content)
    with pytest.raises(UsageError, match="no request that can be run"):
        read_request(tmp_path)


def test_the_heartbeat_goes_on_while_the_suite_is_silent(tmp_path: Path) -> None:
    with StatusWriter(tmp_path, heartbeat_s=0.02):
        first = json.loads((tmp_path / "status.json").read_text())
        deadline = time.monotonic() + 5
        while json.loads((tmp_path / "status.json").read_text())["heartbeat"] < first["heartbeat"] + 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert first["boot_id"] == boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_full_disk_under_the_status_does_not_end_the_run(tmp_path: Path) -> None:
    with StatusWriter(tmp_path) as status:
        (tmp_path / "status.json").unlink()
        (tmp_path / "status.json").mkdir()
        status.progress(1, 2, "x")  # cannot be replaced; nothing is raised
