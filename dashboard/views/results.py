"""Results: every measurement of the store, filtered; latency with its spread; each row leads to its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import streamlit as st

from dashboard import address, data
from dashboard.charts import CHART_ROWS, latency_chart
from dashboard.frame import empty, show
from dashboard.tables import SURE, results_csv, results_table
from db.queries import Facets, Filter, ResultRow
from harness.judgement.comparison import scenario_title
from harness.judgement.verdict import barred_words

FIRST_COMMANDS = ("weigh run quick", "weigh import reference")


def body(view: data.View) -> None:
    """The page below its title."""
    known = data.facets(view.key, view.version)
    everything = data.count(view.key, view.version, Filter())
    if not everything:
        empty("There are no results yet. Measure this machine, or load the public reference results.", *FIRST_COMMANDS)
        return
    wanted = _filter(known)
    rows = data.results(view.key, view.version, wanted)
    found = data.count(view.key, view.version, wanted)
    if not rows:
        empty(f"None of the {everything} measurements passes this filter. Take a filter away in the bar on the left.")
        return
    _counts(rows, found, everything)
    address.link_to_view()
    st.subheader("Measurements", anchor=False)
    st.dataframe(
        results_table(_results_first(rows)),
        hide_index=True,
        placeholder="",
        column_config=_columns(),
        height=_height(len(rows)),
    )
    if found > len(rows):
        st.caption(f"The newest {len(rows)} of {found} are shown; a filter brings the others.")
    st.download_button(
        "Download as CSV",
        lambda: results_csv(rows),
        file_name="weighbridge-results.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
    )
    chart = latency_chart(rows, data.hardware_markers(view))
    if chart is not None:
        st.subheader("Latency", anchor=False)
        st.caption(
            "Dot: p50. Line: from the fastest sample to p90. Tick: p99. One line for each measurement with latencies, "
            f"the fastest {CHART_ROWS} of them. Offline runs have no latency: their queue times are none."
        )
        st.altair_chart(chart)


def _filter(known: Facets) -> Filter:
    """The widgets of the side bar; their keys are the names in the address."""
    with st.sidebar:
        return Filter(
            search=address.text("Search", "q", placeholder="words of any name") or None,
            newest_only=address.switch(
                "Newest of each case only",
                "newest",
                default=True,
                help="Each case on each device once, its newest measurement; runs marked as bad are left out.",
            ),
            families=address.choices("Workload family", known.families, "family"),
            workloads=address.choices("Workload", known.workloads, "workload"),
            hardware=address.choices("Hardware", known.hardware, "hardware"),
            devices=address.choices("Device", known.devices, "device"),
            backends=address.choices("Backend", known.backends, "backend"),
            scenarios=address.choices("Scenario", known.scenarios, "scenario", scenario_title),
            statuses=address.choices("Status", known.statuses, "status"),
            sources=address.choices("Source", known.sources, "source"),
            limit=data.ROW_LIMIT,
        )


def _counts(rows: Sequence[Any], found: int, everything: int) -> None:
    good = sum(row.status == "ok" for row in rows)
    here = sum(row.source_kind == "measured" for row in rows)
    cards = st.columns(4)
    cards[0].metric("Found", f"{found}", border=True, help=f"Of {everything} in the store.")
    cards[1].metric("With a result", f"{good}", border=True, help="Of the rows shown; the others say why not.")
    cards[2].metric(
        "Measured",
        f"{here}",
        border=True,
        help="Measured by Weighbridge; the others are imported from published results.",
    )
    hardware = {row.hardware_model for row in rows if row.hardware_model}
    cards[3].metric("Hardware", f"{len(hardware)}", border=True, help="Hardware models among the rows shown.")


def _results_first(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """What could not run stands below what did, and what failed its accuracy gate between; else as the store gives them."""
    return sorted(rows, key=lambda row: (row.status != "ok", bool(barred_words(row))))


def _columns() -> dict[str, Any]:
    column = st.column_config
    numbers = {
        name: column.NumberColumn(name, format="%.10g", width="small")
        for name in ("p50 (ms)", "p90 (ms)", "p99 (ms)", "Peak memory (MB)", "Accuracy (%)", "Energy (mJ/inference)")
    }
    return {
        "Run": column.LinkColumn("Run", display_text="open", width=60, pinned=True),
        "Workload": column.TextColumn("Workload", width=165, pinned=True),
        "Scenario": column.TextColumn("Scenario", width=140),
        "Hardware": column.TextColumn("Hardware", width=285),
        "Backend and target": column.TextColumn("Backend and target", width=165),
        "Status": column.TextColumn("Status", width=90),
        "Trust": column.TextColumn(
            "Trust", width=60, help="A: nothing speaks against it. F: no number to use. The column Doubts says why."
        ),
        SURE: column.TextColumn(
            SURE,
            width=170,
            help="Of the scenario's own figure. An interval takes six fresh processes; with fewer it is a range, which has "
            "no probability. It speaks of the one unit that was measured.",
        ),
        "Trials": column.NumberColumn("Trials", width=60),
        "Gate": column.TextColumn("Gate", width=90, help="Whether enough of the fp32 reference's accuracy is kept."),
        "Placement": column.TextColumn("Placement", width="medium"),
        "Doubts": column.TextColumn("Doubts", width="large"),
        "Throughput (samples/s)": column.NumberColumn(format="%.10g"),
        "Reason": column.TextColumn("Reason", width="large"),
        **numbers,
    }


def _height(rows: int) -> int | Literal["content"]:
    """All rows where they fit on a screen, else a window of them."""
    return "content" if rows <= 15 else 560


show("Results", body)
