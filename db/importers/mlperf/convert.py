"""From the files of one MLPerf result to one run record. Pure, and the same bytes give the same record."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

from db.importers.mlperf.accuracy import AccuracyFile, read_accuracy
from db.importers.mlperf.benchmarks import Benchmark, benchmark_of, precision_in_name
from db.importers.mlperf.energy import energy_of
from db.importers.mlperf.summary import Summary, read_summary
from db.importers.mlperf.system import System, read_system
from db.importers.mlperf.tree import FileError, Place, SourceFile, reading
from harness.canonical import digest_of
from harness.judgement import flags as flag_codes
from harness.records import (
    Accuracy,
    Case,
    Device,
    Effective,
    Environment,
    Flag,
    Latency,
    Measurement,
    Official,
    Quantile,
    Run,
    Source,
    SuiteRef,
)

NAMESPACE = UUID("b7a1c1a2-6f2d-5d43-9a55-2f7e7d1f3f10")  # of identifiers made from imported content
LICENCE = "Apache-2.0"
BATCH_NOT_TOLD = 0  # a case's batch cannot be null; 0 stands for "the source does not tell"
# LoadGen counts from a query's issue to its response, with samples in the host's memory; what the submitter's code does in
# between is its own. That is not our host_to_host, and a comparison must say so.
BOUNDARY = "loadgen_query"
NS_PER_MS = 1e6


@dataclass(frozen=True)
class Release:
    """A published round of MLPerf Inference."""

    version: str  # "v3.0"
    published: str  # day, ISO 8601


@dataclass(frozen=True)
class Files:
    """What belongs to one result."""

    place: Place
    summary: SourceFile
    system: SourceFile
    accuracy: SourceFile | None
    power: SourceFile | None


def to_run(files: Files, release: Release) -> Run:
    """Make the run record of one result. Raises FileError that names the file which cannot be used."""
    place = files.place
    summary = reading(files.summary, read_summary)
    system = reading(files.system, read_system)
    if (system.submitter, system.division) != (place.submitter, place.division):
        raise FileError(
            files.system.location,
            f"it says {system.division}/{system.submitter}, but stands in {place.division}/{place.submitter}",
        )
    parts = [file for file in (files.summary, files.system, files.accuracy, files.power) if file is not None]
    run_id = str(uuid5(NAMESPACE, digest_of([release.version, *([file.location, file.sha256] for file in parts)])))
    measurement = _measurement(files, summary, system, str(uuid5(UUID(run_id), "measurement")))
    return Run(
        run_id=run_id,
        status="complete",
        device=Device(
            name=f"{place.submitter} {place.system}",
            uuid=str(uuid5(NAMESPACE, f"mlperf-inference/{release.version}/{place.submitter}/{place.system}")),
            hardware_model=system.machine_model,
            compute_units=system.units,
            form=system.form,
        ),
        environment=Environment(
            machine=system.hardware,
            configuration=system.software,
            conditions={"time": "Day of publication; the source does not tell when the test ran."},
        ),
        suite=SuiteRef("mlperf-inference", release.version, digest_of(["mlperf-inference", release.version])),
        trigger="import",
        started_at=f"{release.published}T00:00:00+00:00",
        finished_at=None,
        source=Source(
            kind="imported",
            name=f"MLPerf Inference {release.version}, {place.division}, {place.submitter}",
            version=release.version,
            licence=LICENCE,
            attribution=(
                f"Submitted by {place.submitter} to MLPerf Inference {release.version} ({place.division} division), "
                "published by MLCommons under Apache-2.0. MLPerf is a trademark of MLCommons, which endorses no product."
            ),
            url=f"https://github.com/mlcommons/inference_results_{release.version}",
            location=files.summary.location,
        ),
        measurements=(measurement,),
    )


def is_copy(scenario_folder: str, scenario: str) -> bool:
    """Whether a summary stands in the folder of another scenario than it ran."""
    return scenario_folder.lower().replace("_", "") != scenario.replace("_", "")


def _measurement(files: Files, summary: Summary, system: System, measurement_id: str) -> Measurement:
    benchmark = benchmark_of(files.place.benchmark)
    case = _case(files.place, summary, system, benchmark)
    accuracy_file = None if files.accuracy is None else reading(files.accuracy, read_accuracy)
    energy, power_flags = energy_of(files.power, summary)
    throughput = summary.samples_per_second or summary.completed_per_second or summary.qps_with_overhead
    return Measurement(
        measurement_id=measurement_id,
        case=case,
        case_key=case.key,
        status="ok" if summary.valid else "invalid",
        reason=None if summary.valid else _why_invalid(summary),
        workload_family=benchmark.family,
        workload_title=benchmark.title,
        effective=Effective(
            target=system.target,
            compute_unit=system.unit,
            runtime=system.framework,
            details={
                "source_files": {
                    name: {"location": file.location, "sha256": file.sha256}
                    for name in ("summary", "system", "accuracy", "power")
                    if (file := getattr(files, name)) is not None
                },
                "loadgen_parameters": summary.parameters,
                "qps_without_loadgen_overhead": summary.qps_without_overhead,
                "p97_ms": None if summary.scenario == "offline" else _ms(summary.percentiles_ns.get("p97")),
            },
        ),
        latency_ms=None if summary.scenario == "offline" else _latency(summary),
        throughput_per_s=throughput,
        official=_official(summary),
        energy=energy,
        accuracy=_accuracy(accuracy_file, files, benchmark),
        flags=(*_flags(files, summary, system, benchmark, case), *power_flags),
    )


def _case(place: Place, summary: Summary, system: System, benchmark: Benchmark) -> Case:
    """What was asked, as far as the source tells."""
    parameters = (
        {"min_duration_s": summary.parameters["min_duration (ms)"] / 1000} if _has(summary, "min_duration (ms)") else {}
    )
    if summary.scenario == "multi_stream" and _has(summary, "samples_per_query"):
        parameters["samples_per_query"] = summary.parameters["samples_per_query"]
    if summary.scenario == "server":
        if _has(summary, "target_qps"):
            parameters["target_qps"] = summary.parameters["target_qps"]
        if _has(summary, "target_latency (ns)"):
            parameters["target_latency_ms"] = summary.parameters["target_latency (ns)"] / NS_PER_MS
    precision = benchmark.precision
    if precision == "unknown":
        precision = precision_in_name(place.system) or "unknown"
    return Case(
        workload=benchmark.workload,
        dataset=benchmark.dataset,
        source_weights=None,
        artifact_precision=precision,
        requested_precision="unknown",
        backend=system.backend,
        target=system.target or "unknown",
        compute_unit=system.unit,
        scenario=summary.scenario,
        scenario_parameters=parameters,
        batch=1 if summary.scenario == "single_stream" else BATCH_NOT_TOLD,
        boundary=BOUNDARY,
    )


def _has(summary: Summary, name: str) -> bool:
    return name in summary.parameters


def _ms(nanoseconds: int | None) -> float | None:
    """Milliseconds; the nearest float to the printed whole number, so that it prints back the same digits."""
    return None if nanoseconds is None else nanoseconds / NS_PER_MS


def _latency(summary: Summary) -> Latency:
    def quantile(name: str) -> Quantile:
        value = _ms(summary.percentiles_ns.get(name))
        reason = None if value is not None else "The summary does not print it."
        return Quantile(value, method="LoadGen", reason=reason)

    return Latency(
        count=summary.queries,
        mean=_ms(summary.mean_ns),
        min=_ms(summary.min_ns),
        max=_ms(summary.max_ns),
        p50=quantile("p50"),
        p90=quantile("p90"),
        p95=quantile("p95"),
        p99=quantile("p99"),
        p99_9=quantile("p99_9"),
    )


def _official(summary: Summary) -> Official | None:
    """The value that MLPerf ranks by: the early-stopping estimate of a latency, or the samples per second."""
    percent = {"single_stream": "90", "multi_stream": "99"}.get(summary.scenario)
    if percent is not None:
        estimate = summary.early_stopping_ns.get(percent)
        if estimate is None:
            return None
        return Official(f"early_stopping_p{percent}_latency", estimate / NS_PER_MS, "ms")
    if summary.scenario == "offline" and summary.samples_per_second is not None:
        return Official("samples_per_second", summary.samples_per_second, "samples/s")
    if summary.scenario == "server":
        if summary.scheduled_per_second is not None:
            return Official("scheduled_samples_per_second", summary.scheduled_per_second, "samples/s")
        if summary.completed_per_second is not None:
            return Official("completed_samples_per_second", summary.completed_per_second, "samples/s")
    return None


def _accuracy(found: AccuracyFile | None, files: Files, benchmark: Benchmark) -> Accuracy:
    if files.accuracy is None:
        return Accuracy(
            benchmark.metric or "unknown", None, "The submission holds no accuracy file beside this result."
        )
    if found is None:
        if benchmark.metric is not None:
            raise FileError(files.accuracy.location, f"it holds no {benchmark.metric} in MLPerf's form")
        reason = f"{files.accuracy.location} holds no number of a kind that is known here (top-1 or SQuAD F1)."
        return Accuracy("unknown", None, reason)
    return Accuracy(
        metric=found.metric,
        value=found.value,
        samples=found.samples,
        dataset=benchmark.dataset,
        details=found.details,
        note=f"Printed as {found.printed} in {files.accuracy.location}.",
    )


def _why_invalid(summary: Summary) -> str:
    parts = [f"not {name[0].lower()}{name[1:]}" for name in summary.unsatisfied]
    why = f": {', '.join(parts)}" if parts else ""
    advice = f" LoadGen recommends: {' '.join(summary.recommendations)}" if summary.recommendations else ""
    return f"LoadGen calls this result INVALID{why}.{advice}"


def _flags(files: Files, summary: Summary, system: System, benchmark: Benchmark, case: Case) -> tuple[Flag, ...]:
    flags = [Flag(flag_codes.IMPORTED, f"Taken from published results, not measured here: {files.summary.location}.")]
    if is_copy(files.place.scenario_folder, summary.scenario):
        flags.append(
            Flag(
                flag_codes.SCENARIO_INFERRED,
                f'The file stands in the folder "{files.place.scenario_folder}" but says {summary.scenario}: the submitter '
                "inferred that scenario from this run; it is stored as what ran.",
            )
        )
    if summary.scenario == "server":
        flags.append(
            Flag(
                flag_codes.INCLUDES_QUEUEING,
                "Latency counts from the scheduled arrival, so waiting in the queue is inside.",
            )
        )
    if case.artifact_precision != "unknown":
        words = benchmark.stated or files.place.system
        flags.append(
            Flag(flag_codes.PRECISION_FROM_NAME, f'The precision is read from the submitter\'s name "{words}".')
        )
    if case.batch == BATCH_NOT_TOLD:
        flags.append(Flag(flag_codes.BATCH_UNKNOWN, "The source does not tell the batch size."))
    if system.availability is not None and system.availability != "available":
        flags.append(
            Flag(
                flag_codes.NOT_AVAILABLE,
                f'At submission the system was "{system.availability}", not available for sale.',
            )
        )
    if summary.warnings:
        flags.append(
            Flag(
                flag_codes.LOADGEN_WARNINGS,
                f"LoadGen gave {summary.warnings} warning(s), which are not in the published files.",
            )
        )
    if summary.errors:
        flags.append(
            Flag(
                flag_codes.LOADGEN_ERRORS,
                f"LoadGen gave {summary.errors} error(s), which are not in the published files.",
            )
        )
    return tuple(flags)
