"""From what is asked for to what can be started: model files, data, the case's key, and one job per trial."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from backends.base import TargetStatus
from harness.artifacts import ModelFile
from harness.canonical import digest_of
from harness.datasets import Dataset
from harness.datasets.overlap import shared_with_calibration
from harness.energy import meter_of
from harness.errors import ModelError
from harness.models.progress import Progress
from harness.models.store import ModelStore
from harness.records import Case
from harness.runner.case_sources import CaseSources, Configured
from harness.runner.cases import PlannedCase, PlannedTrial, case_of
from harness.runner.jobs import JobMaker
from harness.runner.plan import Intent
from harness.runner.references import FULL, missing_references
from harness.sensors import MeterStatus
from harness.suites.definition import Suite
from harness.worker.job import Job

# Loads that are the same from the first to the last second of the window.
ENERGY_SCENARIOS = ("single_stream", "multi_stream", "offline", "sustained")


class CaseBuilder:
    """Gets models and data, each once, and turns intents into cases. Identifiers follow from the run's and the case's."""

    def __init__(
        self,
        run_id: str,
        suite: Suite,
        store: ModelStore,
        cache: Path,
        offline: bool,
        configuration: Configured,
        progress: Progress | None = None,
        meters: Sequence[MeterStatus] = (),
    ) -> None:
        self._run_id = run_id
        self._meters = meters
        self._sources = CaseSources(store, cache, offline, configuration, progress)
        self._jobs = JobMaker(suite, store)

    def prefetch(self, runnable: Sequence[tuple[Intent, Sequence[str]]]) -> None:
        """Fetch the model files of these intents (each with the formats its backend reads) in one go."""
        self._sources.prefetch(runnable)

    def build(self, intent: Intent, probe: TargetStatus | None, formats: Sequence[str]) -> PlannedCase:
        """Return the planned case; nothing is fetched for one that cannot run here."""
        if not intent.runs:
            return self._without_trials(intent, intent.status or "skipped", intent.reason or "")
        if probe is not None and not probe.works:
            reason = f"{probe.reason or 'It does not work here.'} {probe.fix or ''}".strip()
            return self._without_trials(intent, "unsupported", reason)
        chosen = self._sources.model_format(intent, formats)
        if chosen is None:
            reads = ", ".join(formats)
            reason = (
                f"There is no {intent.artifact_precision} file of {intent.workload.name} that {intent.backend} reads"
            )
            return self._without_trials(intent, "unsupported", f"{reason} ({reads}).")
        model = self._sources.model(intent.workload, chosen, intent.artifact_precision, intent.batch)
        if isinstance(model, ModelError):
            return self._without_trials(intent, "failed", str(model))
        try:
            return self._with_trials(intent, model, probe)
        except ModelError as error:  # a file that the task needs, such as a tokenizer
            return self._without_trials(intent, "failed", str(error))

    def _with_trials(self, intent: Intent, model: ModelFile, probe: TargetStatus | None) -> PlannedCase:
        pool = self._sources.pool(intent.workload)
        case = case_of(intent, model, pool.dataset)
        data: Dataset | None = None
        accuracy_reason = intent.workload.accuracy_reason
        kind = "cold" if intent.scenario == "cold_start" else "timing"
        measuring = self._jobs.measuring(kind, intent, model, pool)
        jobs = [(kind, number, measuring) for number in range(intent.group.most_trials)]
        if intent.placement:
            jobs.append(("placement", 0, self._jobs.placement(intent, model, pool)))
        energy_reason = self._energy_reason(intent, case)
        if energy_reason is None:
            jobs.append(("energy", 0, self._jobs.energy(intent, model, pool)))
        overlap: str | None = None
        if intent.accuracy or intent.fidelity:
            whole = self._sources.model(intent.workload, model.artifact.format, intent.artifact_precision, 1)
            opened = self._sources.labelled(intent.workload) if intent.accuracy else None
            if isinstance(whole, ModelFile) and isinstance(opened, Dataset):
                data, overlap = opened, shared_with_calibration(whole, opened)
                jobs.append(("accuracy", 0, self._jobs.accuracy(intent, whole, data, pool)))
            elif isinstance(whole, ModelFile) and intent.fidelity:
                jobs.append(("fidelity", 0, self._jobs.fidelity(intent, whole, pool)))
            if intent.accuracy and data is None:
                accuracy_reason = f"Not measured: {opened if isinstance(opened, ModelError) else whole}"
        # A run that is resumed takes no trial of a file that has changed since, by a newer recipe for example.
        files = digest_of([case.key, model.artifact.sha256])
        return PlannedCase(
            intent=intent,
            case=case,
            measurement_id=self._identifier(case.key),
            artifact=model.artifact,
            trials=tuple(self._trial(files, kind, number, job) for kind, number, job in jobs),
            input_note=pool.note if pool.random and intent.workload.latency_samples != "random" else None,
            accuracy_data=data,
            accuracy_reason=accuracy_reason,
            energy_reason=energy_reason,
            device_name=probe.device_name if probe is not None else None,
            calibration_overlap=overlap,
        )

    def references(self, cases: Sequence[PlannedCase], formats: Sequence[str]) -> list[PlannedCase]:
        """Return what accuracy and fidelity of these cases are held against, where the cases themselves do not hold it.

        `formats` are those of the reference's backend. A case without trials says why there is none.
        """
        return [self._reference(intent, formats) for intent in missing_references(cases)]

    def _reference(self, intent: Intent, formats: Sequence[str]) -> PlannedCase:
        """Return a case of quality trials only. Its identifiers are those of no measurement."""
        model_format = self._sources.model_format(intent, formats)
        model = self._sources.model(intent.workload, model_format, FULL, 1) if model_format is not None else None
        identifier = self._identifier(f"reference-{intent.workload.name}")
        if not isinstance(model, ModelFile):
            reason = str(model or f"There is no fp32 file of {intent.workload.name} that {intent.backend} reads.")
            case = case_of(intent, None, None)
            return PlannedCase(intent, case, identifier, None, status="unsupported", reason=reason, reference_only=True)
        pool = self._sources.pool(intent.workload)
        case = case_of(intent, model, pool.dataset)
        opened = self._sources.labelled(intent.workload) if intent.accuracy else None
        data = opened if isinstance(opened, Dataset) else None
        job = (
            self._jobs.accuracy(intent, model, data, pool)
            if data is not None
            else self._jobs.fidelity(intent, model, pool)
        )
        trial = self._trial(digest_of(["reference", case.key, model.artifact.sha256]), job.kind, 0, job)
        return PlannedCase(intent, case, identifier, model.artifact, (trial,), accuracy_data=data, reference_only=True)

    def _without_trials(self, intent: Intent, status: str, reason: str) -> PlannedCase:
        case = case_of(intent, None, None)
        return PlannedCase(intent, case, self._identifier(case.key), None, status=status, reason=reason)

    def _trial(self, files: str, kind: str, number: int, job: Job) -> PlannedTrial:
        key = f"{files[:32]}-{kind}-{number}"
        return PlannedTrial(key, Job(**{**job.__dict__, "trial_id": self._identifier(key)}))

    def _identifier(self, name: str) -> str:
        return str(uuid.uuid5(uuid.UUID(self._run_id), name))

    def _energy_reason(self, intent: Intent, case: Case) -> str | None:
        """Return why the case gets no energy trial; None where it does."""
        if intent.scenario not in ENERGY_SCENARIOS:
            return f"Not measured: a window of {intent.scenario} is no steady load whose energy could be told."
        if not intent.group.energy:
            return "Not measured: the suite does not ask for the energy of this case."
        if not intent.workload.energy:
            return "Not measured: this workload's data are not natural, so its power is not comparable."
        status = meter_of(case.compute_unit, intent.device_index, self._meters)
        if status.works:
            return None
        reason = f"{status.text} {status.fix or ''}".strip()
        return reason[:1].upper() + reason[1:]
