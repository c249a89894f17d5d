"""Runs a suite on this machine: plan, fetch, measure, assemble. The command line and the fleet's agent call this."""

from __future__ import annotations

import sys
import tomllib
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from agents.device.run_environment import environment_now, keep, kept_environment, refuse_another
from harness.errors import UsageError, WeighbridgeError
from harness.folders import cache_dir, runs_dir, spool_dir, state_dir
from harness.preparation import QuietMachine, quiet
from harness.runner.assembly import assemble_run
from harness.runner.plan import Intent, Selection, expand
from harness.runner.run_folder import RunFolder
from harness.runner.runner import Listener, Progress, run_trials
from harness.suites import read_suite, suite_from
from harness.suites.bare_model import is_model_file, suite_for_model
from harness.suites.definition import Suite
from harness.toml_files import TomlFile

if TYPE_CHECKING:
    from backends.base import TargetStatus
    from harness.documents import Bundle
    from harness.models.progress import Progress as Fetching


@dataclass(frozen=True)
class RunRequest:
    """What to run. `suite` is a suite's name, a suite file, or a model file."""

    suite: str
    selection: Selection = field(default_factory=Selection)
    trigger: str = "manual"
    offline: bool = False  # fetch nothing: models and data are in the cache already
    prepare: bool = False  # a quiet machine meanwhile
    turbo_off: bool = False


@dataclass(frozen=True)
class Plan:
    """The cases of a request, before anything is fetched, and which of their targets work here."""

    suite: Suite
    document: TomlFile | None  # None for a bare model file
    intents: tuple[Intent, ...]
    probes: Mapping[tuple[str, str], TargetStatus]
    processors: int
    archive: Path  # the packed worker
    notes: tuple[str, ...] = ()  # what a person should know before waiting for it

    @property
    def expected_s(self) -> float:
        """Seconds that measuring will take at least, roughly, without fetching."""
        return sum(intent.expected_s for intent in self.intents if self.reason(intent) is None)

    @property
    def longest_s(self) -> float:
        """The same where every case goes on to its last trial, or until the budget is spent."""
        longest = sum(intent.longest_s for intent in self.intents if self.reason(intent) is None)
        return max(self.expected_s, min(longest, self.suite.budget_s or longest))

    def reason(self, intent: Intent) -> str | None:
        """Return why an intent cannot run here, None where it can, as far as is known without its model."""
        if not intent.runs:
            return intent.reason
        probe = self.probes.get((intent.backend, intent.target))
        if probe is not None and not probe.works:
            return f"{probe.reason or 'It does not work here.'} {probe.fix or ''}".strip()
        if isinstance(intent.workload.model, str):
            return _without_file(intent.workload.model, intent.artifact_precision, intent.backend)
        return None


@cache
def _without_file(model: str, precision: str, backend: str) -> str | None:
    """Say where the catalogue has no file of a precision that a backend reads; None where it has."""
    import backends
    from harness.models.catalog import find_model

    formats = backends.create(backend).formats
    if any(entry.precision == precision and entry.format in formats for entry in find_model(model).artifacts):
        return None
    return f"There is no {precision} file that {backend} reads ({', '.join(formats)})."


def plan_run(request: RunRequest, document: TomlFile | None = None) -> Plan:
    """Return what a request comes to on this machine: targets are probed, nothing is fetched or measured.

    Raises UsageError or SuiteError. `document` is the suite as a resumed run kept it.
    """
    import backends
    from harness.configuration import load_configuration
    from harness.runner.probing import probe_targets
    from harness.runner.processors import available_processors
    from harness.suites.own_files import check_own_models, missing_data
    from harness.suites.reader import known_workloads
    from harness.worker.pack import worker_archive

    configuration = load_configuration()
    if is_model_file(request.suite):
        suite = suite_for_model(Path(request.suite))
        workloads = suite.workloads
    else:
        if document is None:
            suite, document = read_suite(request.suite)
        else:
            suite = suite_from(document)
        workloads = known_workloads(suite)
    if document is not None:
        check_own_models(suite.workloads.values(), str(document.path))
    processors = available_processors()
    targets = {name: backends.create(name).targets() for name in backends.BACKENDS}
    if is_model_file(request.suite):
        targets = {name: known for name, known in targets.items() if name in suite.groups[0].targets}
    intents = tuple(expand(suite, workloads, request.selection, targets, processors))
    archive = worker_archive(cache_dir())
    places = [(intent.backend, intent.target) for intent in intents if intent.runs]
    with TemporaryDirectory(prefix="weighbridge-probe-") as folder:
        probes = probe_targets(archive, Path(folder), places, configuration.runtimes, request.selection.device_index)
    notes = missing_data(suite.workloads.values()) if document is not None else ()
    return Plan(suite, document, intents, probes, processors, archive, notes)


def run_suite(
    request: RunRequest,
    listen: Listener = lambda progress: None,
    fetching: Fetching | None = None,
    run_id: str | None = None,
) -> Bundle:
    """Measure and return the run record with its blobs; Ctrl-C makes it an interrupted run of what is finished.

    The caller holds the device's lock. The run's folder stays until `mark_stored`, so that nothing is lost when storing
    fails.
    """
    with quiet(request.prepare, state_dir(), request.turbo_off) as machine:
        return _run(request, listen, fetching, run_id or str(uuid.uuid4()), machine)


def _run(
    request: RunRequest,
    listen: Listener,
    fetching: Fetching | None,
    identifier: str,
    machine: QuietMachine | None,
) -> Bundle:
    plan = plan_run(request)
    document = {
        "suite": request.suite if plan.document is not None else str(Path(request.suite).absolute()),
        "suite_path": str(plan.document.path.absolute()) if plan.document is not None else None,
        "suite_text": plan.document.text if plan.document is not None else None,
        "selection": asdict(request.selection),
        "trigger": request.trigger,
        "offline": request.offline,
        "started_at": _now(),
        "prepare": request.prepare,
        "turbo_off": request.turbo_off,
        "environment": keep(environment_now()),
        "stored": False,
    }
    folder = RunFolder.create(runs_dir(), identifier, document)
    try:
        return _measure(request, plan, folder, document, listen, fetching, machine)
    except BaseException:
        folder.remove_if_empty()  # stopped before the first trial ended: there is nothing to go on with
        raise


def resume_run(run_id: str, listen: Listener = lambda progress: None, fetching: Fetching | None = None) -> Bundle:
    """Go on with an unfinished run: finished trials are kept, the others run now.

    A run that was stored as interrupted, or waits in the spool as such, goes on under an identifier of its own, because a
    stored record never changes.
    The caller holds the device's lock. Raises UsageError where there is no such run, or where the environment is another
    one than before.
    """
    folder, kept = RunFolder.open(runs_dir(), run_id)
    try:
        selection: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in kept["selection"].items()
        }
        wishes = kept["prepare"], kept["turbo_off"]
        request = RunRequest(kept["suite"], Selection(**selection), kept["trigger"], kept["offline"], *wishes)
        document = None
        if kept["suite_text"] is not None:
            document = TomlFile(Path(kept["suite_path"]), kept["suite_text"], tomllib.loads(kept["suite_text"]))
        environment = kept_environment(kept["environment"])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"The unfinished run {run_id} cannot be read ({error}).", "Start a new run.") from error
    with quiet(request.prepare, state_dir(), request.turbo_off) as machine:
        refuse_another(environment, environment_now(), run_id)
        plan = plan_run(request, document)  # before anything changes: a model file may be gone since
        if kept["stored"] or (spool_dir() / folder.run_id).exists():
            kept = {**kept, "stored": False, "resumed_from": folder.run_id}
            folder = folder.renamed(str(uuid.uuid4()))
            folder.write("request.json", kept)
        return _measure(request, plan, folder, kept, listen, fetching, machine)


def make_state_folder() -> None:
    """Make the folder that locks, unfinished runs and the spool lie in. Raises WeighbridgeError that says how else."""
    try:
        state_dir().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WeighbridgeError(
            f"The state folder {state_dir()} cannot be made: {error.strerror or error}.",
            "Set WEIGHBRIDGE_STATE to a folder that can be written.",
        ) from error


def is_unfinished(run_id: str) -> bool:
    """Say whether `resume_run` has something to go on with."""
    return (runs_dir() / run_id / "request.json").is_file()


def mark_stored(run_id: str, finished: bool) -> None:
    """Say that a run's record is safe: a complete run's folder is removed, an interrupted one's stays to be resumed."""
    folder = RunFolder(runs_dir(), run_id)
    if finished:
        folder.remove()
        return
    folder, kept = RunFolder.open(runs_dir(), run_id)
    if not kept["stored"]:
        folder.write("request.json", {**kept, "stored": True})


def _measure(
    request: RunRequest,
    plan: Plan,
    folder: RunFolder,
    kept: Mapping[str, Any],
    listen: Listener,
    fetching: Fetching | None,
    machine: QuietMachine | None,
) -> Bundle:
    import backends
    from agents.device.identity import this_device
    from harness.configuration import load_configuration
    from harness.models.store import ModelStore
    from harness.runner.case_builder import CaseBuilder
    from harness.runner.references import REFERENCE_BACKEND
    from harness.sensors import available_meters

    for note in plan.notes:  # before anything is measured, not after
        print(note, file=sys.stderr, flush=True)
    device = this_device()
    environment = environment_now(plan.probes.values(), kept.get("resumed_from"))
    configuration = load_configuration()
    cache = cache_dir()
    store = ModelStore(cache, request.offline, fetching)
    meters = available_meters()
    builder = CaseBuilder(folder.run_id, plan.suite, store, cache, request.offline, configuration, fetching, meters)
    formats = {name: backends.create(name).formats for name in backends.BACKENDS}
    runnable = [intent for intent in plan.intents if intent.runs and plan.reason(intent) is None]
    listen(Progress(0, len(plan.intents), "fetching models"))
    builder.prefetch([(intent, formats[intent.backend]) for intent in runnable])
    cases = []
    for number, intent in enumerate(plan.intents):
        listen(Progress(0, len(plan.intents), f"preparing {number + 1} of {len(plan.intents)}: {intent.workload.name}"))
        probe = plan.probes.get((intent.backend, intent.target))
        cases.append(builder.build(intent, probe, formats[intent.backend]))
    cases += builder.references(cases, formats[REFERENCE_BACKEND])
    finished = run_trials(
        cases,
        plan.suite.seed,
        folder,
        plan.archive,
        configuration.runtimes,
        listen,
        meters,
        plan.suite.energy_idle_s,
        plan.suite.budget_s,
    )
    if machine is not None:
        machine.put_back()  # before the record is made, which says whether it was
    _, bundle = assemble_run(
        cases,
        folder,
        status="complete" if finished else "interrupted",
        device=device,
        environment=environment,
        suite=plan.suite.reference,
        trigger=request.trigger,
        started_at=kept["started_at"],
        finished_at=_now(),
        version=product_version(),
        processors=plan.processors,
        preparation=machine.record() if machine is not None else None,
    )
    return bundle


def product_version() -> str:
    """Return the installed distribution's version."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("weighbridge")
    except PackageNotFoundError:
        return "not installed"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
