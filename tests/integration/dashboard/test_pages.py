"""Each page on a store that is empty, has one run, has many: what it says, and that an address gives the view it names."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

VIEWS = Path(__file__).parents[3] / "dashboard" / "views"
PAGES = ("results", "compare", "run")
OpenPage = Callable[..., AppTest]


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """Run a page's script on a store, with an address's parameters, and return what it drew."""
    import streamlit as st

    st.cache_data.clear()
    st.cache_resource.clear()

    def run(page: str, store: str, **parameters: str | list[str]) -> AppTest:
        monkeypatch.setenv("WEIGHBRIDGE_STORE", store)
        app = AppTest.from_file(str(VIEWS / f"{page}.py"), default_timeout=60)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return run


def texts(app: AppTest) -> str:
    """All that a reader can read, tables included."""
    kinds = ("title", "subheader", "markdown", "caption", "info", "warning", "error", "code", "metric")
    parts = [str(getattr(item, "value", "")) for kind in kinds for item in app.get(kind)]
    parts += [f"{item.label}" for item in app.get("metric")]
    parts += [frame.value.to_csv() for frame in [*app.table, *app.dataframe]]
    return "\n".join(parts)


def shown(app: AppTest) -> str:
    """The same, without the backslashes that keep foreign text from being markdown."""
    return texts(app).replace("\\", "")


@pytest.mark.parametrize("page", PAGES)
def test_an_empty_store_says_what_to_type_next(open_page: OpenPage, empty_store: Any, page: str) -> None:
    app = open_page(page, empty_store.url)
    assert not app.exception and not app.error
    assert "weigh run quick" in app.code[0].value
    assert "weigh import reference" in app.code[0].value
    assert "Data as of" in shown(app)


@pytest.mark.parametrize("page", PAGES)
def test_a_missing_store_is_a_sentence_with_the_way_out(open_page: OpenPage, tmp_path: Path, page: str) -> None:
    app = open_page(page, f"sqlite:///{tmp_path / 'none.sqlite'}")
    assert not app.exception
    assert "There is no database at" in shown(app) and "What to do" in shown(app)


@pytest.mark.parametrize("page", PAGES)
def test_a_file_that_is_no_database_is_a_sentence(open_page: OpenPage, tmp_path: Path, page: str) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"not a database at all, just some text" * 100)
    app = open_page(page, f"sqlite:///{tmp_path / 'x.sqlite'}")
    assert not app.exception and len(app.error) == 1
    assert "Traceback" not in shown(app)


def test_a_store_that_breaks_under_the_page_is_a_sentence(open_page: OpenPage, tmp_path: Path) -> None:
    from db.store import open_store

    path = tmp_path / "x.sqlite"
    open_store(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE measurements")
    app = open_page("results", f"sqlite:///{path}")
    assert not app.exception and len(app.error) == 1
    assert "refused: no such table: measurements" in shown(app)


@pytest.mark.parametrize("page", PAGES)
def test_one_run_is_shown(open_page: OpenPage, one_run_store: Any, page: str) -> None:
    app = open_page(page, one_run_store.url)
    assert not app.exception and not app.error
    assert "Acme CPU 9000" in shown(app)


@pytest.mark.parametrize("page", PAGES)
def test_postgresql_shows_the_same(open_page: OpenPage, postgres_run_store: Any, page: str) -> None:
    app = open_page(page, postgres_run_store.url)
    assert not app.exception and not app.error
    assert "Acme CPU 9000" in shown(app)
    assert "Data as of" in shown(app)


def test_results_keep_refused_and_failed_rows_with_their_reasons(open_page: OpenPage, one_run_store: Any) -> None:
    app = open_page("results", one_run_store.url)
    table = app.dataframe[0].value
    by_status = table.set_index("Status")["Reason"]
    assert "libcudart.so.13 is not installed" in by_status["unsupported"]
    assert "signal 9" in by_status["failed"]
    assert list(table["Status"]).count("ok") == 6


def test_an_address_filters_the_results(open_page: OpenPage, many_run_store: Any) -> None:
    app = open_page("results", many_run_store.url, hardware=["NVIDIA T4"], scenario=["offline"])
    table = app.dataframe[0].value
    assert list(table["Hardware"]) == ["NVIDIA T4"]
    assert list(table["Throughput (samples/s)"]) == [6120.0]
    assert app.multiselect(key="hardware").value == ["NVIDIA T4"]


def test_a_search_and_an_older_run_by_address(open_page: OpenPage, many_run_store: Any) -> None:
    found = open_page("results", many_run_store.url, q="openvino seeded single").dataframe[0].value
    assert len(found) == 1
    everything = open_page("results", many_run_store.url, q="openvino seeded single", newest="false").dataframe[0].value
    assert len(everything) == 2


def test_a_filter_that_nothing_passes_is_said(open_page: OpenPage, many_run_store: Any) -> None:
    app = open_page("results", many_run_store.url, q="no such thing")
    assert not app.exception
    assert "None of the" in shown(app)


def test_a_value_in_the_address_that_the_store_does_not_have_is_ignored(
    open_page: OpenPage, many_run_store: Any
) -> None:
    app = open_page("results", many_run_store.url, hardware=["Gone 1"])
    assert not app.exception
    assert len(app.dataframe[0].value) == 15


def test_each_row_leads_to_its_measurement(open_page: OpenPage, one_run_store: Any) -> None:
    table = open_page("results", one_run_store.url).dataframe[0].value
    run = one_run_store.runs["bench-1"]
    assert set(table["Run"]) == {
        f"run?run={run}&measurement={measurement}" for measurement in one_run_store.measurements.values()
    }


def test_compare_shows_this_machine_beside_published_hardware(open_page: OpenPage, many_run_store: Any) -> None:
    """ResNet-50 here (seeded weights, no accuracy) beside A100, T4 and Raspberry Pi 4; A100, T4 and Xeon offline."""
    app = open_page("compare", many_run_store.url, family="resnet50")
    assert not app.exception
    overview = app.table[0].value.map(lambda cell: str(cell).replace("\\", "")).set_index("System")
    overview.index = [str(name).replace("\\", "") for name in overview.index]

    def row(words: str) -> Any:
        (name,) = [name for name in overview.index if words in name]
        return overview.loc[name]

    single, offline = "Single stream: p50 (ms)", "Offline: Throughput (samples/s)"
    here = row("(baseline)")
    assert here["Model"] == "ResNet-50, seeded weights"
    assert (here["Accuracy (%)"], here["Source"]) == ("not measured", "measured here")
    assert (row("A100")[single], row("A100")[offline]) == ("0.470", "39,200")
    assert (row("T4")[single], row("T4")[offline]) == ("0.812", "6,120")
    assert (row("Raspberry")[single], row("Raspberry")[offline]) == ("553", "no offline result")
    assert (row("Xeon")[single], row("Xeon")[offline]) == ("no single stream result", "20,600")
    assert row("A100")["Source"] == "MLPerf Inference v3.0, closed, NVIDIA"
    assert row("Xeon")["Energy (mJ/inference)"] == "31.2 (wall), offline"
    assert row("cuda")[single] == "unsupported"
    assert "libcudart.so.13 is not installed" in shown(app)
    assert "early-stopping p90" in shown(app)


def test_the_baseline_of_the_address_is_taken(open_page: OpenPage, many_run_store: Any) -> None:
    options = open_page("compare", many_run_store.url, family="resnet50").selectbox(key="baseline").options
    assert len(options) == 9
    from db.queries import Filter, results
    from db.store import open_store
    from harness.judgement.systems import one_matching, systems_of

    store = open_store(many_run_store.url)
    t4 = one_matching(systems_of(results(store.engine, Filter(families=("resnet50",)))), "T4")
    store.close()
    app = open_page("compare", many_run_store.url, family="resnet50", baseline=t4.id, system=[t4.id])
    assert not app.exception
    assert app.selectbox(key="baseline").value == t4.id
    assert app.table[0].value["System"][0].replace("\\", "") == "NVIDIA T4, tensorrt gpu (baseline)"
    assert len(app.table[0].value) == 1


def test_a_single_system_is_told_how_to_get_others(open_page: OpenPage, one_run_store: Any) -> None:
    app = open_page("compare", one_run_store.url, family="efficientnet-lite0")
    assert "Only one system" in shown(app)
    assert "86.7" in shown(app)


def test_a_run_tells_everything_about_its_numbers(open_page: OpenPage, one_run_store: Any) -> None:
    run = one_run_store.runs["bench-1"]
    measurement = one_run_store.measurements["bench-1 resnet50-seeded onnxruntime cpu single_stream"]
    page = shown(open_page("run", one_run_store.url, run=run, measurement=measurement))
    for text in (
        "b" * 64,  # the artifact's digest
        "recipe:resnet50",
        "onnx 1.19.0",
        "1,000 samples are too few for p99.9.",
        "This machine shows no energy counter",
        "Seeded weights: accuracy has no meaning.",
        "CPUExecutionProvider 100 %",
        "the runtime's default",
        "SHA-256 of the record",
        "governor",
        run,
    ):
        assert text in page, text


def test_an_unsupported_measurement_and_flags_are_explained(open_page: OpenPage, one_run_store: Any) -> None:
    run = one_run_store.runs["bench-1"]
    refused = one_run_store.measurements["bench-1 resnet50-seeded onnxruntime cuda single_stream"]
    app = open_page("run", one_run_store.url, run=run, measurement=refused)
    assert not app.exception
    assert "libcudart.so.13" in app.warning[0].value.replace("\\", "")
    flagged = one_run_store.measurements["bench-1 efficientnet-lite0 onnxruntime cpu single_stream"]
    app = open_page("run", one_run_store.url, run=run, measurement=flagged)
    assert "31 % of the processor" in app.warning[0].value.replace("\\", "")
    assert "113 drawn stamps, not ImageNet." in shown(app)


def test_an_unknown_run_is_said_and_not_replaced_by_another(open_page: OpenPage, one_run_store: Any) -> None:
    app = open_page("run", one_run_store.url, run="00000000-0000-4000-8000-000000000000")
    assert not app.exception
    assert "holds no run 00000000-0000-4000-8000-000000000000" in shown(app)
    assert not app.metric


def test_an_imported_run_names_its_source(open_page: OpenPage, many_run_store: Any) -> None:
    page = shown(open_page("run", many_run_store.url, run=many_run_store.runs["XE2420_T4x1_TRT"]))
    assert "Imported, not measured here. Source: MLPerf Inference v3.0, closed, Dell." in page
    assert "early-stopping p90, as declared by MLPerf Inference v3.0, closed, Dell" in page
    assert "Apache-2.0" in page and "MLCommons" in page


@pytest.mark.parametrize("page", PAGES)
def test_a_hostile_device_name_is_never_markup(open_page: OpenPage, many_run_store: Any, page: str) -> None:
    parameters = (
        {"run": many_run_store.runs["<script>alert(1)</script>**[x](javascript:alert(1))**"]} if page == "run" else {}
    )
    app = open_page(page, many_run_store.url, **parameters)
    assert not app.exception
    for kind in ("markdown", "caption", "info", "warning", "error", "title", "subheader"):
        for item in app.get(kind):
            assert "<script>" not in item.value
            assert "[x](" not in item.value
            assert not getattr(item, "allow_html", False)


def test_an_annotation_of_a_bad_run_is_on_its_page(open_page: OpenPage, tmp_path: Path, one_run_store: Any) -> None:
    import shutil

    from db.annotations import annotate
    from db.store import open_store

    copy = tmp_path / "copy.sqlite"
    shutil.copy(one_run_store.url.removeprefix("sqlite:///"), copy)
    store = open_store(f"sqlite:///{copy}")
    annotate(store.engine, one_run_store.runs["bench-1"], "The fan was *unplugged*.", "ana", bad=True)
    store.close()
    app = open_page("run", f"sqlite:///{copy}", run=one_run_store.runs["bench-1"])
    assert not app.exception
    assert r"\*unplugged\*" in app.warning[0].value
    assert app.warning[0].value.startswith("This run is marked as bad")
