"""`weigh run`: measure this machine."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from harness.documents import Bundle

EPILOG = """Examples: `weigh run quick` measures this machine; `weigh run quick --backend onnxruntime --target cuda` one
target; `weigh run model.onnx` a model file with random inputs; `weigh run quick --plan` only says what would run."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", epilog=EPILOG)(run)


def run(
    suite: Annotated[
        str | None,
        typer.Argument(
            help="A suite (quick, standard, precisions, thorough), a suite file, or a model file.", show_default=False
        ),
    ] = None,
    backend: Annotated[list[str] | None, typer.Option(help="Only this backend; may be repeated.")] = None,
    target: Annotated[list[str] | None, typer.Option(help="Only this target; may be repeated.")] = None,
    workload: Annotated[list[str] | None, typer.Option(help="Only this workload; may be repeated.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Samples per query, instead of the suite's.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads on CPU targets, instead of the suite's.")] = None,
    duration: Annotated[float | None, typer.Option(min=0.01, help="Seconds of each timed window.")] = None,
    warmup: Annotated[float | None, typer.Option(min=0, help="Seconds of warm-up before each window.")] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="Timing trials of each case, each a fresh process.")] = None,
    device_index: Annotated[int, typer.Option(min=0, help="Which of several accelerators of one kind.")] = 0,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would run, what cannot and why, and how long; then stop.")
    ] = False,
    resume: Annotated[str | None, typer.Option(metavar="RUN", help="Go on with an unfinished run.")] = None,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Where to store; else WEIGHBRIDGE_STORE or the local file.")
    ] = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Measure and print, store nothing.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the run record; - is standard output.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Fetch nothing: use models and data of the cache.")
    ] = False,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="A quieter machine meanwhile (governor, priority...); all is put back.")
    ] = False,
    no_turbo: Annotated[
        bool, typer.Option("--no-turbo", help="With --prepare: turbo off too; steadier, but slower than in use.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing while measuring.")] = False,
    trigger: Annotated[str, typer.Option(hidden=True)] = "manual",
) -> None:
    """Measure this machine: each case in fresh processes, stored with everything that says how it was taken.

    Without a selection, what cannot run here is listed and is no failure. What was asked for by name and did not run, and
    any case that failed, makes the exit status 1. Ctrl-C keeps what is finished.
    """
    from agents.device.lock import device_lock
    from agents.device.run_progress import shown_progress
    from agents.device.run_suite import RunRequest, is_unfinished, make_state_folder, plan_run, resume_run, run_suite
    from agents.device.termination import terminated_like_ctrl_c
    from harness.errors import NotDone, UsageError
    from harness.runner.plan import Selection

    if resume is not None and suite is not None:
        raise UsageError("Name either a suite or --resume, not both.", "A resumed run knows its suite.")
    selection = Selection(
        backends=tuple(backend or ()),
        targets=tuple(target or ()),
        workloads=tuple(workload or ()),
        batch=batch,
        threads=threads,
        duration_s=duration,
        warmup_s=warmup,
        trials=trials,
        device_index=device_index,
    )
    if no_turbo and not prepare:
        raise UsageError("--no-turbo is a part of --prepare.", "Give both.")
    request = RunRequest(suite or "quick", selection, trigger, offline, prepare, no_turbo)
    if plan:
        from agents.device.run_plan import print_plan

        print_plan(plan_run(request))
        return
    from harness.folders import default_store
    from harness.models.progress import ConsoleProgress
    from harness.sinks import check_address

    store = store or default_store()
    if not no_store:
        check_address(store)  # before measuring, not after
    _check_writable(json_file)
    make_state_folder()
    run_id = resume or str(uuid.uuid4())
    try:
        with device_lock(run_id), terminated_like_ctrl_c(), shown_progress(quiet) as listen:
            if resume is not None:
                bundle = resume_run(resume, listen, ConsoleProgress())
            else:
                bundle = run_suite(request, listen, ConsoleProgress(), run_id)
        _finish(bundle, selection, store, no_store, json_file)
    except KeyboardInterrupt as error:
        if is_unfinished(run_id):
            fix = f"`weigh run --resume {run_id}` goes on with what is finished."
            raise NotDone("Stopped by Ctrl-C.", fix) from error
        raise


def _finish(bundle: Bundle, selection: Any, store: str, no_store: bool, json_file: Path | None) -> None:
    from agents.device.deliver import deliver
    from agents.device.run_report import complaints, print_table
    from agents.device.run_suite import mark_stored
    from harness.documents import read_run
    from harness.errors import NotDone, WeighbridgeError

    record = read_run(bundle.record)
    to_stdout = json_file is not None and str(json_file) == "-"
    if json_file is not None and not to_stdout:
        try:
            json_file.write_bytes(bundle.record)
        except OSError as error:
            raise WeighbridgeError(
                f"The run record cannot be written to {json_file}: {error.strerror or error}.",
                f"`weigh run --resume {record.run_id} --json FILE` writes it without measuring again.",
            ) from error
    finished = record.status == "complete"
    where, trouble = "Not stored.", None
    if not no_store:
        # Before anything is printed, because who reads it may hang up (`| head`). Once in the spool or the store, the
        # record is never assembled again: its bytes would differ.
        try:
            receipt = deliver(bundle, store, spooled=lambda: mark_stored(record.run_id, finished))
            where = f"Stored as run {receipt.run_id}."
        except NotDone as error:
            trouble = error
    if trouble is None:
        mark_stored(record.run_id, finished)
    if to_stdout:
        typer.echo(bundle.record)  # the record's own bytes, whatever the terminal's encoding is
    else:
        print_table(record)
    if trouble is not None:
        raise trouble
    if not to_stdout:
        typer.echo(where)
    wrong = complaints(record, selection)
    if wrong:
        raise NotDone(" ".join(wrong))


def _check_writable(json_file: Path | None) -> None:
    """Refuse a place for the record that cannot be written, before anything is measured."""
    import os

    from harness.errors import UsageError

    if json_file is None or str(json_file) == "-":
        return
    folder = json_file.absolute().parent
    if json_file.is_dir():
        raise UsageError(f"The run record cannot be written to {json_file}: it is a folder.", "Name a file.")
    if not folder.is_dir() or not os.access(json_file if json_file.exists() else folder, os.W_OK):
        raise UsageError(
            f"The run record cannot be written to {json_file}: its folder is not there or cannot be written.",
            "Make it first, or name another place.",
        )
