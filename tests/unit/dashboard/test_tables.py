"""Tables and text: units in headers, three significant figures, gaps by name, and foreign text taken at its word."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.grids import overview_grid, section_grid
from dashboard.provenance import artifact_grid, execution_grid, numbers_grid
from dashboard.tables import flatten, grid_csv, grid_frame, results_csv, results_table, run_address
from dashboard.trial_grids import blob_lines, trials_grid
from dashboard.wording import markdown_cell, number, plain, significant, spreadsheet_safe
from db.queries import ResultRow
from harness.judgement.comparison import compare
from harness.judgement.systems import default_baseline

MakeRow = Callable[..., ResultRow]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.469708, "0.470"),
        (61.2, "61.2"),
        (100.04, "100"),
        (999.9, "1,000"),
        (39152.4, "39,200"),
        (0.00753, "0.00753"),
        (0.0000123, "1.23e-05"),
        (2.5e9, "2.50e+09"),
        (0, "0"),
        (9.999, "10.0"),
        (None, "not measured"),
    ],
)
def test_numbers_have_three_significant_figures(value: float | None, text: str) -> None:
    assert number(value, "not measured") == text


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_rounding_changes_at_most_half_a_unit_of_the_third_figure(value: float) -> None:
    assert abs(significant(value) - value) <= value * 0.005 * (1 + 1e-9)


def test_markdown_of_a_device_is_shown_and_not_obeyed() -> None:
    assert plain("**[x](javascript:1)** <b> :red[a]\n# b") == (r"\*\*\[x\]\(javascript\:1\)\*\* \<b\> \:red\[a\] \# b")
    assert "\n" not in plain("a\r\nb\tc")
    assert markdown_cell("a|b<c>") == r"a\|b&lt;c>"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_a_csv_cell_is_no_formula(text: str) -> None:
    assert spreadsheet_safe(text) == f"'{text}"
    assert spreadsheet_safe("plain") == "plain"


def test_the_results_table_has_units_and_rounded_numbers(make_row: MakeRow) -> None:
    frame = results_table([make_row(p50_ms=61.2345, throughput_per_s=16.33, accuracy_value=0.867257, energy_j=0.01234)])
    row = frame.iloc[0]
    assert (row["p50 (ms)"], row["Throughput (samples/s)"]) == (61.2, 16.3)
    assert (row["Accuracy (%)"], row["Energy (mJ/inference)"]) == (86.7, 12.3)
    assert row["Run"] == "run?run=r-1&measurement=m-1"


def test_refused_rows_stay_in_the_table_with_their_reason(make_row: MakeRow) -> None:
    refused = make_row(
        target="cuda", status="unsupported", reason="libcudart is not here", hardware_model=None, p50_ms=None
    )
    row = results_table([refused]).iloc[0]
    assert (row["Status"], row["Reason"], row["Hardware"]) == ("unsupported", "libcudart is not here", "not known")
    assert results_table([]).empty


def test_another_target_than_the_requested_one_is_named(make_row: MakeRow) -> None:
    assert results_table([make_row(target="auto")]).iloc[0]["Backend and target"] == "onnxruntime auto (ran on cpu)"
    assert results_table([make_row()]).iloc[0]["Backend and target"] == "onnxruntime cpu"


def test_the_csv_has_every_field_at_full_precision(make_row: MakeRow) -> None:
    text = results_csv([make_row(p50_ms=61.23456789, device="=cmd", flags=(("noisy", "31 % load"),))])
    (row,) = csv.DictReader(io.StringIO(text))
    assert float(row["p50_ms"]) == 61.23456789
    assert row["device"] == "'=cmd"
    assert row["started_at"] == "2026-05-01T10:00:00+00:00"
    assert row["flags"] == '[["noisy", "31 % load"]]'
    assert row["energy_j"] == ""


def test_addresses_are_escaped() -> None:
    assert run_address("a b&c", None) == "run?run=a+b%26c"


def test_the_overview_puts_scenarios_side_by_side_and_names_gaps(make_row: MakeRow) -> None:
    rows = [
        make_row(),
        make_row(scenario="offline", p50_ms=None, throughput_per_s=20.0),
        make_row(backend="openvino", p50_ms=25.0),
        make_row(backend="coreml", status="unsupported", reason="Core ML needs macOS.", p50_ms=None),
    ]
    baseline = default_baseline(rows)
    assert baseline is not None
    grid = overview_grid(compare(rows, baseline.id))
    by_system = dict(zip(grid.column("System"), grid.rows, strict=True))
    single, offline = (
        grid.headers.index("Single stream: p50 (ms)"),
        grid.headers.index("Offline: Throughput (samples/s)"),
    )
    assert by_system["Acme CPU 9000, onnxruntime cpu (baseline)"][single] == "50.0"
    assert by_system["Acme CPU 9000, openvino cpu"][single] == "25.0"
    assert by_system["Acme CPU 9000, openvino cpu"][single + 1] == "0.500\u00a0×"
    assert by_system["Acme CPU 9000, openvino cpu"][offline] == "not measured"
    assert by_system["Acme CPU 9000, coreml cpu"][single] == "unsupported"


def test_a_section_shows_the_declared_value_beside_p90(make_row: MakeRow) -> None:
    rows = [
        make_row(),
        make_row(
            source_kind="imported", source_name="MLPerf", hardware_model="NVIDIA T4", p90_ms=0.818142,
            official_metric="early_stopping_p90_latency", official_value=0.918169, official_unit="ms",
        ),
    ]  # fmt: skip
    baseline = default_baseline(rows)
    assert baseline is not None
    comparison = compare(rows, baseline.id)
    grid = section_grid(comparison.sections[0], baseline)
    assert grid.column("p90 (ms)") == ("60.0", "0.818")
    assert grid.column("Declared (ms)") == ("", "0.918 (early-stopping p90)")
    assert grid.column("Source") == ("measured here", "MLPerf")
    assert "statistic" in grid.column("Differs in")[1]
    assert grid_frame(grid).shape == (2, len(grid.headers))
    assert grid_csv(grid).splitlines()[0].startswith("System,Model,p50 (ms)")


def test_every_number_says_how_it_was_taken_or_why_it_is_missing(make_row: MakeRow) -> None:
    row = make_row(
        p99_9_ms=None,
        quantiles={
            "p99_9": {"value": None, "reason": "1000 samples are too few."},
            "p50": {"low": 49.0, "high": 51.0, "method": "floor(n p), range of 3 trials"},
        },
        energy_reason="no counter",
        accuracy_reason="seeded weights",
        cold_start_ms={"import": 200.0, "compile": None, "caches": {"page cache": "warm"}},
    )
    lines = {line[0]: line for line in numbers_grid(row).rows}
    assert lines["p99.9"] == ("p99.9", "", "ms", "1000 samples are too few.")
    assert lines["p50"] == ("p50", "50.0", "ms", "floor(n p), range of 3 trials, 49.0 to 51.0 ms")
    assert lines["Energy per inference"] == ("Energy per inference", "", "mJ", "no counter")
    assert lines["Accuracy"] == ("Accuracy", "", "%", "seeded weights")
    assert lines["Cold start, import"] == (
        "Cold start, import",
        "200",
        "ms",
        "median of the trials; caches: page cache warm",
    )
    assert "Cold start, compile" not in lines
    assert all(line[1] or line[3] for line in lines.values())


def test_offline_says_that_queue_times_are_no_latency(make_row: MakeRow) -> None:
    row = make_row(scenario="offline", p50_ms=None, latency_count=None)
    assert numbers_grid(row).rows[0] == ("Latency", "", "ms", "offline queue times are no latency")


def test_requested_and_effective_stand_side_by_side(make_row: MakeRow) -> None:
    row = make_row(
        requested_precision="default", effective_precision="bf16", threads=None, effective_threads=2,
        effective={"placement": {"nodes": {"CPU": 0.75, "NPU": 0.25}}, "devices": ["CPU", "NPU"]},
    )  # fmt: skip
    lines = {line[0]: line[1:] for line in execution_grid(row).rows}
    assert lines["Precision"] == ("the vendor's default, model file fp32", "bf16")
    assert lines["Threads"] == ("the runtime's default", "2")
    assert lines["Streams"] == ("the runtime's default", "not told by the runtime")
    assert lines["Placement of nodes"][1] == "CPU 75 %, NPU 25 %"


def test_lineage_goes_down_to_the_source(make_row: MakeRow) -> None:
    known = {
        "name": "x.onnx",
        "sha256": "b" * 64,
        "bytes": 18_500_000,
        "source": "pypi:p==1!x",
        "tools": {"onnx": "1.19"},
    }
    lines = dict(artifact_grid(make_row(), known).rows)
    assert (lines["SHA-256"], lines["Size"], lines["Tools"]) == ("b" * 64, "18.5 MB", "onnx 1.19")
    assert lines["Recipe"] == "not recorded"
    assert dict(artifact_grid(make_row(), None).rows)["Model file"] == "no model file is recorded for this measurement"


def test_trials_are_listed_with_their_windows() -> None:
    trial = {"trial_id": "t1", "kind": "timing", "status": "ok", "window_start_ns": 10**9, "window_end_ns": 3 * 10**9,
             "discarded_warmup": 12, "throughput_per_s": 20.0, "reason": None,
             "samples": [{"what": "latency_ns", "count": 40, "sha256": "c" * 64}]}  # fmt: skip
    assert trials_grid([trial]).rows == (("t1", "timing", "ok", "2.00", "20.0", "12", "", "", "latency_ns: 40", ""),)
    assert blob_lines([trial]) == [f"{'c' * 64}  t1 latency_ns"]


def test_nested_facts_become_dotted_names() -> None:
    flat = flatten({"os": {"name": "Debian", "kernel": None}, "gpus": ["a", "b"]})
    assert flat == {"os.name": "Debian", "os.kernel": "not known", "gpus": "a, b"}
