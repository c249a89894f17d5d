"""The parts of the Run page that only some scenarios have: load, courses over time, starts, idleness, sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard import address
from dashboard.course_charts import cold_start_chart, over_time_charts
from dashboard.limits import highest, sweeps_with
from dashboard.load_charts import MEETS, rate_curve_chart, sweep_chart
from dashboard.tables import grid_frame
from dashboard.trial_grids import rates_grid
from dashboard.wording import bounds, number, plain
from db.queries import ResultRow
from harness.judgement.rate_curve import PERCENTILES
from harness.judgement.spread import open_number, open_spread


def scenario_sections(row: ResultRow, rows: Sequence[ResultRow]) -> None:
    """What the row's scenario is about, each with its picture and its answer in words."""
    if row.rate_curve:
        _rates(row)
    if row.over_time:
        _over_time(row)
    if row.scenario == "duty_cycle":
        _idleness(row)
    if row.scenario == "cold_start":
        _cold_starts(row, rows)
    _sweeps(row, rows)


def _rates(row: ResultRow) -> None:
    """Latency over the offered rate, and the highest rate that meets a limit: the workload's own, or the reader's."""
    curve = row.rate_curve or {}
    st.subheader("Latency under load", anchor=False)
    own = curve.get("limit_ms")
    left, right = st.columns([2, 5])
    with left:
        typed = address.text(
            "Limit on latency (ms)",
            "limit",
            placeholder=f"{number(own)}, the workload's own" if own else "the workload has none",
            help="Any limit can be asked of the rates that were measured; no new measurement is made.",
        )
        told = str(curve.get("percentile"))
        percentile = address.choice("Percentile", PERCENTILES, "at", told if told in PERCENTILES else "p99")
    limit = _positive(typed)
    if typed and limit is None:
        right.warning(f"{plain(typed)} is no number of milliseconds above zero.", icon=":material/warning:")
    asked = limit or own
    with right:
        if asked is not None:
            found = highest(curve, percentile, asked)
            words = number(found.per_s, "none of those measured")
            st.metric(f"Highest rate with {percentile} at most {number(asked)} ms (queries/s)", words, border=True)
            if found.reason:
                st.caption(plain(found.reason))
        recorded = curve.get("highest_met_per_s")
        told = (
            f"{number(recorded)} queries/s"
            if recorded is not None
            else str(curve.get("reason") or "none is recorded").rstrip(".")
        )
        st.caption(
            f"Recorded for the workload's own limit of {number(own)} ms at {plain(curve.get('percentile'))}: {plain(told)}."
            if own
            else "The workload has no limit of its own."
        )
    chart = rate_curve_chart(curve, asked)
    if chart is not None:
        st.altair_chart(chart)
        st.caption(
            "Queries arrive by themselves, as a Poisson process; latency counts from the scheduled arrival, so that waiting "
            "in the queue is inside. Thick lines are intervals or ranges. Hollow: the system did not keep up. A rate counts "
            "where the upper end meets the limit, and no lower rate misses it."
        )
    st.table(grid_frame(rates_grid(curve, MEETS)), border="horizontal", hide_index=True)


def _positive(text: str) -> float | None:
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def _over_time(row: ResultRow) -> None:
    over_time = row.over_time or {}
    st.subheader("Course of the sustained load", anchor=False)
    for chart in over_time_charts(over_time):
        st.altair_chart(chart)
    drift, low, high = (over_time.get(name) for name in ("drift", "drift_low", "drift_high"))
    if drift is not None:
        sure = f" (95 % interval {number(low)} to {number(high)})" if low is not None and high is not None else ""
        st.markdown(
            f"The last fifth took **{number(drift)} times** the median latency of the first fifth{sure}: "
            f"**{plain(over_time.get('verdict') or 'undecided')}**."
        )
    else:
        st.caption(plain(over_time.get("reason") or "No drift is recorded."))


def _idleness(row: ResultRow) -> None:
    """What a pause before each request costs: sleeping cores and idle clocks."""
    st.subheader("Answers after a pause", anchor=False)
    recorded = (row.thermal or {}).get("idle_penalty")
    penalty = open_spread(recorded)
    if penalty is None or not isinstance(recorded, Mapping):
        st.caption("No requests without a pause are recorded beside it, so what the pause costs cannot be told.")
        return
    period, busy = (open_number(found) for found in (row.scenario_parameters.get("period_s"),
                                                     recorded.get("back_to_back_p50_ms")))  # fmt: skip
    cards = st.columns(3)
    every = f"p50, one request every {number(period)} s (ms)" if period is not None else "p50 after a pause (ms)"
    cards[0].metric(every, number(row.p50_ms, "none"), border=True)
    cards[1].metric("Median without a pause (ms)", number(busy, "not recorded"), border=True)
    sure = {"interval": "95 % interval "}.get(penalty.kind, "") + bounds(penalty)
    cards[2].metric(
        "Idle penalty", f"{number(penalty.value)} ×", sure or None, delta_color="off", delta_arrow="off", border=True
    )
    method = recorded.get("method")
    told = f" As recorded: {plain(method)}." if isinstance(method, str) and method else ""
    st.caption(
        "The penalty is the median after a pause over the median of requests back to back, in each process, and then the "
        f"median over the processes.{told}"
    )


def _cold_starts(row: ResultRow, rows: Sequence[ResultRow]) -> None:
    """All starts of the same case in this run, one bar for each state of the caches."""
    alike = [
        other
        for other in rows
        if other.scenario == "cold_start"
        and other.cold_start_ms
        and (other.workload, other.backend, other.target, other.artifact_precision, other.requested_precision)
        == (row.workload, row.backend, row.target, row.artifact_precision, row.requested_precision)
    ]
    starts = [(_caches(other), other.cold_start_ms or {}) for other in alike]
    chart = cold_start_chart(starts)
    if chart is not None:
        st.subheader("Starts, part by part", anchor=False)
        st.altair_chart(chart)
        st.caption("Medians over fresh processes. Where a runtime loads and compiles in one step, load holds both.")


def _caches(row: ResultRow) -> str:
    caches = (row.cold_start_ms or {}).get("caches") or row.scenario_parameters
    return (
        ", ".join(f"{str(name).replace('_', ' ')} {value}" for name, value in caches.items()) or "caches not recorded"
    )


def _sweeps(row: ResultRow, rows: Sequence[ResultRow]) -> None:
    """Throughput over batch, streams or threads, with the knee and every cliff."""
    sweeps = sweeps_with(row, rows)
    if not sweeps:
        return
    st.subheader("With other settings", anchor=False)
    for sweep in sweeps:
        chart = sweep_chart(sweep)
        if chart is not None:
            st.altair_chart(chart)
        st.markdown(plain(sweep.sentence))
