"""The pages on a run in which every scenario, precision, flag and gate occurs. Expected numbers are those of rich_run.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

VIEWS = Path(__file__).parents[3] / "dashboard" / "views"
OpenPage = Callable[..., AppTest]


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch, rich_store: Any) -> OpenPage:
    """Run a page's script on the rich store."""
    import streamlit as st

    st.cache_data.clear()
    st.cache_resource.clear()
    monkeypatch.setenv("WEIGHBRIDGE_STORE", rich_store.url)

    def run(page: str, **parameters: str | list[str]) -> AppTest:
        app = AppTest.from_file(str(VIEWS / f"{page}.py"), default_timeout=60)
        for name, value in parameters.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception and not app.error
        return app

    return run


@pytest.fixture
def run_page(open_page: OpenPage, rich_store: Any) -> OpenPage:
    """The Run page of a measurement of lab-a, named by what tells it apart."""
    from db.queries import Filter, results
    from db.store import open_store

    store = open_store(rich_store.url)
    rows = [row for row in results(store.engine, Filter(limit=1000)) if row.device == "lab-a"]
    store.close()

    def run(address: dict[str, str] | None = None, **wanted: Any) -> AppTest:
        row = next(row for row in rows if all(getattr(row, name) == value for name, value in wanted.items()))
        return open_page("run", run=row.run_id, measurement=row.measurement_id, **(address or {}))

    return run


def shown(app: AppTest) -> str:
    """All that a reader can read, without the backslashes that keep foreign text from being markdown."""
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "code", "metric", "expander")
    parts = [str(getattr(item, "value", "")) for kind in kinds for item in app.get(kind)]
    parts += [f"{item.label} {item.delta}" for item in app.get("metric")]
    parts += [str(item.label) for item in app.get("expander")]
    parts += [frame.value.to_csv() for frame in [*app.table, *app.dataframe]]
    return "\n".join(parts).replace("\\", "")


def metric(app: AppTest, label: str) -> str:
    return str(next(item.value for item in app.get("metric") if item.label.startswith(label)))


def test_results_show_trust_gate_interval_precisions_and_placement(open_page: OpenPage) -> None:
    table = open_page("results", device=["lab-a"]).dataframe[0].value

    def row(**wanted: str) -> Any:
        found = table
        for name, value in wanted.items():
            found = found[found[name.replace("_", " ")] == value]
        return found.iloc[0]

    plain = row(Precision_ran="fp32", Backend_and_target="onnxruntime cpu", Scenario="Single stream")
    assert (plain["Trust"], plain["Gate"], plain["95 % interval or range"]) == ("A", "passed", "9.80 to 10.2")
    assert plain["Trials"] == 9
    vendor = row(Precision_ran="bf16")
    assert vendor["Precision asked"] == "vendor's default, file fp32"
    mixed = row(Backend_and_target="tflite cpu")
    assert mixed["Placement"] == "mixed: CPU 34 % (10 % of time), XNNPACK 66 % (90 % of time)"
    assert mixed["95 % interval or range"] == "range 8.55 to 9.45"
    assert "other load" in mixed["Flags"] and "Other processes used 31 %" in mixed["Doubts"]
    auto = row(Backend_and_target="openvino auto (ran on CPU)")
    assert auto["Status"] == "ok"
    broken = row(Precision_ran="int4")
    assert (broken["Status"], broken["Gate"], broken["Trust"]) == ("ok, failed the accuracy gate", "failed", "F")
    assert table.iloc[-1]["Gate"] == "failed"  # the fastest of all stands last


def test_compare_gives_verdicts_with_reasons_intervals_and_environments(open_page: OpenPage) -> None:
    app = open_page("compare")
    overview = app.table[0].value.map(lambda cell: str(cell).replace("\\", "")).set_index("System")
    overview.index = [str(name).replace("\\", "") for name in overview.index]
    (other,) = [name for name in overview.index if "revision 2, onnxruntime cpu, fp32 model" in name]
    assert overview.loc[other]["Single stream verdict"] == "like for like"
    # 10 ms (9.8 to 10.2) over 7.69 ms (7.54 to 7.85): a ratio of 0.769 from 7.54 / 10.2 to 7.85 / 9.8
    assert overview.loc[other]["Single stream ÷ baseline"] == "0.769\u00a0× (0.739 to 0.801)"
    assert overview.loc[other]["Energy (mJ/inference)"] == "238 (cpu_package)"
    single = app.table[1].value.map(lambda cell: str(cell).replace("\\", ""))
    assert list(single["System"])[-1].endswith("failed the accuracy gate")
    verdicts = set(single["Verdict"]) - {""}
    assert verdicts == {"like for like", "tuned", "with caveats", "not comparable"}
    page = shown(app)
    assert "It failed the accuracy gate (it keeps 62.2 % of the reference; 99 % is asked for)." in page
    assert "The accuracy gate of it is undecided" in page
    assert (
        "It is 1.3 times as fast as the baseline at p50 (95 % interval 1.25 to 1.35, 1 unit of each measured)" in page
    )
    assert "power setting governor" in page and "powersave" in page


def test_a_run_page_tells_how_it_was_sampled_and_why_to_doubt(run_page: OpenPage) -> None:
    page = shown(run_page(artifact_precision="int8"))
    for text in (
        "1 unit measured",
        "the interval was narrow enough",
        "96 samples in 8 trials",
        "none: more than half would have to go",
        "other load 2.00 %, steal 0.400 %, 2,400 to 3,100 MHz, 61.0 to 72.5 °C",
        "Trust B: 1 reason for doubt",
        "about 770 samples would decide",
        "95 % interval 96.50 to 100.00 %",
        "Calibrated with",
        "Fidelity, smallest cosine",
        "governor of cpu0",
        "put back",
    ):
        assert text in page, text
    # 0.14 us of 4 ms
    assert "The harness itself is 0.00350 % of the median latency." in page


@pytest.mark.parametrize(
    ("limit", "percentile", "answer"),
    [("", "p99", "50.0"), ("25", "p99", "70.0"), ("12", "p90", "20.0"), ("5", "p99", "none of those measured")],
)
def test_any_limit_can_be_asked_of_a_rate_curve(run_page: OpenPage, limit: str, percentile: str, answer: str) -> None:
    app = run_page({"limit": limit, "at": percentile} if limit else {"at": percentile}, scenario="server")
    assert metric(app, "Highest rate") == answer
    assert "Recorded for the workload's own limit of 20.0 ms at p99: 50.0 queries/s." in shown(app)


def test_a_limit_that_is_no_number_is_said(run_page: OpenPage) -> None:
    assert "fast is no number of milliseconds" in shown(run_page({"limit": "fast"}, scenario="server"))


def test_a_sustained_run_says_its_drift(run_page: OpenPage) -> None:
    page = shown(run_page(scenario="sustained"))
    assert "**1.20 times** the median latency of the first fifth (95 % interval 1.17 to 1.24): **slower**" in page


def test_cold_starts_stand_beside_each_other(run_page: OpenPage) -> None:
    app = run_page(scenario="cold_start", scenario_parameters={"file_cache": "cold", "compile_cache": "off"})
    assert metric(app, "First answer") == "1,220"  # 140 + 690 + 310 + 75
    assert "Starts, part by part" in shown(app)


def test_the_idle_penalty_is_over_requests_without_a_pause(run_page: OpenPage) -> None:
    app = run_page(scenario="duty_cycle")
    assert metric(app, "Idle penalty") == "1.60 ×"
    assert metric(app, "Median without a pause") == "10.0"
    assert "95 % interval 1.52 to 1.68" in shown(app)


def test_a_sweep_names_its_knee_and_its_cliff(run_page: OpenPage) -> None:
    page = shown(run_page(scenario="offline", batch=8))
    assert "the knee is at 8" in page  # 330 of 335 per second
    assert "From batch 16 to 32 throughput falls by 37%" in page


def test_mixed_placement_and_auto_are_named(run_page: OpenPage) -> None:
    assert "mixed: CPU 34 % (10 % of time), XNNPACK 66 % (90 % of time)" in shown(run_page(backend="tflite"))
    assert "the runtime chose: CPU" in shown(run_page(target="auto"))


def test_digests_stand_whole(run_page: OpenPage) -> None:
    codes = "\n".join(item.value for item in run_page(scenario="sustained").code)
    assert "a" * 64 in codes  # the source weights
    assert codes.count("latency_ns") == 9
