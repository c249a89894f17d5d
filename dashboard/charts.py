"""Charts as pure functions: rows in, `alt.Chart` out. Nothing raw goes to the browser; samples are aggregated here.

Latency axes are logarithmic: hardware in one table is four orders of magnitude apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from dashboard.palette import ACCENT, BASELINE, Marker
from dashboard.wording import number, ratio, significant
from harness.judgement.comparison import Entry, Section, scenario_title
from harness.judgement.figures import headline_metric, source_name
from harness.judgement.systems import hardware_name, route_name

if TYPE_CHECKING:
    import altair as alt
    import numpy.typing as npt

    from db.queries import ResultRow

LINE = "#D55E00"
CHART_ROWS = 60  # a taller chart is not read; the table has the rest
ROW_HEIGHT = 36
AXIS_HEIGHT = 60  # Streamlit fits the axis and its title into the chart's height
LABEL_PIXELS = 300
BREAK = "\n"  # a label of two lines


def latency_chart(rows: Sequence[ResultRow], marks: Mapping[str, Marker]) -> alt.LayerChart | None:
    """Median latency with a whisker from the fastest sample to p90, and a tick at p99; None without any latency."""
    import altair as alt

    timed = sorted((row for row in rows if row.p50_ms is not None), key=lambda row: row.p50_ms or 0)[:CHART_ROWS]
    if not timed:
        return None
    data = _inline([_latency_point(row, label) for row, label in zip(timed, _unique_labels(timed), strict=True)])
    y = _labels_axis("label:N")
    title, scale = "latency (ms), log scale", _log(12)
    x = alt.X("p50:Q", title=title, scale=scale, axis=_faint())
    colour = _colour(timed, marks)
    tooltip = _tooltip(
        ("label", "what"), ("source", "source"), ("p50", "p50 (ms)"), ("low", "min (ms)"), ("p90", "p90 (ms)"),
        ("p99", "p99 (ms)"), ("count", "samples"),
    )  # fmt: skip
    base = alt.Chart(data).encode(y=y, color=colour, tooltip=tooltip)
    whisker = base.mark_rule(strokeWidth=2, opacity=0.55).encode(
        x=alt.X("low:Q", title=title, scale=scale, axis=_faint()), x2="high:Q"
    )
    tail = base.transform_filter("isValid(datum.p99)").mark_tick(thickness=2, size=12).encode(x="p99:Q")
    dot = base.mark_point(filled=True, size=80, opacity=1).encode(x=x, shape=_shape(timed, marks))
    return _layered(whisker, tail, dot, height=_height(len(timed)))


def ratio_chart(section: Section, marks: Mapping[str, Marker]) -> alt.LayerChart | None:
    """The scenario's figure over the baseline's, log axis, a line at 1; None where nothing can be divided."""
    import altair as alt

    entries = [entry for entry in section.entries if entry.headline is not None and entry.headline.ratio is not None]
    if not entries:
        return None
    values = []
    for entry, label in zip(entries, _entry_labels(entries), strict=True):
        figure = entry.headline
        assert figure is not None and figure.ratio is not None
        values.append(
            {
                "label": label,
                "hardware": entry.system.hardware_model,
                "source": entry.system.source,
                "ratio": figure.ratio,
                "one": 1,
                "text": ratio(figure.ratio),
                "differs": ", ".join(item.field for item in entry.differences) or "nothing that is known",
            }
        )
    unit, direction = _headline_words(section.scenario)
    x = alt.X(
        "ratio:Q",
        title=f"{unit} ÷ baseline's, log scale ({direction})",
        scale=_log(34),
        axis=_faint(),
    )
    tooltip = _tooltip(("label", "system"), ("text", "÷ baseline"), ("source", "source"), ("differs", "differs in"))
    base = alt.Chart(_inline(values)).encode(y=_labels_axis("label:N"), tooltip=tooltip)
    colour = _colour_of([entry.system.hardware_model for entry in entries], marks)
    line = base.mark_rule(strokeWidth=2, opacity=0.55).encode(x=x, x2="one:Q", color=colour)
    shape = _shape_of([entry.system.hardware_model for entry in entries], marks)
    dot = base.mark_point(filled=True, size=90, opacity=1).encode(x=x, color=colour, shape=shape)
    one = alt.Chart(_inline([{"one": 1}])).mark_rule(strokeDash=[4, 4], color=BASELINE).encode(x="one:Q")
    return _layered(one, line, dot, height=_height(len(entries)))


def absolute_chart(section: Section, marks: Mapping[str, Marker]) -> alt.LayerChart | None:
    """The scenario's figure of each system; for latency a line from p50 to p90. None where there is none."""
    import altair as alt

    entries = [entry for entry in section.entries if entry.headline is not None and entry.headline.value is not None]
    if not entries:
        return None
    values = []
    for entry, label in zip(entries, _entry_labels(entries), strict=True):
        figure, p90 = entry.headline, entry.figure("p90")
        assert figure is not None
        values.append(
            {
                "label": label,
                "hardware": entry.system.hardware_model,
                "source": entry.system.source,
                "value": figure.value,
                "high": p90.value if p90 is not None and p90.value is not None else figure.value,
                "text": number(figure.value),
                "p90": number(p90.value, "not given") if p90 is not None else "",
            }
        )
    unit, direction = _headline_words(section.scenario)
    x = alt.X("value:Q", title=f"{unit}, log scale ({direction})", scale=_log(12), axis=_faint())
    latency = headline_metric(section.scenario) == "p50"
    tooltip = [("label", "system"), ("text", unit), ("source", "source")] + ([("p90", "p90 (ms)")] if latency else [])
    base = alt.Chart(_inline(values)).encode(y=_labels_axis("label:N"), tooltip=_tooltip(*tooltip))
    colour = _colour_of([entry.system.hardware_model for entry in entries], marks)
    shape = _shape_of([entry.system.hardware_model for entry in entries], marks)
    dot = base.mark_point(filled=True, size=90, opacity=1).encode(x=x, color=colour, shape=shape)
    if not latency:
        return _layered(dot, height=_height(len(entries)))
    line = base.mark_rule(strokeWidth=2, opacity=0.55).encode(x=x, x2="high:Q", color=colour)
    return _layered(line, dot, height=_height(len(entries)))


def distribution_chart(samples_ns: npt.NDArray[Any], marks_ms: Mapping[str, float | None]) -> alt.LayerChart | None:
    """A histogram of raw latencies on a log axis, at most 60 bars, with the percentiles as lines; None without samples."""
    import altair as alt

    bars = histogram(samples_ns)
    if not bars:
        return None
    x = alt.X("low:Q", title="latency (ms), log scale", scale=_log(0), axis=_faint())
    y = alt.Y("count:Q", title="samples", axis=alt.Axis(tickMinStep=1))
    tooltip = _tooltip(("from", "from (ms)"), ("to", "to (ms)"), ("count", "samples"))
    chart = alt.Chart(_inline(bars)).mark_bar(color=ACCENT, opacity=0.8)
    chart = chart.encode(x=x, x2="high:Q", y=y, y2="floor:Q", tooltip=tooltip)
    lines = [{"at": value, "name": name} for name, value in marks_ms.items() if value is not None]
    if not lines:
        return _layered(chart, height=260)
    base = alt.Chart(_inline(lines))
    rule = base.mark_rule(color=LINE, strokeDash=[4, 3]).encode(
        x="at:Q", tooltip=_tooltip(("name", "percentile"), ("at", "ms"))
    )
    name = base.mark_text(color=LINE, baseline="bottom", fontWeight="bold").encode(
        x="at:Q", text="name:N", y=alt.value(-4)
    )
    return _layered(chart, rule, name, height=260)


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
    base = alt.Chart(_inline(values)).encode(
        y=alt.Y("stage:N", title=None, sort=alt.EncodingSortField("place"), axis=alt.Axis(labelLimit=LABEL_PIXELS)),
        x=alt.X("ms:Q", title="median (ms)"),
        tooltip=_tooltip(("stage", "stage"), ("text", "median")),
    )
    return _layered(base.mark_bar(color=ACCENT, opacity=0.8), height=max(90, 30 * len(values) + 50))


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
        what = f"{route_name(row)}: {row.workload_title or row.workload}{scenario}{batch}"
        names.append(f"{hardware_name(row)}{BREAK}{what}")
    return _numbered(names)


def _entry_labels(entries: Sequence[Entry]) -> list[str]:
    several = {entry.system.id for entry in entries if sum(other.system.id == entry.system.id for other in entries) > 1}

    def label(entry: Entry) -> str:
        system = entry.system
        rest = system.label.removeprefix(f"{system.hardware}, ")
        batch = f", batch {entry.row.batch}" if system.id in several and entry.row else ""
        return f"{system.hardware}{BREAK}{rest}{batch}" if rest != system.label else f"{system.label}{batch}"

    return _numbered(label(entry) for entry in entries)


def _numbered(names: Iterable[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def _headline_words(scenario: str) -> tuple[str, str]:
    if headline_metric(scenario) == "throughput":
        return ("throughput (samples/s)", "more to the right is faster")
    return ("p50 latency (ms)", "more to the left is faster")


def _log(padding: int) -> Any:
    import altair as alt

    return alt.Scale(type="log", nice=False, padding=padding)


def _faint() -> Any:
    """A log axis has many lines; they must not outshine the data."""
    import altair as alt

    return alt.Axis(gridOpacity=0.35)


def _labels_axis(field: str) -> Any:
    """Names from top to bottom in the order of the data, none left out."""
    import altair as alt

    axis = alt.Axis(
        labelExpr=f"split(datum.label, {json.dumps(BREAK)})",
        labelLimit=LABEL_PIXELS,
        labelOverlap=False,
        labelFlush=False,
        labelOffset=-6,  # the middle of the two lines, not of the first
        gridOpacity=0.35,
        grid=True,
        ticks=False,
    )
    return alt.Y(field, title=None, sort=None, axis=axis)


def _model(row: ResultRow) -> str:
    """What a marker belongs to: the hardware model, however many units work as one."""
    return row.hardware_model or row.device


def _colour(rows: Sequence[ResultRow], marks: Mapping[str, Marker]) -> Any:
    return _colour_of([_model(row) for row in rows], marks)


def _shape(rows: Sequence[ResultRow], marks: Mapping[str, Marker]) -> Any:
    return _shape_of([_model(row) for row in rows], marks)


def _colour_of(hardware: Iterable[str], marks: Mapping[str, Marker]) -> Any:
    """Colour by hardware. No legend: each line is labelled with the hardware's name."""
    import altair as alt

    names = sorted(set(hardware))
    colours = [marks[name].colour if name in marks else BASELINE for name in names]
    return alt.Color("hardware:N", scale=alt.Scale(domain=names, range=colours), legend=None)


def _shape_of(hardware: Iterable[str], marks: Mapping[str, Marker]) -> Any:
    import altair as alt

    names = sorted(set(hardware))
    shapes = [marks[name].shape if name in marks else "circle" for name in names]
    return alt.Shape("hardware:N", scale=alt.Scale(domain=names, range=shapes), legend=None)


def _tooltip(*fields: tuple[str, str]) -> list[Any]:
    import altair as alt

    return [alt.Tooltip(name, type="nominal", title=title) for name, title in fields]


def _inline(values: Sequence[Mapping[str, object]]) -> Any:
    """Data inside the chart's own document."""
    import altair as alt

    return alt.InlineData(values=list(values))


def _layered(*layers: Any, height: int) -> alt.LayerChart:
    """Layers on one pair of axes, as wide as the page."""
    import altair as alt

    return cast("alt.LayerChart", alt.layer(*layers).properties(height=height, width="container"))


def _height(rows: int) -> int:
    return ROW_HEIGHT * rows + AXIS_HEIGHT
