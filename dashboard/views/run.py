"""Run: everything about one run, and where each of its numbers comes from."""

from __future__ import annotations

import re
from typing import Any, Literal

import streamlit as st

from dashboard import address, data
from dashboard.charts import distribution_chart, stages_chart
from dashboard.course_charts import cold_start_chart
from dashboard.frame import empty, show
from dashboard.grids import Grid, placement_words, precision_words
from dashboard.provenance import artifact_grid, execution_grid, numbers_grid
from dashboard.quality import doubts_grid, self_cost_share
from dashboard.run_sections import scenario_sections
from dashboard.tables import flatten, grid_frame
from dashboard.trial_grids import blob_lines, sampling_grid, trials_grid
from dashboard.wording import bounds, number, plain, when
from db.queries import ResultRow, RunDetail, RunRow
from harness.judgement.comparison import scenario_title
from harness.judgement.figures import spread_of_metric
from harness.judgement.systems import hardware_name
from harness.judgement.trust import Trust, trust_of_row
from harness.judgement.verdict import gate_of

_DIGEST = re.compile(r"[0-9a-f]{64}")
Colour = Literal["green", "orange", "gray", "red", "blue"]
GRADE_COLOURS: dict[str, Colour] = {"A": "green", "B": "green", "C": "orange", "D": "orange", "E": "red", "F": "red"}
GATE_COLOURS: dict[str, Colour] = {"passed": "green", "failed": "red", "undecided": "orange"}
STATUS_COLOURS: dict[str, Colour] = {
    "ok": "green",
    "complete": "green",
    "interrupted": "orange",
    "unsupported": "gray",
    "skipped": "gray",
}


def body(view: data.View) -> None:
    """The page below its title."""
    runs = {run.run_id: run for run in data.runs(view.key, view.version)}
    if not runs:
        empty("There are no runs yet. Measure this machine, or load the public reference results.",
              "weigh run quick", "weigh import reference")  # fmt: skip
        return
    run_id = _chosen_run(view, runs)
    detail = data.run_detail(view.key, view.version, run_id)
    _heading(detail)
    if not detail.rows:
        empty("This run holds no measurement: it was interrupted before the first one was finished.", "weigh run quick")
    else:
        row = _chosen_measurement(detail)
        address.link_to_view(run=run_id, measurement=row.measurement_id)
        _measurement(view, detail, row)
    _surroundings(detail)


def _chosen_run(view: data.View, runs: dict[str, RunRow]) -> str:
    """The run of the address, which may be older than those that are listed; else the newest."""
    asked = st.query_params.get("run")
    if asked and asked not in runs:
        detail = data.run_detail(
            view.key, view.version, asked
        )  # an unknown run is said as such, not replaced by another
        runs[asked] = detail.run
    newest = next(iter(runs))
    return address.choice("Run", tuple(runs), "run", newest, lambda run_id: _run_label(runs[run_id]))


def _run_label(run: RunRow) -> str:
    origin = run.suite if run.source_kind == "measured" else run.source_name
    return f"{when(run.started_at)}, {run.device}, {origin}, {run.ok} of {run.measurements} ok"


def _heading(detail: RunDetail) -> None:
    run = detail.run
    for note in detail.annotations:
        if note.startswith("bad: "):
            st.warning(f"This run is marked as bad: {plain(note.removeprefix('bad: '))}", icon=":material/warning:")
        else:
            st.info(plain(note), icon=":material/sticky_note_2:")
    cards = st.columns(4)
    cards[0].metric("Device", run.device, border=True, help=plain(detail.device.get("hardware_model") or ""))
    cards[1].metric("Measurements with a result", f"{run.ok} of {run.measurements}", border=True)
    cards[2].metric("Started", when(run.started_at).removesuffix(" UTC"), border=True, help="UTC")
    cards[3].metric("Run", run.status, border=True, help=f"Started by: {plain(run.trigger)}")
    if run.source_kind == "imported":
        st.caption(f"Imported, not measured here. Source: {plain(run.source_name)}.")
    else:
        st.caption(f"Measured here with the suite {plain(run.suite)}.")


def _chosen_measurement(detail: RunDetail) -> ResultRow:
    rows = {row.measurement_id: row for row in detail.rows}
    first = next((identity for identity, row in rows.items() if row.status == "ok"), next(iter(rows)))
    chosen = address.choice(
        "Measurement", tuple(rows), "measurement", first, lambda identity: _measurement_label(rows[identity])
    )
    return rows[chosen]


def _measurement_label(row: ResultRow) -> str:
    scenario = scenario_title(row.scenario).lower()
    batch = f", batch {row.batch}" if (row.batch or 1) > 1 else ""
    return f"{row.workload_title or row.workload}, {row.backend} {row.target}, {scenario}{batch}: {row.status}"


def _measurement(view: data.View, detail: RunDetail, row: ResultRow) -> None:
    trials = [trial for trial in detail.trials if trial["measurement_id"] == row.measurement_id]
    trust = trust_of_row(row)
    st.subheader(plain(f"{row.workload_title or row.workload} on {hardware_name(row)}"), anchor=False)
    _badges(row, trust)
    if row.status != "ok":
        st.warning(plain(row.reason or "No reason is recorded."), icon=":material/block:")
    for code, message in row.flags:
        st.warning(f"{plain(message)} ({plain(code)})", icon=":material/flag:")
    _cards(row)
    if trust.doubts:
        with st.expander(
            f"Trust {trust.grade}: {len(trust.doubts)} {'reason' if len(trust.doubts) == 1 else 'reasons'} for doubt",
            icon=":material/balance:",
        ):
            _table(doubts_grid(trust).without_empty())
            st.caption("Weights add up: 0 is A, 1 or 2 B, 3 or 4 C, 5 or 6 D, more E. F is no number to use.")
    _pictures(view, row)
    scenario_sections(row, detail.rows)
    st.subheader("How it was sampled", anchor=False)
    _table(sampling_grid(row, trials))
    st.subheader("Where each number comes from", anchor=False)
    _table(numbers_grid(row))
    left, right = st.columns(2)
    with left:
        st.subheader("Asked for, and what really ran", anchor=False)
        _table(execution_grid(row))
    with right:
        st.subheader("Model file", anchor=False)
        _with_digests(artifact_grid(row, data.artifacts(view.key, view.version, row.run_id).get(row.measurement_id)))
    _trials(row, trials)


def _badges(row: ResultRow, trust: Trust) -> None:
    """Status, trust, gate and placement at a glance."""
    badges = [(row.status, STATUS_COLOURS.get(row.status, "red")), (f"trust {trust.grade}", GRADE_COLOURS[trust.grade])]
    gate = gate_of(row)
    if gate is not None:
        badges.append((f"accuracy gate {gate}", GATE_COLOURS.get(gate, "gray")))
    if placement_words(row.effective).startswith("mixed"):
        badges.append((placement_words(row.effective), "orange"))
    badges.append((precision_words(row), "gray"))
    with st.container(horizontal=True):
        for text, colour in badges:
            st.badge(plain(text), color=colour)


def _cards(row: ResultRow) -> None:
    """The figures, each with its interval or range below it."""
    cards = st.columns(5)
    cold = row.scenario == "cold_start"
    shown = (
        ("first_answer" if cold else "p50", "First answer (ms)" if cold else "p50 latency (ms)"),
        ("p99", "p99 latency (ms)"),
        ("throughput", "Throughput (samples/s)"),
    )
    for card, (metric, title) in zip(cards, shown, strict=False):
        spread = spread_of_metric(row, metric)
        if cold and spread.value is None and metric != "first_answer":
            continue
        sure = {"interval": "95 % interval "}.get(spread.kind, "") + bounds(spread)
        card.metric(
            title, number(spread.value, "none"), sure or None, delta_color="off", delta_arrow="off", border=True
        )
    accuracy = None if row.accuracy_value is None else row.accuracy_value * 100
    gate = gate_of(row)
    cards[3].metric(
        "Accuracy (%)", number(accuracy, "not measured"), f"gate {gate}" if gate else None, delta_color="off",
        delta_arrow="off", border=True, help=plain(row.accuracy_reason or "") or None,
    )  # fmt: skip
    energy = None if row.energy_j is None else row.energy_j * 1000
    cards[4].metric(
        "Energy (mJ)", number(energy, "not measured"), row.energy_scope, delta_color="off", delta_arrow="off",
        border=True, help=plain(row.energy_reason or "") or None,
    )  # fmt: skip
    share = self_cost_share(row)
    if share is not None:
        st.caption(f"The harness itself is {number(share * 100)} % of the median latency.")


def _trials(row: ResultRow, trials: list[dict[str, Any]]) -> None:
    st.subheader("Trials", anchor=False)
    if not trials:
        st.caption("No trials are recorded: the source gives a summary only." if row.source_kind == "imported"
                   else "No trials are recorded.")  # fmt: skip
        return
    _table(trials_grid(trials).without_empty())
    blobs = blob_lines(trials)
    if blobs:
        with st.expander("SHA-256 of the raw samples", icon=":material/tag:"):
            st.code("\n".join(blobs), language=None, wrap_lines=True)
    for trial in trials:
        if trial.get("last_words"):
            st.caption(f"Last words of the worker of trial {plain(trial['trial_id'])}:")
            st.code(trial["last_words"], language=None, wrap_lines=True)


def _pictures(view: data.View, row: ResultRow) -> None:
    marks = {"p50": row.p50_ms, "p90": row.p90_ms, "p99": row.p99_ms}
    distribution = distribution_chart(data.samples(view.key, view.version, row.measurement_id), marks)
    stages = stages_chart(row.stages_ms or {})
    cold = dict(row.cold_start_ms or {})
    cold.pop("caches", None)
    cold.pop("intervals", None)
    start = cold_start_chart([("first answer", cold)]) if row.scenario != "cold_start" else None
    if distribution is not None:
        st.subheader("Distribution of latencies", anchor=False)
        st.altair_chart(distribution)
        st.caption("Bars count raw samples between logarithmic edges. Dashed lines: p50, p90, p99.")
    elif row.p50_ms is not None and not row.rate_curve:
        st.caption("No raw samples are kept for this measurement, so its distribution cannot be drawn.")
    drawn = [(title, chart) for title, chart in (("Stages of one sample", stages), ("Cold start", start)) if chart]
    for column, (title, chart) in zip(st.columns(2), drawn, strict=False):
        with column:
            st.subheader(title, anchor=False)
            st.altair_chart(chart)


def _surroundings(detail: RunDetail) -> None:
    st.subheader("Run, device and environment", anchor=False)
    run = detail.run
    facts: dict[str, Any] = {
        "Run": run.run_id,
        "Status": run.status,
        "Suite": run.suite,
        "Started by": run.trigger,
        "Started": when(run.started_at),
        "Finished": when(run.finished_at) or "not finished",
        "Received": when(detail.received_at),
        "SHA-256 of the record": detail.record_sha256,
        "Source": "measured here" if run.source_kind == "measured" else run.source_name,
        "Place in the source": detail.location or "none",
        "Licence of the source": detail.licence or "none",
        "Version of the agent": detail.agent_version or "not recorded",
    }
    attribution = next((row.attribution for row in detail.rows if row.attribution), None)
    url = next((row.url for row in detail.rows if row.url), None)
    facts |= {"Attribution": attribution or "none", "Address of the source": url or "none"}
    _facts("Run", facts)
    device = dict(detail.device)
    units = device.pop("compute_units", None) or []
    for place, unit in enumerate(units):
        device[f"compute unit {place}"] = ", ".join(
            f"{name} {value}" for name, value in unit.items() if value is not None
        )
    _facts("Device", device)
    for name in ("machine", "configuration", "conditions"):
        part = detail.environment.get(name)
        _facts(f"Environment: {name}", part if isinstance(part, dict) else {})
    preparation = detail.preparation or {}
    if preparation:
        changes = {
            change["what"]: f"{change['before']} before, {change['during']} during, "
            + ("put back" if change["restored"] else "NOT put back")
            for change in preparation.get("changes") or ()
        }
        _facts("Prepared for quiet", changes | dict(preparation.get("refused") or {}))


def _with_digests(grid: Grid) -> None:
    """A table of names and values; digests stand below it in whole, because a cell would cut them."""
    digests = [line for line in grid.rows if _DIGEST.fullmatch(line[-1])]
    _table(Grid(grid.headers, tuple(line for line in grid.rows if line not in digests), grid.numeric))
    if digests:
        st.code("\n".join(f"{line[-1]}  {line[0]}" for line in digests), language=None, wrap_lines=True)


def _facts(title: str, facts: dict[str, Any]) -> None:
    with st.expander(title):
        if facts:
            flat = flatten(facts)
            _with_digests(Grid(("", "Value"), tuple(flat.items())))
        else:
            st.caption("Nothing is recorded.")


def _table(grid: Grid) -> None:
    st.table(grid_frame(grid), border="horizontal", hide_index=True)


show("Run", body)
