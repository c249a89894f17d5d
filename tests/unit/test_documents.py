"""A run record survives its journey to the byte, and nothing that is not one gets through the door."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.canonical import canonical_json
from harness.documents import Bundle, read_run, write_run
from harness.errors import RecordError
from harness.records import (
    Case,
    ColdStart,
    Device,
    Environment,
    Latency,
    Measurement,
    Quantile,
    Run,
    SampleBlob,
    Source,
    SuiteRef,
    Trial,
)


def _run(mean_ms: float | None = 1.5) -> Run:
    case = Case("resnet50-seeded", None, "ab" * 32, "fp32", "fp32", "onnxruntime", "cpu", "cpu", "single_stream")
    too_few = Quantile(None, reason="needs 1000 samples, has 400")
    latency = Latency(400, mean_ms, 1.0, 9.0, *[Quantile(1.0)] * 4, too_few)
    trial = Trial("t1", "timing", "ok", samples=(SampleBlob("latency_ns", "cd" * 32, 400, 900),))
    measurement = Measurement(
        "m1", case, case.key, "ok", latency_ms=latency, cold_start_ms=ColdStart(import_=200.0), trials=(trial,)
    )
    return Run(
        run_id="8c7ab2f6-2c3c-4f5e-9a53-0a9a7a0c9f10",
        status="complete",
        device=Device("bench-1", "u1", "Raspberry Pi 5 8 GB"),
        environment=Environment({"cpu": "x"}, {"kernel": "6.1"}),
        suite=SuiteRef("quick", "1", "ef" * 32),
        trigger="manual",
        started_at="2026-12-01T10:00:00Z",
        finished_at=None,
        source=Source("measured", "weighbridge"),
        measurements=(measurement,),
    )


def _changed(*path: Any, value: Any) -> bytes:
    document = json.loads(write_run(_run()))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return canonical_json(document)


def test_what_is_written_is_read_back() -> None:
    assert read_run(write_run(_run())) == _run()


def test_cold_start_names_its_part_import_in_json() -> None:
    document = json.loads(write_run(_run()))
    assert document["measurements"][0]["cold_start_ms"]["import"] == 200.0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_survives(number: float) -> None:
    found = read_run(write_run(_run(number))).measurements[0].latency_ms
    assert found is not None
    assert found.mean == number


@pytest.mark.parametrize("field", ["thermal", "conditions"])
def test_a_number_that_reads_as_infinite_is_refused_where_any_json_may_stand(field: str) -> None:
    """SQLite would keep it as what is no JSON, and PostgreSQL refuse the whole run in words of its own."""
    document = json.loads(write_run(_run()))
    measurement = document["measurements"][0]
    (measurement if field == "thermal" else measurement["trials"][0])[field] = {"k": "HERE"}
    with pytest.raises(RecordError, match="too large"):
        read_run(canonical_json(document).replace(b'"HERE"', b"1e999"))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_when_written(number: float) -> None:
    with pytest.raises(RecordError, match="not finite"):
        write_run(_run(number))


def test_nan_is_refused_when_read() -> None:
    data = write_run(_run()).replace(b'"mean":1.5', b'"mean":NaN')
    assert b"NaN" in data
    with pytest.raises(RecordError, match="NaN"):
        read_run(data)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("measurements", 0, "surprise"), 1, "surprise"),
        (("measurements", 0, "latency_ms", "mean"), "1.5", "latency_ms.mean"),
        (("measurements", 0, "status"), "splendid", "status"),
        (("device",), None, "device"),
        (("schema",), "weighbridge/run/2", "weighbridge/run/2"),
        (("measurements", 0, "case", "batch"), 2, "case_key"),
    ],
)
def test_a_record_that_is_wrong_is_refused_by_name(path: tuple[Any, ...], value: Any, said: str) -> None:
    with pytest.raises(RecordError) as refused:
        read_run(_changed(*path, value=value))
    assert said in str(refused.value)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"null", b'{"schema": 3}', b"[" * 100_000])
def test_what_is_no_record_is_one_sentence(data: bytes) -> None:
    with pytest.raises(RecordError):
        read_run(data)


def test_a_case_key_does_not_depend_on_what_happened_or_on_key_order() -> None:
    one = Case("w", None, None, "fp32", "fp32", "openvino", "cpu", None, "offline", {"a": 1, "b": 2})
    two = Case("w", None, None, "fp32", "fp32", "openvino", "cpu", None, "offline", {"b": 2, "a": 1})
    assert one.key == two.key
    assert one.key != Case("w", None, None, "int8", "fp32", "openvino", "cpu", None, "offline", {"a": 1, "b": 2}).key


def test_a_bundle_is_known_by_the_bytes_of_its_record() -> None:
    # SHA-256 of the empty input, from FIPS 180-4's published examples.
    assert Bundle(b"").sha256 == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
