"""The SSH connection against real OpenSSH servers: who is trusted, what arrives, and that nothing waits for ever."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.fleet.enroll import check_login, device_at, enroll, replace_key
from agents.fleet.inventory import FleetDevice, known_hosts_file, read_fleet
from agents.fleet.transport import Connection
from harness.errors import NotDone, TransportError


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return tmp_path / "fleet.toml"


@pytest.fixture
def device(ssh_device, fleet: Path) -> FleetDevice:
    """An enrolled device, in this process."""
    started = ssh_device("pi5")
    asked = replace(device_at("pi5", started.address), key_file=started.login_key, python=sys.executable)
    return enroll(fleet, asked, lambda shown: shown.fingerprint == started.fingerprint)


@pytest.fixture
def connection(device: FleetDevice, fleet: Path):
    with Connection(device, known_hosts_file(fleet)) as opened:
        yield opened


def test_enrolling_shows_the_fingerprint_that_openssh_shows(ssh_device, fleet: Path) -> None:
    started = ssh_device("pi5")
    seen = []
    with pytest.raises(NotDone, match="not confirmed"):
        enroll(fleet, device_at("pi5", started.address), lambda shown: bool(seen.append(shown.fingerprint)))
    assert seen == [started.fingerprint]
    assert not fleet.exists() and not known_hosts_file(fleet).exists()


def test_an_expected_fingerprint_that_is_not_shown_enrolls_nothing(ssh_device, fleet: Path) -> None:
    started = ssh_device("pi5")
    with pytest.raises(TransportError, match="not SHA256:AAA"):
        enroll(fleet, device_at("pi5", started.address), lambda shown: True, "SHA256:" + "A" * 43)
    assert not fleet.exists()


def test_another_host_key_is_refused_before_anything_is_sent(ssh_device, enrolled, weigh) -> None:
    started = enrolled("pi5")
    old = started.fingerprint
    started.stop()
    started.new_host_key()
    started.start()
    done = weigh(
        "fleet", "run", "quick", "--on", "pi5", "--no-sync", "--store", f"sqlite:///{started.root / 'c.sqlite'}"
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert started.fingerprint in last and old in last and "--replace-key" in last
    assert "Traceback" not in done.stderr
    assert "Accepted publickey" not in (started.root / "sshd.log").read_text().split("Server listening")[-1]

    done = weigh("fleet", "enroll", "pi5", "--replace-key", "--fingerprint", started.fingerprint)
    assert (done.returncode, "The login works" in done.stdout) == (0, True), done.stderr


def test_the_two_files_must_agree_on_the_key(device: FleetDevice, fleet: Path) -> None:
    with pytest.raises(TransportError, match="not the one in the fleet file"):
        Connection(replace(device, fingerprint="SHA256:" + "A" * 43), known_hosts_file(fleet))
    known_hosts_file(fleet).unlink()
    with pytest.raises(TransportError, match="not pinned"):
        Connection(device, known_hosts_file(fleet))


def test_the_users_own_known_hosts_does_not_count(ssh_device, fleet: Path, tmp_path: Path, monkeypatch) -> None:
    started = ssh_device("pi5")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    key = started.host_key.with_suffix(".pub").read_text()
    (tmp_path / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{started.port} {key}")
    unpinned = replace(device_at("pi5", started.address), fingerprint=started.fingerprint)
    with pytest.raises(TransportError, match="not pinned"):
        Connection(unpinned, known_hosts_file(fleet))


def test_a_server_without_an_ed25519_key_is_refused(ssh_device, fleet: Path) -> None:
    started = ssh_device("old")
    started.stop()
    started.host_key.unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", str(started.host_key)], check=True)
    started.start()
    with pytest.raises(TransportError, match="ed25519"):
        enroll(fleet, device_at("old", started.address), lambda shown: True)


def test_a_login_that_is_refused_says_which_key_and_what_to_do(
    device: FleetDevice, fleet: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    said = check_login(fleet, replace(device, key_file=other))
    assert said is not None and str(other) in said and "ssh-copy-id" in said
    assert "no key file" in (check_login(fleet, replace(device, key_file=tmp_path / "none")) or "")
    locked = tmp_path / "locked_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "a passphrase", "-f", str(locked)], check=True)
    assert "ssh-add" in (check_login(fleet, replace(device, key_file=locked)) or "")


def test_a_device_that_is_off_is_one_sentence(device: FleetDevice, fleet: Path) -> None:
    away = replace(device, port=1)
    with pytest.raises(TransportError, match="not pinned"):
        Connection(away, known_hosts_file(fleet))
    known = known_hosts_file(fleet)
    known.write_text(known.read_text().replace(f":{device.port}", ":1"))
    with pytest.raises(TransportError, match=r"pi5 .*cannot be reached: Connection refused"):
        Connection(away, known)


def test_replacing_a_key_needs_a_person_as_well(ssh_device, device: FleetDevice, fleet: Path) -> None:
    with pytest.raises(NotDone):
        replace_key(fleet, "pi5", lambda shown: False)
    assert read_fleet(fleet).named("pi5").fingerprint == device.fingerprint


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20), min_size=1, max_size=4)
)
def test_every_argument_arrives_as_it_is(connection: Connection, words: list[str]) -> None:
    """The other side runs a shell; nothing in an argument may mean something to it."""
    output = connection.check(["printf", "%s\\0", *words])
    assert output.decode("utf-8") == "".join(f"{word}\0" for word in words)


@pytest.mark.parametrize(
    "word", ["; touch {}", "$(touch {})", "`touch {}`", "&& touch {}", "' ; touch {} '", "\n touch {}"]
)
def test_no_argument_becomes_a_command(connection: Connection, tmp_path: Path, word: str) -> None:
    mark = tmp_path / "mark"
    connection.run(["echo", word.format(mark)])
    assert not mark.exists()


def test_more_output_than_a_window_on_both_streams_does_not_block(connection: Connection) -> None:
    code = "import sys; [s.write('x' * 3_000_000) for s in (sys.stderr, sys.stdout)]"
    done = connection.run([sys.executable, "-c", code])
    assert (len(done.stdout), len(done.stderr), done.returncode) == (3_000_000, 3_000_000, 0)


def test_endless_output_is_cut_off(connection: Connection) -> None:
    with pytest.raises(TransportError, match="says more than"):
        connection.run(["yes"])


def test_a_command_that_does_not_end_is_given_up(connection: Connection) -> None:
    before = time.monotonic()
    with pytest.raises(TransportError, match="did not end in time"):
        connection.run(["sleep", "30"], timeout_s=0.5)
    assert time.monotonic() - before < 5
    assert connection.run(["true"]).returncode == 0  # the connection is still good


def test_a_detached_child_does_not_hold_the_channel(connection: Connection) -> None:
    code = (
        "import subprocess, sys; null = subprocess.DEVNULL\n"
        "subprocess.Popen(['sleep', '3'], stdin=null, stdout=null, stderr=null, start_new_session=True)"
    )
    before = time.monotonic()
    assert connection.run([sys.executable, "-c", code]).returncode == 0
    assert time.monotonic() - before < 2.5


def test_a_failing_command_says_its_last_words(connection: Connection) -> None:
    with pytest.raises(TransportError, match=r"pi5.*status 3.*no paper"):
        connection.check(["sh", "-c", "echo no paper >&2; exit 3"])


def test_files_travel_whole_and_private(connection: Connection, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    there = tmp_path / "there" / "deep" / "file"
    connection.make_folder(str(there.parent))
    connection.upload(data, str(there), hashlib.sha256(data).hexdigest())
    assert there.read_bytes() == data
    assert there.stat().st_mode & 0o777 == 0o600
    assert connection.download(str(there), hashlib.sha256(data).hexdigest()) == data
    assert [path.name for path in there.parent.iterdir()] == ["file"]


def test_an_upload_that_is_damaged_on_the_way_is_detected(connection: Connection, tmp_path: Path, monkeypatch) -> None:
    """The damage is done on the device, between writing and hashing; the file under its name stays as it was."""
    there = tmp_path / "file"
    there.write_bytes(b"old")
    real = connection.digests

    def damaged(paths):
        part = Path(paths[0])
        content = bytearray(part.read_bytes())
        content[100] ^= 1
        part.write_bytes(bytes(content))
        return real(paths)

    monkeypatch.setattr(connection, "digests", damaged)
    with pytest.raises(TransportError, match="arrived damaged"):
        connection.upload(b"x" * 1000, str(there))
    assert there.read_bytes() == b"old"
    assert [path.name for path in tmp_path.glob("file*")] == ["file"]


def test_a_download_that_is_not_what_was_promised_is_refused(connection: Connection, tmp_path: Path) -> None:
    (tmp_path / "result").write_bytes(b"half a resu")
    with pytest.raises(TransportError, match="arrived damaged"):
        connection.download(str(tmp_path / "result"), hashlib.sha256(b"half a result").hexdigest())
    with pytest.raises(TransportError, match="at most 5"):
        connection.download(str(tmp_path / "result"), "0" * 64, limit=5)


def test_a_full_or_forbidden_place_is_said(connection: Connection, tmp_path: Path) -> None:
    with pytest.raises(TransportError, match=r"On pi5, cannot write .*/none/file"):
        connection.upload(b"x", str(tmp_path / "none" / "file"))


def test_an_exclusive_folder_is_made_once(connection: Connection, tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b")
    connection.make_folder(path, exclusive=True)
    with pytest.raises(FileExistsError):
        connection.make_folder(path, exclusive=True)


def test_a_link_that_breaks_is_a_sentence(ssh_device, device: FleetDevice, fleet: Path) -> None:
    started = ssh_device("mac")
    mac = enroll(fleet, replace(device_at("mac", started.address), key_file=started.login_key), lambda shown: True)
    with Connection(mac, known_hosts_file(fleet)) as opened:
        opened.run(["true"])
        started.stop()
        with pytest.raises(TransportError, match="mac"):
            opened.run(["true"])
        with pytest.raises(TransportError, match="mac"):
            opened.read("/etc/hostname")
