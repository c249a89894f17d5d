"""Charts as pure functions: rows in, `alt.Chart` out. Nothing raw goes to the browser; samples are aggregated here.

Latency axes are logarithmic: hardware in one table is four orders of magnitude apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dashboard import drawing as draw
from dashboard.drawing import BREAK, LABEL_PIXELS
from dashboard.palette import ACCENT, LINE, Marker
from dashboard.wording import number, significant
from harness.judgement.comparison import scenario_title
from harness.judgement.figures import source_name
from harness.judgement.systems import hardware_name, route_name
from harness.judgement.verdict import barred_words

if TYPE_CHECKING:
    import altair as alt
    import numpy.typing as npt

    from db.queries import ResultRow

CHART_ROWS = 60  # a taller chart is not read; the table has the rest


def latency_chart(rows: Sequence[ResultRow], marks: Mapping[str, Marker]) -> alt.LayerChart | None:
    """Median latency with a whisker from the fastest sample to p90, and a tick at p99; None without any latency."""
    import altair as alt

    timed = sorted(
        (row for row in rows if row.p50_ms is not None), key=lambda row: (bool(barred_words(row)), row.p50_ms or 0)
    )[:CHART_ROWS]
    if not timed:
        return None
    data = draw.inline([_latency_point(row, label) for row, label in zip(timed, _unique_labels(timed), strict=True)])
    y = draw.labels_axis("label:N")
    title, scale = "latency (ms), log scale", draw.log(12)
    x = alt.X("p50:Q", title=title, scale=scale, axis=draw.faint())
    colour = _colour(timed, marks)
    tooltip = draw.tooltip(
        ("label", "what"), ("source", "source"), ("p50", "p50 (ms)"), ("low", "min (ms)"), ("p90", "p90 (ms)"),
        ("p99", "p99 (ms)"), ("count", "samples"),
    )  # fmt: skip
    base = alt.Chart(data).encode(y=y, color=colour, tooltip=tooltip)
    whisker = base.mark_rule(strokeWidth=2, opacity=0.55).encode(
        x=alt.X("low:Q", title=title, scale=scale, axis=draw.faint()), x2="high:Q"
    )
    tail = base.transform_filter("isValid(datum.p99)").mark_tick(thickness=2, size=12).encode(x="p99:Q")
    dot = base.mark_point(filled=True, size=80, opacity=1).encode(x=x, shape=_shape(timed, marks))
    return draw.layered(whisker, tail, dot, height=draw.height(len(timed)))


def distribution_chart(samples_ns: npt.NDArray[Any], marks_ms: Mapping[str, float | None]) -> alt.LayerChart | None:
    """A histogram of raw latencies on a log axis, at most 60 bars, with the percentiles as lines; None without samples."""
    import altair as alt

    bars = histogram(samples_ns)
    if not bars:
        return None
    x = alt.X("low:Q", title="latency (ms), log scale", scale=draw.log(0), axis=draw.faint())
    y = alt.Y("count:Q", title="samples", axis=alt.Axis(tickMinStep=1))
    tooltip = draw.tooltip(("from", "from (ms)"), ("to", "to (ms)"), ("count", "samples"))
    chart = alt.Chart(draw.inline(bars)).mark_bar(color=ACCENT, opacity=0.8)
    chart = chart.encode(x=x, x2="high:Q", y=y, y2="floor:Q", tooltip=tooltip)
    lines = [{"at": value, "name": name} for name, value in marks_ms.items() if value is not None]
    if not lines:
        return draw.layered(chart, height=260)
    base = alt.Chart(draw.inline(lines))
    rule = base.mark_rule(color=LINE, strokeDash=[4, 3]).encode(
        x="at:Q", tooltip=draw.tooltip(("name", "percentile"), ("at", "ms"))
    )
    name = base.mark_text(color=LINE, baseline="bottom", fontWeight="bold").encode(
        x="at:Q", text="name:N", y=alt.value(-4)
    )
    return draw.layered(chart, rule, name, height=260)


def stages_chart(stages_ms: Mapping[str, float | None]) -> alt.LayerChart | None:
    """Median milliseconds of each stage, one bar each, in the order they happen; None where none was timed."""
    import altair as alt

    values = [
        {"stage": name.replace("_", " "), "ms": value, "text": f"{number(value)} ms", "place": place}
        for place, (name, value) in enumerate(stages_ms.items())
        if value is not None
    ]
    if not values:
        return None
    base = alt.Chart(draw.inline(values)).encode(
        y=alt.Y("stage:N", title=None, sort=alt.EncodingSortField("place"), axis=alt.Axis(labelLimit=LABEL_PIXELS)),
        x=alt.X("ms:Q", title="median (ms)"),
        tooltip=draw.tooltip(("stage", "stage"), ("text", "median")),
    )
    return draw.layered(base.mark_bar(color=ACCENT, opacity=0.8), height=max(90, 30 * len(values) + 50))


def histogram(samples_ns: npt.NDArray[Any], bins: int = 60) -> list[dict[str, float | str]]:
    """Counts between logarithmic edges, in milliseconds; fewer bars for fewer samples (square-root rule)."""
    import numpy as np

    positive = samples_ns[samples_ns > 0] / 1e6
    if positive.size == 0:
        return []
    low, high = float(positive.min()), float(positive.max())
    if low == high:
        low, high = low * 0.98, high * 1.02
    wanted = int(min(bins, max(5, np.sqrt(positive.size))))
    edges = np.geomspace(low, high, wanted + 1)
    edges[0], edges[-1] = low, high  # geomspace rounds, and no sample may fall out
    counts, _ = np.histogram(positive, bins=edges)
    return [
        {
            "low": float(a),
            "high": float(b),
            "count": int(c),
            "floor": 0,
            "from": number(float(a)),
            "to": number(float(b)),
        }
        for a, b, c in zip(edges[:-1], edges[1:], counts, strict=True)
        if c
    ]


def _latency_point(row: ResultRow, label: str) -> dict[str, object]:
    p50 = row.p50_ms
    assert p50 is not None
    tail = row.p90_ms if row.p90_ms is not None else row.p99_ms
    return {
        "label": label,
        "hardware": _model(row),
        "source": source_name(row),
        "p50": significant(p50, 4),
        "low": significant(row.latency_min_ms if row.latency_min_ms is not None else p50, 4),
        "high": significant(tail if tail is not None else p50, 4),
        "p90": None if row.p90_ms is None else significant(row.p90_ms, 4),
        "p99": None if row.p99_ms is None else significant(row.p99_ms, 4),
        "count": row.latency_count,
    }


def _unique_labels(rows: Sequence[ResultRow]) -> list[str]:
    """Hardware on one line, what ran on it on the next; rows that look alike are numbered, or they would be one line."""
    names = []
    for row in rows:
        scenario = "" if row.scenario == "single_stream" else f", {scenario_title(row.scenario).lower()}"
        batch = f", batch {row.batch}" if (row.batch or 1) > 1 else ""
        gate = f", {barred_words(row)}" if barred_words(row) else ""
        precision = "" if (row.effective_precision or "fp32") == "fp32" else f", {row.effective_precision}"
        what = f"{route_name(row)}: {row.workload_title or row.workload}{precision}{scenario}{batch}{gate}"
        names.append(f"{hardware_name(row)}{BREAK}{what}")
    return draw.numbered(names)


def _model(row: ResultRow) -> str:
    """What a marker belongs to: the hardware model, however many units work as one."""
    return row.hardware_model or row.device


def _colour(rows: Sequence[ResultRow], marks: Mapping[str, Marker]) -> Any:
    return draw.colour_of([_model(row) for row in rows], marks)


def _shape(rows: Sequence[ResultRow], marks: Mapping[str, Marker]) -> Any:
    return draw.shape_of([_model(row) for row in rows], marks)
