"""`weigh schedule` as typed, its units judged by systemd itself and its crontab by cron."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agents.fleet.schedule_calendar import Calendar, on_calendar
from agents.fleet.schedule_units import Repeated, systemd_units

systemd_only = pytest.mark.skipif(sys.platform != "linux", reason="systemd exists on Linux only")


@pytest.fixture
def home(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    return tmp_path


@systemd_only
def test_systemd_accepts_what_is_installed(here, home: Path) -> None:
    store = f"sqlite:///{home / 'my results %d $x.sqlite'}"
    done = here("schedule", "install", "quick", "--kind", "systemd", "--weekly", "--store", store)
    assert done.returncode == 0, done.stderr
    folder = home / ".config" / "systemd" / "user"
    assert sorted(path.name for path in folder.iterdir()) == ["weighbridge-quick.service", "weighbridge-quick.timer"]
    assert "systemctl --user enable --now weighbridge-quick.timer" in done.stderr
    units = [str(path) for path in folder.iterdir()]
    judged = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True)
    assert (judged.returncode, judged.stderr) == (0, "")

    assert "OnCalendar=Mon *-*-* 03:00:00" in here("schedule", "show", "quick", "--kind", "systemd").stdout
    assert here("schedule", "remove", "quick", "--kind", "systemd").returncode == 0
    assert list(folder.iterdir()) == []
    again = here("schedule", "remove", "quick", "--kind", "systemd")
    assert (again.returncode, "no schedule" in again.stderr) == (2, True)


@systemd_only
def test_systemd_reads_every_argument_as_it_was(tmp_path: Path) -> None:
    """systemd is the other implementation of its own quoting: it is asked what it understood."""
    words = ("/bin/echo", "plain", "two words", "100%", "$HOME", 'say "hi"', "it's", "back\\slash", "semi;colon", "")
    text = systemd_units(Repeated("quoting", (words,), Calendar(), {"A": "b c%d"}))["weighbridge-quoting.service"]
    unit = tmp_path / "weighbridge-quoting.service"
    unit.write_text(text)
    judged = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    assert (judged.returncode, judged.stderr) == (0, "")
    line = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    assert (
        '"two words"' in line
        and "100%%" in line
        and "$$HOME" in line
        and '"say \\"hi\\""' in line
        and line.endswith('""')
    )


@systemd_only
@pytest.mark.parametrize("every", ["monthly", "weekly", "daily"])
def test_systemd_understands_each_calendar(every: str) -> None:
    done = subprocess.run(["systemd-analyze", "calendar", on_calendar(Calendar(every))], capture_output=True, text=True)
    assert (done.returncode, "Next elapse" in done.stdout) == (0, True)


@systemd_only
def test_a_calendar_that_systemd_does_not_understand_is_refused(here, home: Path) -> None:
    done = here("schedule", "install", "quick", "--kind", "systemd", "--calendar", "every blue moon")
    assert (done.returncode, "every blue moon" in done.stderr) == (2, True)
    assert not (home / ".config" / "systemd").exists()


def test_launchd_gets_its_property_list(here, home: Path) -> None:
    done = here("schedule", "install", "quick", "--kind", "launchd", "--at", "04:15", "--no-check")
    assert done.returncode == 0, done.stderr
    path = home / "Library" / "LaunchAgents" / "org.weighbridge.quick.plist"
    found = plistlib.loads(path.read_bytes())
    assert found["StartCalendarInterval"] == {"Minute": 15, "Hour": 4, "Day": 1}
    program = found["ProgramArguments"]
    assert program == [sys.executable, "-P", "-m", "weigh", "run", "quick", "--trigger", "schedule"]
    assert "launchctl bootstrap" in done.stderr
    assert here("schedule", "remove", "quick", "--kind", "launchd").returncode == 0
    assert not path.exists()


def test_the_crontab_is_changed_and_restored(here, home: Path, monkeypatch) -> None:
    """A crontab command that keeps its table in the test's folder stands in for the user's own table."""
    table = home / "table"
    table.write_text("5 5 * * * backup\n")
    tool = home / "bin" / "crontab"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nif [ "$1" = -l ]; then cat "{table}"; else cat > "{table}"; fi\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    assert here("schedule", "install", "quick", "--kind", "cron", "--calendar", "0 4 * * 0").returncode == 0
    installed = table.read_text()
    assert installed.startswith("5 5 * * * backup\n# begin weighbridge-quick\n0 4 * * 0 ")
    real = shutil.which("crontab", path="/usr/bin:/bin")
    if real is not None:
        judged = subprocess.run([real, "-n", str(table)], capture_output=True, text=True)
        assert judged.returncode == 0, judged.stderr
    assert "0 4 * * 0" in here("schedule", "show", "--kind", "cron").stdout
    assert here("schedule", "remove", "quick", "--kind", "cron").returncode == 0
    assert table.read_text() == "5 5 * * * backup\n"


def test_print_writes_nothing(here, home: Path) -> None:
    done = here("schedule", "install", "quick", "--kind", "systemd", "--print", "--on", "pi5", "--on", "mac")
    assert done.returncode == 0, done.stderr
    assert "weigh fleet run quick --on pi5 --on mac" in done.stdout
    assert not (home / ".config").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such-suite"], "no-such-suite"),
        (["quick", "--monthly", "--weekly"], "One schedule"),
        (["quick", "--kind", "anacron"], "systemd, launchd, cron"),
        (["quick", "--store", "postgresql://me:secret@db/x"], "password"),
        (["quick", "--store", "postgresql://me@db/x?password=secret"], "password"),
        (["quick", "--store", "https://me:secret@bench.example.org"], "password"),
        (["quick", "--name", "Not A Name"], "small letters"),
    ],
)
def test_wrong_usage_is_said_now_and_not_next_month(here, home: Path, arguments: list[str], words: str) -> None:
    done = here("schedule", "install", *arguments)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert "secret" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_the_token_never_stands_in_a_unit(weigh, home: Path) -> None:
    done = weigh(
        "schedule", "install", "quick", "--print", "--kind", "systemd", "--store", "https://bench.example.org",
        WEIGHBRIDGE_TOKEN="wb_secret", WEIGHBRIDGE_TOKEN_FILE="/etc/weighbridge/token",
    )  # fmt: skip
    assert "wb_secret" not in done.stdout
    assert "WEIGHBRIDGE_TOKEN_FILE=/etc/weighbridge/token" in done.stdout
    assert json.dumps("check") not in done.stdout and "weigh check" not in done.stdout  # the results are not here
