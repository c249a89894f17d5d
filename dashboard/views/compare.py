"""Compare: devices and backends of one workload family beside a baseline, scenario by scenario, gaps named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import streamlit as st

from dashboard import address, data
from dashboard.comparison_charts import absolute_chart, ratio_chart
from dashboard.frame import empty, show
from dashboard.grids import METRIC_TITLES, Grid, gaps, overview_grid, section_grid, verdict_words
from dashboard.tables import grid_csv, grid_frame, run_address
from dashboard.wording import plain
from db.queries import Filter, ResultRow
from harness.judgement.comparison import Comparison, Section, compare, scenario_title
from harness.judgement.figures import headline_metric
from harness.judgement.side_by_side import sentence
from harness.judgement.systems import System, default_baseline, systems_of
from harness.judgement.verdict import Kind

VERDICT_COLOURS: dict[Kind, Literal["green", "blue", "orange", "red"]] = {
    "like_for_like": "green",
    "tuned": "blue",
    "with_caveats": "orange",
    "not_comparable": "red",
}


def body(view: data.View) -> None:
    """The page below its title."""
    families = data.facets(view.key, view.version).families
    if not families:
        empty(
            "There is nothing to compare yet. Measure this machine, and load the public results of other hardware.",
            "weigh run quick",
            "weigh import reference",
        )
        return
    places = st.columns([2, 3, 3])
    with places[0]:
        family, rows = _family(view, families)
    systems = systems_of(rows)
    preferred = default_baseline(rows)
    if preferred is None:
        empty(f"No measurement of the family {plain(family)} can be shown: its runs are marked as bad.")
        return
    with places[1]:
        baseline = _baseline(systems, preferred)
    with places[2]:
        chosen = _beside(systems)
    comparison = compare(rows, baseline.id, [system.id for system in chosen] or None)
    address.link_to_view(family=family, baseline=baseline.id)
    if len(systems) == 1:
        empty(
            "Only one system has been measured in this family, so there is nothing beside it yet. Load the public results, "
            "or measure with another backend.",
            "weigh import reference",
        )
    _overview(comparison)
    marks = data.hardware_markers(view)
    for section in comparison.sections:
        _section(section, comparison.baseline, marks)
    _environments(view, comparison)


def _family(view: data.View, families: Sequence[str]) -> tuple[str, list[ResultRow]]:
    """The family of the address, else the one with the most hardware to compare."""
    rows = data.results(view.key, view.version, Filter(newest_only=True, limit=data.COMPARE_LIMIT))
    hardware = {name: {row.hardware_model for row in rows if row.family == name} for name in families}
    preferred = max(families, key=lambda name: len(hardware[name]))
    titles = {row.family: row.workload_title for row in rows if row.workload_title}
    family = address.choice(
        "Workload family",
        families,
        "family",
        preferred,
        help=", ".join(sorted(f"{name}: {plain(title)}" for name, title in titles.items())) or None,
    )
    wanted = Filter(families=(family,), newest_only=True, limit=data.COMPARE_LIMIT)
    return family, data.results(view.key, view.version, wanted)


def _baseline(systems: Sequence[System], preferred: System) -> System:
    by_id = {system.id: system for system in systems}
    return by_id[
        address.choice("Baseline", tuple(by_id), "baseline", preferred.id, lambda identity: by_id[identity].label)
    ]


def _beside(systems: Sequence[System]) -> list[System]:
    by_id = {system.id: system for system in systems}
    everything = "all systems of the family"
    chosen = address.choices("Beside it", tuple(by_id), "system", lambda identity: by_id[identity].label, everything)
    return [by_id[identity] for identity in chosen]


def _overview(comparison: Comparison) -> None:
    st.subheader("Side by side", anchor=False)
    _table(overview_grid(comparison))
    st.caption(
        "÷ baseline: the value over the baseline's, of the same statistic. Lower is faster for latency, higher for "
        "throughput. In brackets its 95 % interval, where both sides have one over fresh processes; it speaks of the one "
        "unit of each that was measured. The verdict says whether the two may be compared: like for like (same contract, "
        "same precision), tuned (another precision or model, both passed the gate), with caveats, or not comparable."
    )


def _section(section: Section, baseline: System, marks: Any) -> None:
    st.subheader(scenario_title(section.scenario), anchor=False)
    grid = section_grid(section, baseline, with_gaps=False)
    if not grid.rows:
        st.caption("No system has a result here.")
    else:
        _charts(section, marks)
        _table(grid)
        st.caption(" ".join(_explanations(section)))
    _verdicts(section, baseline)
    _gaps(section)
    if grid.rows:
        _details(section, baseline)
        st.download_button(
            "Download as CSV",
            grid_csv(section_grid(section, baseline)),
            file_name=f"weighbridge-{section.scenario}.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            key=f"csv-{section.scenario}",
        )


def _charts(section: Section, marks: Any) -> None:
    ratios, absolutes = ratio_chart(section, marks), absolute_chart(section, marks)
    if ratios is None and absolutes is not None:
        st.altair_chart(absolutes)
        st.caption(f"The baseline has no {scenario_title(section.scenario).lower()} result to divide by.")
    elif ratios is not None and absolutes is not None:
        first, second = st.tabs(["Over the baseline", "Absolute"])
        with first:
            st.altair_chart(ratios)
        with second:
            st.altair_chart(absolutes)


def _explanations(section: Section) -> list[str]:
    """What a reader must know to read this table right, and only what applies to it."""
    sentences = []
    if any(entry.figure("official") for entry in section.entries):
        sentences.append(
            "Declared: what the source itself declares as its result. MLPerf declares an early-stopping estimate, which is "
            "neither our p50 nor the plain percentile beside it."
        )
    sizes = {
        str(entry.row.scenario_parameters.get("samples_per_query"))
        for entry in section.entries
        if entry.row is not None and entry.row.scenario == "multi_stream" and entry.gap is None
    } - {"None"}
    if sizes:
        sentences.append(f"Latency is of one query of {plain(' or '.join(sorted(sizes)))} samples.")
    if headline_metric(section.scenario) == "p50":
        sentences.append("In the absolute chart the dot is p50 and the line ends at p90.")
    return sentences


def _gaps(section: Section) -> None:
    found = gaps(section)
    if not found:
        return
    with st.expander(f"Without a result here: {len(found)}, with the reasons", icon=":material/block:"):
        st.markdown("\n".join(f"- **{plain(system.label)}**: {plain(reason)}" for system, reason in found))


def _verdicts(section: Section, baseline: System) -> None:
    """Which systems may be compared with the baseline, metric by metric, each with its reasons."""
    judged = [entry for entry in section.entries if entry.gap is None and verdict_words(entry, baseline)]
    if not judged:
        return
    with st.expander(f"Verdicts against the baseline, with their reasons: {len(judged)}", icon=":material/gavel:"):
        for entry in judged:
            assert entry.row is not None
            name = f"{entry.system.label}, {entry.variant}" if entry.variant else entry.system.label
            st.markdown(f"**{plain(name)}**")
            with st.container(horizontal=True):
                for item in entry.beside:
                    title = METRIC_TITLES[item.metric].partition(" (")[0]
                    reasons = plain(" ".join(item.verdict.reasons))
                    st.badge(
                        f"{title}: {item.verdict.title}", color=VERDICT_COLOURS[item.verdict.kind], help=reasons or None
                    )
            headline = entry.judged(headline_metric(section.scenario))
            if headline is not None and headline.verdict.kind != "not_comparable":
                st.markdown(plain(sentence(headline, entry.row, ("It", "the baseline"))))
            named = [reason for item in entry.beside for reason in (*item.verdict.contract, *item.verdict.caveats)]
            differing = [reason for item in entry.beside for reason in item.verdict.implementation]
            st.markdown("\n".join(f"- {plain(line)}" for line in dict.fromkeys([*named, *differing])))


def _environments(view: data.View, comparison: Comparison) -> None:
    """Field by field, in what the baseline's machine and configuration are unlike the others'."""
    from harness.judgement.environment_difference import explain

    rows: dict[str, Any] = {}
    for section in comparison.sections:
        for entry in section.entries:
            if entry.row is not None and entry.gap is None:
                rows.setdefault(entry.system.id, (entry.system, entry.row))
    base = rows.pop(comparison.baseline.id, None)
    if base is None or not rows:
        return
    digests = tuple(sorted({row.environment_digest for _, row in (base, *rows.values())}))
    known = data.environments(view.key, view.version, digests)
    seen: dict[str, list[str]] = {}
    for system, row in rows.values():
        seen.setdefault(row.environment_digest, []).append(system.label)
    here = base[1].environment_digest
    with st.expander("What differs in machine and configuration", icon=":material/developer_board:"):
        for digest, labels in seen.items():
            st.markdown(f"**{plain('; '.join(dict.fromkeys(labels)))}**")
            if digest == here:
                st.caption("The same environment as the baseline.")
                continue
            found = explain(known.get(digest) or {}, known.get(here) or {})
            grid = Grid(
                ("", "Here", "Baseline", "Why it matters"),
                tuple((item.name, _value(item.here), _value(item.there), item.matters) for item in found),
            )
            if found:
                _table(grid)
            else:
                st.caption("Nothing that is recorded differs.")


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(str(item) for item in value)
    return "not told" if value is None else str(value)


def _details(section: Section, baseline: System) -> None:
    """For each system its run, what differs in words, and why a number is missing or was not divided."""
    with st.expander("What differs from the baseline, and where each number comes from", icon=":material/difference:"):
        for entry in section.entries:
            if entry.row is None or entry.gap is not None:
                continue
            its_run = run_address(entry.row.run_id, entry.row.measurement_id)
            st.markdown(f"**{plain(entry.system.label)}** ({plain(entry.system.source)}), [its run]({its_run})")
            notes = [str(item) for item in entry.differences] if entry.system.id != baseline.id else []
            notes += [
                f"{figure.statistic}: not divided, because {figure.ratio_reason}"
                for figure in entry.figures
                if figure.value is not None and figure.ratio is None and figure.ratio_reason
            ]
            notes += [f"{figure.statistic}: {figure.reason}" for figure in entry.figures if figure.value is None]
            notes += [entry.note] if entry.note else []
            if notes:
                st.markdown("\n".join(f"- {plain(note)}" for note in notes))


def _table(grid: Grid) -> None:
    st.table(grid_frame(grid.without_empty()), border="horizontal", hide_index=True)


show("Compare", body)
