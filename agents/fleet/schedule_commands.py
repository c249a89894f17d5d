"""`weigh schedule`: have a suite run every month by the system's own scheduler."""

from __future__ import annotations

from typing import Annotated, Any

import typer

KindOption = Annotated[
    str | None, typer.Option("--kind", help="systemd, launchd or cron; else what this machine has.", show_default=False)
]
SystemOption = Annotated[
    bool, typer.Option("--system/--user", help="For the whole machine (needs root), or for this user.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    schedule = typer.Typer(help="Repeat a suite by systemd, launchd or cron.", no_args_is_help=True)
    schedule.command("install", epilog="Example: `weigh schedule install standard --monthly --at 03:00`")(install)
    schedule.command("show", epilog="Example: `weigh schedule show`")(show)
    schedule.command("remove", epilog="Example: `weigh schedule remove standard`")(remove)
    app.add_typer(schedule, name="schedule")


def install(
    suite: Annotated[
        str, typer.Argument(help="A suite (quick, standard, precisions, thorough) or a suite file (.toml).")
    ],
    monthly: Annotated[bool, typer.Option("--monthly", help="On the first of every month (the default).")] = False,
    weekly: Annotated[bool, typer.Option("--weekly", help="Every Monday.")] = False,
    daily: Annotated[bool, typer.Option("--daily", help="Every day.")] = False,
    at: Annotated[str, typer.Option(help="Time of day, of this machine's clock.")] = "03:00",
    calendar: Annotated[
        str | None, typer.Option(help="The scheduler's own words: OnCalendar of systemd, five fields of cron.")
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", help="Run it on this device of the fleet instead of here; may be repeated."),
    ] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Run it on all devices of the fleet.")] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not run `weigh check` afterwards.")] = False,
    store: Annotated[
        str | None, typer.Option("--store", help="Where results go; else WEIGHBRIDGE_STORE or the local file.")
    ] = None,
    kind: KindOption = None,
    system: SystemOption = False,
    name: Annotated[str | None, typer.Option(help="The schedule's name; else the suite's.")] = None,
    print_only: Annotated[bool, typer.Option("--print", help="Only show what would be written.")] = False,
) -> None:
    """Write a timer that runs a suite every month, and say how to enable it.

    What a machine missed while it was off is made up for by systemd and launchd, not by cron.
    """
    from agents.fleet import schedule_install as installing
    from agents.fleet.schedule_calendar import Every, read_calendar
    from agents.fleet.schedule_units import Repeated
    from harness.errors import UsageError
    from harness.folders import default_store

    offered: tuple[tuple[Every, bool], ...] = (("monthly", monthly), ("weekly", weekly), ("daily", daily))
    chosen = [every for every, given in offered if given]
    if len(chosen) + (calendar is not None) > 1:
        raise UsageError("One schedule has one calendar.", "Give one of --monthly, --weekly, --daily, --calendar.")
    address = _absolute(store or default_store())
    place = _place(kind, system)
    title, word = _suite(suite)
    repeated = Repeated(
        name=_name(name or title),
        commands=_commands(word, on or [], everywhere, check=not no_check and not address.startswith("http")),
        calendar=read_calendar(chosen[0] if chosen else "monthly", at, calendar),
        environment=installing.environment_for(address),
        secrets=installing.secrets_file(),
    )
    _show(installing.rendered(repeated, place))
    if print_only:
        return
    for line in installing.install(repeated, place):
        typer.echo(line, err=True)


def show(
    name: Annotated[str | None, typer.Argument(help="Only this schedule.")] = None,
    kind: KindOption = None,
    system: SystemOption = False,
) -> None:
    """Show what is installed, as the scheduler reads it."""
    from agents.fleet import schedule_install as installing

    found = installing.installed(_place(kind, system), name)
    if found:
        _show(found)
    else:
        typer.echo("Nothing is scheduled here: weigh schedule install standard", err=True)


def remove(
    name: Annotated[str, typer.Argument(help="The schedule's name, as `weigh schedule show` has it.")],
    kind: KindOption = None,
    system: SystemOption = False,
) -> None:
    """Take a schedule away."""
    from agents.fleet import schedule_install as installing

    for line in installing.remove(_name(name), _place(kind, system)):
        typer.echo(line)


def _commands(suite: str, on: list[str], everywhere: bool, check: bool) -> tuple[tuple[str, ...], ...]:
    import sys

    program = (sys.executable, "-P", "-m", "weigh")
    if on or everywhere:
        chosen = [word for device in on for word in ("--on", device)] if on else ["--all"]
        measure = (*program, "fleet", "run", suite, *chosen)
    else:
        measure = (*program, "run", suite, "--trigger", "schedule")
    return (measure, (*program, "check")) if check else (measure,)


def _suite(suite: str) -> tuple[str, str]:
    """Read the suite now, so that a typo does not wait for a month. Returns its name and the word for the command."""
    from pathlib import Path

    from harness.suites import read_suite

    found, document = read_suite(suite)
    return found.name, suite if suite == found.name else str(Path(document.path).resolve())


def _place(kind: str | None, system: bool) -> Any:
    from agents.fleet import schedule_install as installing
    from harness.errors import UsageError

    chosen = kind or installing.default_kind()
    if chosen not in installing.KINDS:
        raise UsageError(f"There is no scheduler {chosen!r}.", f"Known are {', '.join(installing.KINDS)}.")
    if chosen == "cron" and system:
        raise UsageError("A cron entry is installed for a user.", "Leave --system out, or use --kind systemd.")
    return installing.Place(chosen, system)


def _name(name: str) -> str:
    from agents.fleet.schedule_units import NAME
    from harness.errors import UsageError

    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a schedule.", "Use small letters, digits and '-': --name monthly-standard"
        )
    return name


def _absolute(store: str) -> str:
    """A relative SQLite path would mean another file in the scheduler's working directory."""
    from pathlib import Path

    prefix = "sqlite:///"
    if store.startswith(prefix) and "?" not in store:
        return prefix + str(Path(store.removeprefix(prefix)).expanduser().absolute())
    return store


def _show(files: dict[str, str]) -> None:
    for name, text in files.items():
        typer.echo(f"# {name}\n{text}")
