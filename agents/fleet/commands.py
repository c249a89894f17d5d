"""`weigh fleet`: command other devices over SSH. `weigh schedule`: have it done every month."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agents.fleet import schedule_commands

FleetOption = Annotated[
    Path | None,
    typer.Option("--fleet", help="The fleet file; else WEIGHBRIDGE_FLEET, else fleet.toml in the config folder."),
]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", help="Address of the store; else WEIGHBRIDGE_STORE, else the user's SQLite file."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
NamesArgument = Annotated[list[str] | None, typer.Argument(help="Names of devices; none means all.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    fleet = typer.Typer(help="Measure other devices over SSH.", no_args_is_help=True)
    add = fleet.command
    add("enroll", epilog="Example: `weigh fleet enroll pi5 pi@192.168.1.20`")(enroll)
    add("list", epilog="Example: `weigh fleet list --json`")(list_)
    add("bootstrap", epilog="Example: `weigh fleet bootstrap pi5 --extra onnx --extra tflite`")(bootstrap)
    add("run", epilog="Example: `weigh fleet run quick --on pi5 --on mac`")(run)
    add("status", epilog="Example: `weigh fleet status pi5`")(status)
    add("fetch", epilog="Example: `weigh fleet fetch`")(fetch)
    add("unlock", epilog="Example: `weigh fleet unlock pi5`")(unlock)
    app.add_typer(fleet, name="fleet")
    schedule_commands.register(app)


def enroll(
    name: Annotated[str, typer.Argument(help="The device's name, as it shall stand in results.")],
    address: Annotated[str | None, typer.Argument(help="user@host or user@host:port.")] = None,
    fingerprint: Annotated[
        str | None, typer.Option(help="The fingerprint that it must show (SHA256:...), instead of being asked.")
    ] = None,
    replace_key: Annotated[bool, typer.Option("--replace-key", help="Pin the new host key of a known device.")] = False,
    key_file: Annotated[
        Path | None, typer.Option(help="Private key to log in with; else the SSH agent and ~/.ssh.")
    ] = None,
    python: Annotated[str, typer.Option(help="Python >= 3.11 there, from which its environment is made.")] = "python3",
    folder: Annotated[str, typer.Option(help="Folder there, below the home or absolute.")] = ".weighbridge",
    environment: Annotated[
        str | None, typer.Option(help="An interpreter there that has weighbridge already; then no bootstrap is needed.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="A label to choose it by; may be repeated.")] = None,
    fleet: FleetOption = None,
) -> None:
    """Pin a device's host key and write it into the fleet file. Compare the fingerprint before you say yes."""
    from dataclasses import replace

    from agents.fleet import enroll as enrolling
    from agents.fleet.inventory import fleet_file
    from harness.errors import UsageError

    path = fleet_file(fleet)
    if replace_key:
        device = enrolling.replace_key(path, name, _confirm_key, fingerprint)
    elif address is None:
        raise UsageError("Where is the device?", f"Give its address: weigh fleet enroll {name} USER@HOST")
    else:
        asked = replace(
            enrolling.device_at(name, address),
            key_file=key_file.expanduser().absolute() if key_file else None,
            python=python,
            folder=folder,
            environment=environment,
            labels=tuple(label or ()),
        )
        device = enrolling.enroll(path, asked, _confirm_key, fingerprint)
    typer.echo(f"{device.name} is enrolled with the host key {device.fingerprint}.")
    trouble = enrolling.check_login(path, device)
    if trouble is None:
        following = "weigh fleet run quick --on" if device.environment else "weigh fleet bootstrap"
        typer.echo(f"The login works. Next: {following} {device.name}")
    else:
        typer.echo(f"The login does not work yet: {trouble}", err=True)


def list_(fleet: FleetOption = None, as_json: JsonOption = False) -> None:
    """List the devices of the fleet file."""
    from agents.fleet.inventory import fleet_file, read_fleet

    found = read_fleet(fleet_file(fleet))
    rows = [
        {
            "name": device.name,
            "address": device.address,
            "fingerprint": device.fingerprint,
            "environment": device.environment or f"{device.folder}/env",
            "labels": list(device.labels),
        }
        for device in found.devices
    ]
    if as_json:
        _print_json(rows)
    elif not rows:
        typer.echo(f"{found.path} has no devices yet: weigh fleet enroll NAME USER@HOST")
    else:
        _print_table(rows)


def bootstrap(
    names: NamesArgument = None,
    extra: Annotated[
        list[str] | None, typer.Option(help="Extra to install: onnx, openvino, tflite, coreml, cuda.")
    ] = None,
    wheel: Annotated[
        Path | None, typer.Option(help="A wheel of weighbridge; else one is built from this checkout.")
    ] = None,
    wheelhouse: Annotated[
        Path | None, typer.Option(help="Folder of wheels for the device; then it needs no package index.")
    ] = None,
    download: Annotated[
        bool,
        typer.Option("--download", help="Fetch the wheels for the device here, when it has no network of its own."),
    ] = False,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Install weighbridge on devices: its own environment, which is taken into use only after it has been tried there."""
    from agents.fleet import bootstrap as bootstrapping
    from agents.fleet.inventory import fleet_file, known_hosts_file, read_fleet
    from agents.fleet.run_display import display

    path = fleet_file(fleet)
    devices = read_fleet(path).chosen(names or [])
    plan = bootstrapping.Plan(tuple(extra or ("onnx", "tflite")), wheel, wheelhouse, download)
    with display([device.name for device in devices]) as shown:
        outcomes, pressed = bootstrapping.bootstrap_all(devices, known_hosts_file(path), plan, shown.say)
    _report(outcomes, as_json, lambda value: {"state": "ready", "detail": value})
    if pressed:
        raise typer.Exit(130)


def run(
    suite: Annotated[
        str, typer.Argument(help="A suite (quick, standard, precisions, thorough) or a suite file (.toml).")
    ] = "quick",
    on: Annotated[list[str] | None, typer.Option("--on", help="Name of a device; may be repeated.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="All devices with this label; repeated: with all of them.")
    ] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="All devices of the fleet file.")] = False,
    backend: Annotated[list[str] | None, typer.Option(help="Only this backend; may be repeated.")] = None,
    target: Annotated[list[str] | None, typer.Option(help="Only this target; may be repeated.")] = None,
    workload: Annotated[list[str] | None, typer.Option(help="Only this workload; may be repeated.")] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Launch and return; `weigh fleet fetch` brings it home.")
    ] = False,
    no_sync: Annotated[
        bool, typer.Option("--no-sync", help="Send no models and data; the device fetches what it lacks itself.")
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="The devices fetch nothing themselves.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the run's folder on the device after it was stored.")
    ] = False,
    poll: Annotated[float, typer.Option(min=0.05, help="Seconds between two looks at the device.")] = 5.0,
    store: StoreOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a suite on devices over SSH, follow it, and store the results.

    The run does not need this connection: Ctrl-C, a closed laptop or a lost network leaves it going, and
    `weigh fleet fetch` brings it home.
    """
    from agents.fleet import fleet_run
    from agents.fleet.inventory import fleet_file, read_fleet
    from agents.fleet.order import order_for
    from agents.fleet.run_display import display
    from harness.errors import UsageError

    if not (on or label or everywhere):
        raise UsageError("On which devices?", "Name them with --on, choose them with --label, or give --all.")
    path = fleet_file(fleet)
    devices = read_fleet(path).chosen(on or [], label or [])
    order = order_for(suite, backend or [], target or [], workload or [], offline)
    with display([device.name for device in devices]) as shown:
        desk = fleet_run.open_desk(_store_address(store), path, shown.say_entry, poll, keep)
        outcomes, pressed = fleet_run.run_all(desk, devices, order, detach=detach, sync=not no_sync)
    if pressed:
        typer.echo("The runs that were launched go on. `weigh fleet fetch` brings them home.", err=True)
    _report(outcomes, as_json, _entry_row)
    if pressed:
        raise typer.Exit(130)
    if not detach:
        _complain_unless_stored(outcomes)


def status(
    names: NamesArgument = None,
    limit: Annotated[int, typer.Option(min=1, help="How many runs to show at most.")] = 20,
    no_look: Annotated[
        bool, typer.Option("--no-look", help="Do not ask the devices, show what the store knows.")
    ] = False,
    store: StoreOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the newest dispatched runs, after asking the devices about those that are under way."""
    from agents.fleet import fleet_run

    path, devices = _devices(fleet, names)
    desk = fleet_run.open_desk(_store_address(store), path)
    rows = [_entry_row(entry) for entry in fleet_run.statuses(desk, devices, look=not no_look, limit=limit)]
    if as_json:
        _print_json(rows)
    elif not rows:
        typer.echo("No runs were dispatched yet: weigh fleet run quick --on NAME")
    else:
        _print_table(rows)


def fetch(
    names: NamesArgument = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the run's folder on the device after it was stored.")
    ] = False,
    store: StoreOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring finished runs home and store them. Safe at any time: a run is stored once, what still runs is left alone."""
    from agents.fleet import fleet_run
    from agents.fleet.run_display import display

    path, devices = _devices(fleet, names)
    with display([device.name for device in devices]) as shown:
        desk = fleet_run.open_desk(_store_address(store), path, shown.say_entry, keep_remote=keep)
        outcomes, pressed = fleet_run.fetch_all(desk, devices)
    _report(outcomes, as_json, _entry_row, nothing="Nothing to fetch.")
    if pressed:
        raise typer.Exit(130)


def unlock(
    name: Annotated[str, typer.Argument(help="The device's name.")],
    force: Annotated[bool, typer.Option("--force", help="Even while its agent lives or nobody can ask it.")] = False,
    store: StoreOption = None,
    fleet: FleetOption = None,
) -> None:
    """Free a device whose run will not come back. Time alone never frees a device; you do."""
    from agents.fleet import dispatch, fleet_run
    from agents.fleet.inventory import fleet_file, read_fleet

    path = fleet_file(fleet)
    device = read_fleet(path).named(name)
    desk = fleet_run.open_desk(_store_address(store), path)
    entry, found = dispatch.free(desk, device, force)
    if entry is None:
        typer.echo(f"{name} is free: {found}.")
    else:
        typer.echo(f"{name} is free: the run {entry.run_id} is {entry.state} ({found}).")


def _devices(fleet: Path | None, names: list[str] | None) -> tuple[Path, Any]:
    """The fleet file and the devices that were named; all of them without a name. Raises UsageError."""
    from agents.fleet.inventory import fleet_file, read_fleet

    path = fleet_file(fleet)
    return path, read_fleet(path).chosen(names or [])


def _confirm_key(device: Any) -> bool:
    import sys

    from harness.errors import UsageError

    typer.echo(f"{device.name} ({device.address}) shows the ed25519 host key\n\n    {device.fingerprint}\n", err=True)
    typer.echo("Compare it on the device: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub", err=True)
    if not sys.stdin.isatty():
        raise UsageError("Nobody is here to confirm the key.", "Give it with --fingerprint SHA256:...")
    return typer.confirm("Is it the same?", err=True)


def _entry_row(entry: Any) -> dict[str, Any]:
    status = entry.remote_status or {}
    total = status.get("total")
    return {
        "device": entry.device,
        "suite": entry.suite,
        "run_id": entry.run_id,
        "state": entry.state,
        "progress": f"{status.get('done', 0)}/{total}" if total else "",
        "asked_at": entry.created_at.isoformat(timespec="seconds"),
        "detail": entry.last_error or "",
    }


def _report(outcomes: Any, as_json: bool, row: Any, nothing: str = "") -> None:
    """Print one row per result and one per failure; exit status 1 when a device failed."""
    rows: list[dict[str, Any]] = []
    failed = []
    for outcome in outcomes:
        values = outcome.value if isinstance(outcome.value, list) else [outcome.value]
        rows += [{"device": outcome.device.name, **row(value)} for value in values if value is not None]
        if outcome.error is not None:
            failed.append(outcome)
            rows.append({"device": outcome.device.name, "state": "failed", "detail": str(outcome.error)})
    if as_json:
        _print_json(rows)
    elif rows:
        _print_table(rows)
    elif nothing:
        typer.echo(nothing)
    if failed:
        from harness.errors import NotDone

        many = len(outcomes)
        first = failed[0]
        what = f"{len(failed)} of {many} devices failed; {first.device.name}: " if many > 1 else ""
        raise NotDone(f"{what}{first.error.what}", first.error.fix)


def _complain_unless_stored(outcomes: Any) -> None:
    from harness.errors import NotDone

    missing = [outcome.value for outcome in outcomes if outcome.value is not None and outcome.value.state != "INGESTED"]
    if missing:
        entry = missing[0]
        going = entry.state in ("LAUNCHED", "RUNNING", "STAGED")
        raise NotDone(
            f"The run on {entry.device} is {entry.state}: {entry.last_error or 'it has not ended yet.'}",
            "`weigh fleet fetch` brings it home later." if going else "",
        )


def _store_address(store: str | None) -> str:
    from harness.folders import default_store

    return store or default_store()


def _print_json(rows: Any) -> None:
    import json

    typer.echo(json.dumps(rows, indent=2))


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.terminal import output_console

    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(*(column.replace("_", " ") for column in columns))
    for row in rows:
        cells = (row.get(column, "") for column in columns)
        table.add_row(*(Text(", ".join(cell) if isinstance(cell, list) else str(cell)) for cell in cells))
    output_console().print(table)
