"""What pages and commands read, on both databases."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from db import queries
from db.annotations import annotate
from db.export import measurement_documents
from db.history import histories
from db.ingest import ingest
from db.queries import Filter
from harness.documents import Bundle, read_run
from harness.errors import StoreError, UsageError
from harness.records import Run, Source

Maker = Callable[..., Bundle]


@contextmanager
def statements(engine: Any) -> Iterator[list[str]]:
    """Collect the SELECTs that run inside."""
    from sqlalchemy import event

    seen: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.lstrip().startswith("SELECT"):
            seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_filters_choose_and_combine(store: Any, make_bundle: Maker) -> None:
    ingest(store.engine, make_bundle(workloads=("resnet50-seeded", "minilm-l6"), backends=("onnxruntime", "openvino")))
    other = "00000000-0000-4000-8000-000000000002"
    ingest(
        store.engine, make_bundle(device="100%_board", device_uuid=other, hardware_model="Pi CPU", backends=("tflite",))
    )

    def found(**wanted: Any) -> int:
        assert queries.count(store.engine, Filter(**wanted)) == len(queries.results(store.engine, Filter(**wanted)))
        return queries.count(store.engine, Filter(**wanted))

    assert found() == 5
    assert found(families=("resnet50",)) == 3
    assert found(families=("resnet50", "minilm-l6")) == 5
    assert found(workloads=("minilm-l6",), backends=("openvino",)) == 1
    assert found(hardware=("Pi CPU",)) == 1
    assert found(devices=("desk",)) == 4
    assert found(devices=(other,)) == 1
    assert found(scenarios=("offline",)) == 0
    assert found(statuses=("ok",)) == 5
    assert found(sources=("weighbridge",)) == 5
    assert found(sources=("measured",)) == 5
    assert found(sources=("imported",)) == 0
    assert found(search="OPENvino resnet") == 1
    assert found(search="0%_b") == 1
    assert found(search="x%x") == 0
    assert found(search="d_sk") == 0, "an underscore is a letter here, not a wildcard"


def test_pages_follow_each_other(store: Any, make_bundle: Maker) -> None:
    ingest(store.engine, make_bundle(workloads=("a", "b", "c")))
    ingest(store.engine, make_bundle(workloads=("a", "b"), started_at="2026-06-01T10:00:00+00:00"))
    whole = [row.measurement_id for row in queries.results(store.engine)]
    assert [row.workload for row in queries.results(store.engine)] == ["a", "b", "a", "b", "c"]
    paged = [
        row.measurement_id
        for offset in (0, 2, 4)
        for row in queries.results(store.engine, Filter(limit=2, offset=offset))
    ]
    assert paged == whole
    assert queries.count(store.engine, Filter(limit=2)) == 5


def test_newest_only_keeps_one_of_each_case_and_device(store: Any, make_bundle: Maker) -> None:
    ingest(store.engine, make_bundle(p50=6.0, started_at="2026-07-01T10:00:00+00:00"))
    ingest(store.engine, make_bundle(p50=5.0))
    ingest(store.engine, make_bundle(p50=7.0, device="other", device_uuid="00000000-0000-4000-8000-000000000002"))
    newest = queries.results(store.engine, Filter(newest_only=True))
    assert sorted((row.device, row.p50_ms) for row in newest) == [("desk", 6.0), ("other", 7.0)]


def test_a_run_marked_bad_is_not_the_newest_but_stays(store: Any, make_bundle: Maker) -> None:
    bad = make_bundle(p50=60.0, started_at="2026-07-01T10:00:00+00:00")
    ingest(store.engine, make_bundle(p50=5.0))
    ingest(store.engine, bad)
    before = queries.data_version(store.engine)
    annotate(store.engine, read_run(bad.record).run_id, "Fan was\n blocked", "Ann", bad=True)
    assert queries.data_version(store.engine) == before + 1
    assert [row.p50_ms for row in queries.results(store.engine, Filter(newest_only=True))] == [5.0]
    marked = queries.results(store.engine)[0]
    assert marked.p50_ms == 60.0
    assert marked.annotations[0].startswith("bad: Fan was blocked (Ann, 20")


def test_what_was_skipped_does_not_push_out_what_was_measured(store: Any, make_bundle: Maker) -> None:
    def skip(run: Run) -> Run:
        missed = replace(run.measurements[0], status="skipped", reason="The run was interrupted.", latency_ms=None)
        return replace(run, measurements=(replace(missed, trials=()),), status="interrupted")

    def newest() -> list[tuple[str, float | None]]:
        return [(row.status, row.p50_ms) for row in queries.results(store.engine, Filter(newest_only=True))]

    ingest(store.engine, make_bundle(change=skip))
    assert newest() == [("skipped", None)], "nothing else is known of the case"
    ingest(store.engine, make_bundle(p50=5.0, started_at="2026-04-01T10:00:00+00:00"))
    assert newest() == [("ok", 5.0)], "an older one that was measured stands"
    measured = make_bundle(p50=6.0, started_at="2026-06-01T10:00:00+00:00")
    ingest(store.engine, measured)
    ingest(store.engine, make_bundle(change=skip, started_at="2026-07-01T10:00:00+00:00"))
    assert newest() == [("ok", 6.0)]
    annotate(store.engine, read_run(measured.record).run_id, "Fan was blocked", "Ann", bad=True)
    assert newest() == [("ok", 5.0)]


def test_a_resumed_run_is_newer_than_its_interrupted_part(store: Any, make_bundle: Maker) -> None:
    def interrupt(run: Run) -> Run:
        return replace(run, status="interrupted", finished_at="2026-05-01T10:01:00+00:00")

    for order in (1, -1):
        parts = [make_bundle(p50=5.0, workloads=(f"w{order}",), change=interrupt)]
        parts.append(make_bundle(p50=6.0, workloads=(f"w{order}",)))
        for part in parts[::order]:
            ingest(store.engine, part)
    assert [row.p50_ms for row in queries.results(store.engine, Filter(newest_only=True))] == [6.0, 6.0]
    (history,) = histories(store.engine)
    assert [pair.previous for pair in history.pairs] == [None], "a part of itself is nothing to be compared with"


def test_annotations_need_a_run_and_a_text(store: Any, make_bundle: Maker) -> None:
    with pytest.raises(StoreError, match="no run"):
        annotate(store.engine, "00000000-0000-4000-8000-000000000000", "x", "Ann")
    with pytest.raises(UsageError, match="1 to 2000"):
        annotate(store.engine, "x", "  ", "Ann")


def test_facets_list_what_occurs(store: Any, make_bundle: Maker) -> None:
    empty = queries.facets(store.engine)
    assert empty.families == empty.sources == ()
    ingest(store.engine, make_bundle(workloads=("resnet50-seeded", "minilm-l6"), backends=("openvino", "onnxruntime")))
    seen = queries.facets(store.engine)
    assert seen.families == ("minilm-l6", "resnet50")
    assert seen.workloads == ("minilm-l6", "resnet50-seeded")
    assert seen.hardware == ("Test CPU 9000",)
    assert (seen.devices, seen.backends) == (("desk",), ("onnxruntime", "openvino"))
    assert (seen.scenarios, seen.statuses, seen.sources) == (("single_stream",), ("ok",), ("weighbridge",))


def test_the_number_of_queries_does_not_grow_with_the_rows(store: Any, make_bundle: Maker) -> None:
    ingest(store.engine, make_bundle(workloads=("a",)))
    with statements(store.engine) as few:
        queries.results(store.engine)
    ingest(store.engine, make_bundle(workloads=tuple("bcdefghij"), backends=("x", "y", "z")))
    with statements(store.engine) as many:
        assert len(queries.results(store.engine)) == 28
    assert len(few) == len(many) == 2
    with statements(store.engine) as detail:
        queries.run_detail(store.engine, queries.run_list(store.engine, 1)[0].run_id)
    assert len(detail) <= 10


def test_runs_are_listed_newest_first_with_how_many_are_ok(store: Any, make_bundle: Maker) -> None:
    def break_one(run: Run) -> Run:
        broken = replace(run.measurements[0], status="failed", reason="The worker was killed.", latency_ms=None)
        return replace(run, measurements=(broken, *run.measurements[1:]), status="interrupted")

    ingest(store.engine, make_bundle(workloads=("a", "b"), change=break_one))
    ingest(store.engine, make_bundle(workloads=("a",), started_at="2026-06-01T10:00:00+00:00"))
    listed = queries.run_list(store.engine)
    assert [(run.measurements, run.ok, run.status) for run in listed] == [(1, 1, "complete"), (2, 1, "interrupted")]
    assert len(queries.run_list(store.engine, 1)) == 1
    assert listed[1].finished_at is not None
    assert listed[1].finished_at.isoformat() == "2026-05-01T10:02:00+00:00"


def test_a_runs_detail_has_everything_about_it(store: Any, make_bundle: Maker) -> None:
    bundle = make_bundle(workloads=("a", "b"))
    ingest(store.engine, bundle)
    run = read_run(bundle.record)
    detail = queries.run_detail(store.engine, run.run_id)
    assert detail.run.run_id == run.run_id
    assert detail.record_sha256 == bundle.sha256
    assert detail.environment == {
        "digest": run.environment.digest,
        "machine": {"cpu": "Test CPU 9000"},
        "configuration": {"os": "Debian 13"},
        "conditions": {"load": 0.1},
    }
    assert detail.device["hardware_model"] == "Test machine"
    assert detail.device["compute_units"] == [
        {"name": "cpu", "kind": "cpu", "hardware_model": "Test CPU 9000", "count": 1, "memory_bytes": None}
    ]
    assert [row.workload for row in detail.rows] == ["a", "b"]
    assert [(trial["trial_id"], trial["kind"]) for trial in detail.trials] == [("t1", "timing"), ("t2", "accuracy")] * 2
    assert [blob["what"] for blob in detail.trials[0]["samples"]] == ["latency_ns"]
    with pytest.raises(StoreError, match="no run"):
        queries.run_detail(store.engine, "missing")


def test_raw_samples_come_back_to_the_nanosecond(store: Any, make_bundle: Maker) -> None:
    bundle = make_bundle()
    ingest(store.engine, bundle)
    (blob,) = bundle.blobs.values()
    measurement = read_run(bundle.record).measurements[0].measurement_id
    samples = queries.trial_samples(store.engine, measurement)
    assert samples.dtype == np.int64
    assert samples.tobytes() == zlib.decompress(blob)
    assert queries.trial_samples(store.engine, "none").size == 0


def test_samples_that_no_figure_uses_are_left_out_in_front(store: Any, make_bundle: Maker) -> None:
    def unsettled(run: Run) -> Run:
        (first, *others) = run.measurements[0].trials
        trials = (replace(first, discarded_unsteady=2), *others)
        return replace(run, measurements=(replace(run.measurements[0], trials=trials),))

    bundle = make_bundle(change=unsettled)
    ingest(store.engine, bundle)
    (blob,) = bundle.blobs.values()
    measurement = read_run(bundle.record).measurements[0].measurement_id
    samples = queries.trial_samples(store.engine, measurement)
    assert samples.tobytes() == zlib.decompress(blob)[16:]  # two of eight bytes each


def test_an_unknown_batch_is_none(store: Any, make_bundle: Maker) -> None:
    def unknown_batch(run: Run) -> Run:
        case = replace(run.measurements[0].case, batch=0)
        measurement = replace(run.measurements[0], case=case, case_key=case.key)
        return replace(run, measurements=(measurement,), source=Source("imported", "Somebody"))

    ingest(store.engine, make_bundle(change=unknown_batch))
    assert queries.results(store.engine)[0].batch is None


def test_json_has_the_record_beside_device_and_run(store: Any, make_bundle: Maker) -> None:
    bundle = make_bundle()
    ingest(store.engine, bundle)
    run = read_run(bundle.record)
    (document,) = measurement_documents(store.engine, Filter())
    assert document["case"]["workload"] == "resnet50-seeded"
    assert document["latency_ms"]["p50"]["value"] == 5.0
    assert document["cold_start_ms"]["import"] == 100.0
    assert document["device"]["uuid"] == run.device.uuid
    assert document["run"]["run_id"] == run.run_id
    assert document["run"]["source"]["kind"] == "measured"
    assert document["run"]["record_sha256"] == bundle.sha256


def test_environments_come_by_digest_and_ids_by_their_beginning(store: Any, make_bundle: Maker) -> None:
    bundle = make_bundle()
    ingest(store.engine, bundle)
    (row,) = queries.results(store.engine)
    found = queries.environments(store.engine, [row.environment_digest, "0" * 64])
    assert found == {
        row.environment_digest: {"machine": {"cpu": "Test CPU 9000"}, "configuration": {"os": "Debian 13"}}
    }
    assert queries.environments(store.engine, []) == {}
    assert queries.identified(store.engine, row.run_id[:8])[0].run_ids == (row.run_id,)
    (one,) = queries.identified(store.engine, row.measurement_id)
    assert [found.measurement_id for found in queries.results(store.engine, one)] == [row.measurement_id]
    assert queries.identified(store.engine, "%") == []
