"""Schedules as text: what systemd, launchd and cron are given."""

from __future__ import annotations

import plistlib
import shlex
from datetime import datetime
from pathlib import Path

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from agents.fleet.schedule_calendar import Calendar, cron_fields, read_calendar, start_calendar_interval
from agents.fleet.schedule_units import Repeated, cron_entry, launchd_plist, merged_crontab, systemd_units
from harness.errors import UsageError

RUN = ("/opt/w w/bin/python", "-P", "-m", "weigh", "run", "it's 100%.toml", "$HOME")
CHECK = ("/opt/w w/bin/python", "-P", "-m", "weigh", "check")


def repeated(calendar: Calendar = Calendar(), *commands: tuple[str, ...]) -> Repeated:  # noqa: B008 - frozen
    return Repeated("standard", commands or (RUN, CHECK), calendar, {"WEIGHBRIDGE_STORE": "sqlite:////a b/%x.sqlite"})


@pytest.mark.parametrize(
    ("every", "first", "second"),
    [
        ("monthly", datetime(2026, 2, 1, 4, 30), datetime(2026, 3, 1, 4, 30)),
        ("weekly", datetime(2026, 1, 19, 4, 30), datetime(2026, 1, 26, 4, 30)),  # Mondays
        ("daily", datetime(2026, 1, 15, 4, 30), datetime(2026, 1, 16, 4, 30)),
    ],
)
def test_cron_fires_when_it_should(every: str, first: datetime, second: datetime) -> None:
    """croniter is another reader of the same five fields."""
    times = croniter(cron_fields(read_calendar(every, "04:30", None)), datetime(2026, 1, 14, 12, 0))
    assert [times.get_next(datetime), times.get_next(datetime)] == [first, second]


@given(
    st.tuples(
        *(
            st.one_of(
                st.just("*"), st.integers(low, high).map(str), st.integers(1, 9).map(lambda step: f"*/{step}"),
                st.tuples(st.integers(low, high), st.integers(low, high)).map(lambda pair: f"{min(pair)}-{max(pair)}"),
            )
            for low, high in ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
        )
    )
)  # fmt: skip
def test_what_is_accepted_as_cron_is_cron(fields: tuple[str, ...]) -> None:
    expression = " ".join(fields)
    assert cron_fields(read_calendar("monthly", "03:00", expression)) == expression
    assert croniter.is_valid(expression)


@pytest.mark.parametrize(
    "wrong", ["* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "a * * * *", "*/0 * * * *", "5-1 * * * *"]
)
def test_what_is_no_cron_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError):
        cron_fields(read_calendar("monthly", "03:00", wrong))


@pytest.mark.parametrize("at", ["24:00", "3", "03:60", "x", ""])
def test_what_is_no_time_of_day_is_refused(at: str) -> None:
    with pytest.raises(UsageError, match="time of day"):
        read_calendar("monthly", at, None)


def test_launchd_gets_a_property_list_that_reads_back() -> None:
    found = plistlib.loads(launchd_plist(repeated(), Path("/logs")))
    assert found["Label"] == "org.weighbridge.standard"
    assert found["StartCalendarInterval"] == {"Minute": 0, "Hour": 3, "Day": 1}
    assert found["ProgramArguments"][:2] == ["/bin/sh", "-c"]
    first, _, second = found["ProgramArguments"][2].partition(" && ")
    assert (tuple(shlex.split(first)), tuple(shlex.split(second))) == (RUN, CHECK)
    single = plistlib.loads(launchd_plist(repeated(Calendar(), RUN), Path("/logs")))
    assert tuple(single["ProgramArguments"]) == RUN  # no shell where none is needed


def test_launchd_refuses_what_it_cannot_express() -> None:
    assert start_calendar_interval(Calendar("calendar", expression="30 2 * * 0")) == {
        "Minute": 30,
        "Hour": 2,
        "Weekday": 0,
    }
    with pytest.raises(UsageError, match="launchd"):
        start_calendar_interval(Calendar("calendar", expression="*/5 * * * *"))


def test_a_cron_entry_escapes_the_sign_that_would_end_it() -> None:
    entry = cron_entry(repeated())
    assert "%" not in entry.replace("\\%", "")
    command = entry.replace("\\%", "%").split(" ", 5)[5].split(" && ")[0]
    assert shlex.split(command)[1:] == list(RUN)


def test_the_crontab_keeps_what_is_not_ours() -> None:
    own = "MAILTO=me\n# begin weighbridge-other\n1 1 1 1 1 x\n# end weighbridge-other\n5 5 * * * backup\n"
    once = merged_crontab(own, "standard", "0 3 1 * * a")
    assert once == own + "# begin weighbridge-standard\n0 3 1 * * a\n# end weighbridge-standard\n"
    assert merged_crontab(once, "standard", "0 4 1 * * b").count("weighbridge-standard") == 2
    assert merged_crontab(once, "standard", None) == own
    assert merged_crontab("", "standard", None) == ""


def test_a_timer_makes_up_for_what_was_missed() -> None:
    units = systemd_units(repeated())
    assert set(units) == {"weighbridge-standard.service", "weighbridge-standard.timer"}
    timer = units["weighbridge-standard.timer"]
    for line in ("OnCalendar=*-*-01 03:00:00", "Persistent=true", "RandomizedDelaySec=15min", "WantedBy=timers.target"):
        assert line in timer.splitlines()
    assert "User=" not in units["weighbridge-standard.service"]
    assert "User=bench" in systemd_units(repeated(), "bench")["weighbridge-standard.service"]
