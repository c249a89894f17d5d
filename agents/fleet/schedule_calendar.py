"""When something is repeated, in the words of systemd, launchd and cron. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from harness.errors import UsageError

Every = Literal["monthly", "weekly", "daily", "calendar"]

# minute, hour, day of the month, month, day of the week (0 and 7 are Sunday)
_CRON_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_CRON_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?")
_LAUNCHD_KEYS = {"minute": "Minute", "hour": "Hour", "day": "Day", "month": "Month", "weekday": "Weekday"}


@dataclass(frozen=True)
class Calendar:
    """How often, and when. `expression` is the scheduler's own syntax where `every` is "calendar"."""

    every: Every = "monthly"
    hour: int = 3
    minute: int = 0
    expression: str = ""


def read_calendar(every: Every, at: str, expression: str | None) -> Calendar:
    """Return the calendar of command-line options. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,2}):(\d{2})", at)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise UsageError(f"{at!r} is not a time of day.", "Write it as 03:00.")
    if expression is not None:
        if not expression.strip() or not expression.isprintable():
            raise UsageError("The calendar is empty or not one line.", "For example: --calendar 'Mon *-*-1..7 03:00'")
        return Calendar("calendar", expression=expression.strip())
    return Calendar(every, int(found[1]), int(found[2]))


def on_calendar(calendar: Calendar) -> str:
    """Return systemd's OnCalendar expression. `systemd-analyze calendar` judges a user's own."""
    time = f"{calendar.hour:02}:{calendar.minute:02}:00"
    if calendar.every == "calendar":
        return calendar.expression
    return {"monthly": f"*-*-01 {time}", "weekly": f"Mon *-*-* {time}", "daily": f"*-*-* {time}"}[calendar.every]


def cron_fields(calendar: Calendar) -> str:
    """Return the five fields of a cron entry. Raises UsageError for an expression that is not five valid fields."""
    if calendar.every == "calendar":
        _check_cron(calendar.expression)
        return " ".join(calendar.expression.split())
    days = {"monthly": "1 * *", "weekly": "* * 1", "daily": "* * *"}[calendar.every]
    return f"{calendar.minute} {calendar.hour} {days}"


def start_calendar_interval(calendar: Calendar) -> dict[str, int]:
    """Return launchd's StartCalendarInterval. A user's own is given as five cron fields of plain numbers and '*'."""
    values = cron_fields(calendar).split()
    interval = {}
    for (name, _, _), value in zip(_CRON_FIELDS, values, strict=True):
        if value == "*":
            continue
        if not value.isdigit():
            raise UsageError(
                f"launchd cannot express {value!r}.", "Give five fields of plain numbers and '*', such as '0 3 1 * *'."
            )
        interval[_LAUNCHD_KEYS[name]] = int(value)
    return interval


def _check_cron(expression: str) -> None:
    values = expression.split()
    if len(values) != len(_CRON_FIELDS):
        raise UsageError(
            f"{expression!r} is not a cron expression: it has {len(values)} fields.",
            "Five are needed: minute hour day month weekday, such as '0 3 1 * *'.",
        )
    for (name, low, high), value in zip(_CRON_FIELDS, values, strict=True):
        for part in value.split(","):
            found = _CRON_PART.fullmatch(part)
            numbers = [int(number) for number in found.groups()[:2] if number is not None] if found else []
            ordered = numbers == sorted(numbers) and all(low <= number <= high for number in numbers)
            if found is None or not ordered or found[3] == "0":
                raise UsageError(
                    f"{value!r} is not a {name} of a cron expression.",
                    f"Use numbers from {low} to {high}, '*', '-', ',' and '/'.",
                )
