"""`weigh results`, `weigh db`, `weigh import` and `weigh check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from db.importers.storing import Imported
    from db.store import Store
    from harness.records import Run

StoreOption = Annotated[
    str | None,
    typer.Option("--store", help="Address of the store; else WEIGHBRIDGE_STORE, else the user's SQLite file."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
Choice = list[str] | None
MOST_ROWS = 2**31 - 1  # what every database takes as a number of rows


def register(app: typer.Typer) -> None:
    """Add the commands that read and fill the store."""
    app.command(
        "results",
        epilog="Examples: `weigh results --family resnet50 --newest` · `weigh results --status ok --json`",
    )(results)
    app.command("check", epilog="Examples: `weigh check` · `weigh check pi5-kitchen --threshold 5 --json`")(check)
    database = typer.Typer(
        help="Look at the store, bring it up to date, write notes beside runs.", no_args_is_help=True
    )
    database.command("info", epilog="Example: `weigh db info --store postgresql://bench@db.example/bench`")(info)
    database.command("migrate", epilog="Example: `weigh db migrate`")(migrate)
    database.command("annotate", epilog='Example: `weigh db annotate RUN_ID "Fan was blocked" --bad`')(annotate_run)
    app.add_typer(database, name="db")
    importing = typer.Typer(help="Bring results that others published into the store.", no_args_is_help=True)
    importing.command("mlperf", epilog="Example: `weigh import mlperf inference_results_v3.0`")(import_mlperf)
    importing.command("reference", epilog="Example: `weigh import reference`")(import_reference)
    app.add_typer(importing, name="import")


def results(
    family: Annotated[
        Choice, typer.Option(help="Only this model family. Like all filters, may be given again.")
    ] = None,
    workload: Annotated[Choice, typer.Option(help="Only this workload.")] = None,
    hardware: Annotated[Choice, typer.Option(help="Only this hardware model (CPU, GPU, board).")] = None,
    device: Annotated[Choice, typer.Option(help="Only this device, by name or UUID.")] = None,
    backend: Annotated[Choice, typer.Option(help="Only this backend.")] = None,
    scenario: Annotated[Choice, typer.Option(help="Only this scenario.")] = None,
    status: Annotated[Choice, typer.Option(help="Only this status: ok, invalid, unsupported, failed, skipped.")] = None,
    source: Annotated[Choice, typer.Option(help="Only this source: measured, imported, or a source's name.")] = None,
    run: Annotated[Choice, typer.Option(help="Only this run, by its id.")] = None,
    search: Annotated[str | None, typer.Option(help="Only where all these words occur in names.")] = None,
    newest: Annotated[bool, typer.Option(help="Of each case on each device, only the newest.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST_ROWS, help="At most so many.")] = 1000,
    offset: Annotated[int, typer.Option(min=0, max=MOST_ROWS, help="Leave out so many first.")] = 0,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all fields as CSV.")] = False,
    store: StoreOption = None,
) -> None:
    """Show measurements of the store, newest run first, as a table, JSON or CSV."""
    from db import queries
    from db.answers import Filter
    from harness.errors import UsageError

    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other.", "Give one of them.")
    wanted = Filter(
        families=tuple(family or ()),
        workloads=tuple(workload or ()),
        hardware=tuple(hardware or ()),
        devices=tuple(device or ()),
        backends=tuple(backend or ()),
        scenarios=tuple(scenario or ()),
        statuses=tuple(status or ()),
        sources=tuple(source or ()),
        run_ids=tuple(run or ()),
        search=search,
        newest_only=newest,
        limit=limit,
        offset=offset,
    )
    with _opened(store, create=False) as opened:
        total = queries.count(opened.engine, wanted)
        if as_json:
            from db.export import measurement_documents

            documents = measurement_documents(opened.engine, wanted)
            _print_json(documents)
            shown = len(documents)
        else:
            from db.tables import results_table, to_csv

            rows = queries.results(opened.engine, wanted)
            shown = len(rows)
            if as_csv:
                typer.echo(to_csv(rows).encode(), nl=False)
            elif rows:
                from harness.terminal import output_console

                console = output_console()
                console.print(results_table(rows, console.width))
            else:
                typer.echo(
                    "Nothing in the store fits. `weigh run quick` measures, `weigh import reference` brings others' results."
                )
    if offset + shown < total:
        typer.echo(f"weigh: {shown} of {total} measurements shown; --limit and --offset show the others.", err=True)


def check(
    device: Annotated[str | None, typer.Argument(help="Name or UUID of a device; all devices when left out.")] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, help="Percent that a case may become slower before it is a regression (10).")
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Compare each device's newest run with what it measured before; exit 1 when something became worse.

    A case is a regression when it is more than 10 % slower and the intervals of the two do not overlap, lost more than 1
    point of accuracy, or was ok and no longer is. Beside a disturbance from outside the answer is undecided: no alarm.
    """
    from db.checking import check_devices, report_lines
    from harness.judgement.regression import SLOWER_RATIO, Thresholds

    ratio = SLOWER_RATIO if threshold is None else 1 + threshold / 100
    with _opened(store, create=False) as opened:
        checked = check_devices(opened.engine, device, Thresholds(slower_ratio=ratio))
    if as_json:
        _print_json(checked.as_document())
    else:
        for line in report_lines(checked):
            typer.echo(line)
    if checked.regressions:
        raise typer.Exit(1)


def info(as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Say what the store is, how large, how recent, and how much it holds."""
    from dataclasses import asdict

    from db.overview import overview

    with _opened(store, create=False) as opened:
        seen = overview(opened)
    if as_json:
        document = asdict(seen)
        for name in ("newest_run", "last_received"):
            document[name] = document[name].isoformat() if document[name] else None
        _print_json(document)
        return
    typer.echo(f"Store          {seen.place}")
    typer.echo(f"Engine         {seen.engine}, {seen.bytes / 1e6:.1f} MB")
    typer.echo(
        f"Tables         migration {seen.migration} (newest is {seen.newest_migration}), data version {seen.data_version}"
    )
    typer.echo(f"Newest run     {seen.newest_run.isoformat() if seen.newest_run else 'none'}")
    typer.echo(f"Last received  {seen.last_received.isoformat() if seen.last_received else 'never'}")
    for name, rows in seen.rows.items():
        typer.echo(f"  {name:<16} {rows:>9}")


def migrate(store: StoreOption = None) -> None:
    """Make the store's tables, or bring them up to date. Every other command does so too; this one does nothing else."""
    from db.store import versions

    with _opened(store, create=True) as opened:
        current, _ = versions(opened)
        typer.echo(f"{opened.place} is at migration {current}, which is the newest.")


def annotate_run(
    run_id: Annotated[str, typer.Argument(help="Id of the run.")],
    text: Annotated[str, typer.Argument(help="What there is to say.")],
    bad: Annotated[
        bool, typer.Option("--bad", help="The run must not count: not as newest, not in `weigh check`.")
    ] = False,
    author: Annotated[str | None, typer.Option(help="Who says it; else the user's name on this machine.")] = None,
    store: StoreOption = None,
) -> None:
    """Write a dated note beside a run, shown wherever the run is shown. Nothing is deleted."""
    import getpass

    from db.annotations import annotate

    with _opened(store, create=False) as opened:
        annotate(opened.engine, run_id, text, author or getpass.getuser(), bad)
    typer.echo(f"Noted beside run {run_id}{', which counts no more' if bad else ''}.")


def import_mlperf(
    path: Annotated[Path, typer.Argument(help="Folder of an MLPerf Inference results tree, or a part of it.")],
    release: Annotated[
        str | None, typer.Option(help="The release, as v3.0, where neither path nor files tell it.")
    ] = None,
    published: Annotated[
        str | None, typer.Option(help="Day of publication, YYYY-MM-DD, of a release not known here.")
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Import LoadGen results with accuracy, power and system, marked as imported. Twice changes nothing.

    A file that cannot be used is named, the others are imported, and the exit status is 1.
    """
    from db.importers.mlperf.reading import read_tree
    from db.importers.reference import published_digests

    tree = read_tree(path, release, published, published_digests())
    with _opened(store, create=True) as opened:
        stored = _store(opened, tree.runs)
    if as_json:
        _print_json(
            {
                "release": tree.release.version,
                "results": len(tree.runs),
                "new": stored.new,
                "known": stored.known,
                "problems": list(tree.problems),
                "systems_without_results": list(tree.idle_systems),
            }
        )
    else:
        typer.echo(
            f"MLPerf Inference {tree.release.version}: {len(tree.runs)} results, "
            f"{stored.new} new, {stored.known} already there."
        )
        for system in tree.idle_systems:
            typer.echo(f"{system} is described, but has no results here.")
    from harness.terminal import printable

    for problem in tree.problems:
        typer.echo(f"weigh: {printable(problem)}", err=True)
    if tree.problems:
        raise typer.Exit(1)


def import_reference(as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Import the public reference results that ship with this product (MLPerf Inference v3.0, Apache-2.0)."""
    from db.importers.reference import reference_runs

    with _opened(store, create=True) as opened:
        stored = _store(opened, reference_runs())
    if as_json:
        _print_json({"results": stored.new + stored.known, "new": stored.new, "known": stored.known})
    else:
        typer.echo(
            f"Reference set: {stored.new + stored.known} results, {stored.new} new, {stored.known} already there."
        )


def _store(opened: Store, runs: tuple[Run, ...]) -> Imported:
    """Store imported runs, with a bar on a terminal."""
    import sys

    from rich.console import Console
    from rich.progress import Progress

    from db.importers.storing import store_runs

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("Storing", total=len(runs))
        return store_runs(opened.engine, runs, lambda: progress.advance(task))


def _opened(address: str | None, create: bool) -> Any:
    """The store as a context manager. A password given as an argument would stand in the process list: it is refused."""
    from contextlib import closing

    from db.store import has_password, open_store
    from harness.errors import UsageError
    from harness.folders import default_store

    if address is not None and has_password(address):
        raise UsageError(
            "A password in --store can be read by every user of this machine.",
            "Put it into PGPASSWORD or ~/.pgpass, or the whole address into WEIGHBRIDGE_STORE.",
        )
    return closing(open_store(address or default_store(), create=create))


def _print_json(document: object) -> None:
    import json

    # As bytes, because JSON is UTF-8 whatever the terminal's encoding is.
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False, sort_keys=False).encode())
