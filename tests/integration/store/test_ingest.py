"""Storing runs in both databases."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from db import queries
from db.ingest import ingest
from db.store import open_sink, open_store
from harness.documents import Bundle, read_run, write_run
from harness.errors import RecordError, StoreError
from harness.records import Run

Maker = Callable[..., Bundle]


def test_a_run_comes_back_as_it_was_measured(store: Any, make_bundle: Maker) -> None:
    bundle = make_bundle(p50=5.0)
    run = read_run(bundle.record)
    receipt = ingest(store.engine, bundle)
    assert (receipt.run_id, receipt.sha256, receipt.new) == (run.run_id, bundle.sha256, True)
    (row,) = queries.results(store.engine)
    assert row.measurement_id == run.measurements[0].measurement_id
    assert row.run_id == run.run_id
    assert row.started_at.isoformat() == "2026-05-01T10:00:00+00:00"
    assert (row.device, row.device_model, row.hardware_model) == ("desk", "Test machine", "Test CPU 9000")
    assert (row.unit_kind, row.unit_count, row.compute_unit) == ("cpu", 1, "cpu")
    assert (row.workload, row.family, row.workload_title) == (
        "resnet50-seeded",
        "resnet50",
        "The resnet50-seeded network",
    )
    assert row.dataset == "pictures@" + "d" * 64
    assert (row.backend, row.target, row.scenario, row.scenario_parameters) == (
        "onnxruntime",
        "cpu",
        "single_stream",
        {"duration_s": 2.0},
    )
    assert (row.p50_ms, row.p90_ms, row.p95_ms, row.p99_ms, row.p99_9_ms) == (5.0, 6.0, 6.5, None, None)
    assert (row.latency_count, row.latency_mean_ms, row.latency_min_ms, row.latency_max_ms) == (5, 5.1, 4.5, 7.0)
    assert row.quantiles is not None
    assert row.quantiles["p99"]["reason"] == "5 samples are too few"
    assert row.throughput_per_s == 200.0
    assert (row.energy_j, row.energy_reason) == (None, "This machine shows no energy counter.")
    assert (row.accuracy_metric, row.accuracy_value, row.accuracy_samples) == ("top1", 0.867, 113)
    assert row.cold_start_ms is not None
    assert row.cold_start_ms["import"] == 100.0
    assert row.stages_ms == {"decode": 1.0, "preprocess": 2.0, "inference": 5.0, "postprocess": 0.1}
    assert (row.peak_rss_mb, row.trials, row.suite, row.status) == (123.4, 2, "quick", "ok")
    assert row.environment_digest == run.environment.digest
    assert row.case_key == run.measurements[0].case_key


def test_the_same_run_twice_is_one_run(store: Any, store_url: str, make_bundle: Maker) -> None:
    bundle = make_bundle()
    assert ingest(store.engine, bundle).new
    before = queries.data_version(store.engine)
    again = open_sink(store_url).store(bundle)
    assert (again.new, again.sha256) == (False, bundle.sha256)
    assert queries.count(store.engine) == 1
    assert len(queries.run_list(store.engine)) == 1
    assert queries.data_version(store.engine) == before


def test_another_content_under_the_same_id_is_refused(store: Any, make_bundle: Maker) -> None:
    bundle = make_bundle()
    ingest(store.engine, bundle)
    changed = write_run(replace(read_run(bundle.record), trigger="schedule"))
    with pytest.raises(StoreError, match="another record under the run id"):
        ingest(store.engine, replace(bundle, record=changed))
    assert queries.run_list(store.engine)[0].trigger == "manual"


def test_the_same_run_from_many_sides_at_once_is_one_run(store: Any, store_url: str, make_bundle: Maker) -> None:
    bundle = make_bundle()
    start = threading.Barrier(6)
    receipts: list[bool] = []
    failures: list[BaseException] = []

    def push() -> None:
        own = open_store(store_url)
        try:
            start.wait()
            receipts.append(ingest(own.engine, bundle).new)
        except BaseException as error:
            failures.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=push) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(receipts) == [False] * 5 + [True]
    assert queries.count(store.engine) == 1


def test_different_runs_at_once_share_their_natural_keys(store: Any, store_url: str, make_bundle: Maker) -> None:
    bundles = [make_bundle(p50=5.0 + place) for place in range(6)]
    failures: list[BaseException] = []

    def push(bundle: Bundle) -> None:
        own = open_store(store_url)
        try:
            ingest(own.engine, bundle)
        except BaseException as error:
            failures.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=push, args=(bundle,)) for bundle in bundles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    rows = queries.results(store.engine)
    assert sorted(row.ingest_sequence for row in rows) == [1, 2, 3, 4, 5, 6]
    assert len({row.case_key for row in rows}) == 1
    assert len(queries.facets(store.engine).devices) == 1


def test_a_missing_blob_is_refused_and_nothing_is_stored(store: Any, make_bundle: Maker) -> None:
    bundle = make_bundle()
    with pytest.raises(RecordError, match="did not come with it"):
        ingest(store.engine, Bundle(bundle.record, {}))
    assert queries.run_list(store.engine) == []
    assert queries.data_version(store.engine) == 0


def test_a_blob_that_the_store_has_need_not_come_again(store: Any, make_bundle: Maker) -> None:
    first = make_bundle()
    ingest(store.engine, first)
    second = make_bundle(started_at="2026-06-01T10:00:00+00:00")
    assert first.blobs.keys() == second.blobs.keys()
    assert ingest(store.engine, Bundle(second.record, {})).new


def test_a_blob_with_another_content_is_refused(store: Any, make_bundle: Maker) -> None:
    bundle = make_bundle()
    (digest,) = bundle.blobs
    flipped = bytes([bundle.blobs[digest][0] ^ 1]) + bundle.blobs[digest][1:]
    with pytest.raises(RecordError, match="another content"):
        ingest(store.engine, Bundle(bundle.record, {digest: flipped}))
    with pytest.raises(RecordError, match="does not name"):
        ingest(store.engine, Bundle(bundle.record, {**bundle.blobs, "0" * 64: b"x"}))
    assert queries.count(store.engine) == 0


def _with(bundle: Bundle, change: Callable[[Run], Run]) -> Bundle:
    return replace(bundle, record=write_run(change(read_run(bundle.record))))


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # refused before any database is asked
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda run: replace(run, run_id="not-a-uuid"), "run_id"),
        (lambda run: replace(run, run_id=run.run_id.upper() + ""), "must be written as|run_id"),
        (lambda run: replace(run, started_at="yesterday"), "started_at"),
        (lambda run: replace(run, started_at="2026-05-01T10:00:00"), "no time zone"),
        (lambda run: replace(run, finished_at="2020-05-01T10:00:00+00:00"), "before it started"),
        (lambda run: replace(run, trigger="a\0b"), "NUL"),
        (lambda run: replace(run, measurements=run.measurements * 2), "same measurement_id"),
    ],
)
def test_records_that_cannot_be_meant_are_refused(
    store: Any, make_bundle: Maker, change: Callable[[Run], Run], said: str
) -> None:
    identifier = "ABCDEF00-0000-4000-8000-00000000000A".lower()
    bundle = _with(make_bundle(change=lambda run: replace(run, run_id=identifier)), change)
    with pytest.raises(RecordError, match=said):
        ingest(store.engine, bundle)
    assert queries.count(store.engine) == 0


def test_a_number_too_large_for_the_database_is_one_sentence(store: Any, make_bundle: Maker) -> None:
    bundle = _with(
        make_bundle(),
        lambda run: replace(
            run, measurements=(replace(run.measurements[0], accuracy=_accuracy_with(run, samples=2**70)),)
        ),
    )
    with pytest.raises((StoreError, RecordError)):
        ingest(store.engine, bundle)
    assert queries.count(store.engine) == 0


def _accuracy_with(run: Run, **changes: Any) -> Any:
    accuracy = run.measurements[0].accuracy
    assert accuracy is not None
    return replace(accuracy, **changes)


def test_a_fallback_to_another_processor_is_stored_as_invalid(store: Any, make_bundle: Maker) -> None:
    def ask_for_cuda(run: Run) -> Run:
        measurement = run.measurements[0]
        case = replace(measurement.case, target="cuda", compute_unit="gpu0")
        return replace(run, measurements=(replace(measurement, case=case, case_key=case.key),))

    ingest(store.engine, make_bundle(change=ask_for_cuda))
    (row,) = queries.results(store.engine)
    assert row.status == "invalid"
    assert row.reason == "Not valid: cuda was asked for, but cpu ran."
    assert row.unit_kind == "cpu"


def test_a_renamed_device_stays_one_and_a_namesake_becomes_another(store: Any, make_bundle: Maker) -> None:
    ingest(store.engine, make_bundle(device="old name"))
    ingest(store.engine, make_bundle(device="new name", started_at="2026-06-01T10:00:00+00:00"))
    assert {row.device for row in queries.results(store.engine)} == {"new name"}
    ingest(store.engine, make_bundle(device="older still", started_at="2026-04-01T10:00:00+00:00"))
    assert {row.device for row in queries.results(store.engine)} == {"new name"}
    other = str(uuid.uuid4())
    ingest(store.engine, make_bundle(device="new name", device_uuid=other))
    rows = queries.results(store.engine)
    assert {row.device for row in rows} == {"new name"}
    assert len({row.device_uuid for row in rows}) == 2
