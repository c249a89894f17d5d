"""Charts of what load does: latency at offered rates with a limit across, and figures over batch or streams. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dashboard import drawing as draw
from dashboard.palette import ACCENT, LINE
from dashboard.wording import bounds, number
from harness.judgement.spread import spread_of

if TYPE_CHECKING:
    import altair as alt

    from harness.judgement.sweeps import Sweep

RATE_PERCENTILES = ("p50", "p90", "p99")
RATE_COLOURS = {"p50": "#56B4E9", "p90": "#0072B2", "p99": "#D55E00"}
MEETS = {"met": "meets the limit", "missed": "misses the limit", "undecided": "undecided", None: "no limit"}


def rate_curve_chart(curve: Mapping[str, Any], limit_ms: float | None) -> alt.LayerChart | None:
    """Latency percentiles over the offered rate, log axis, a line at the limit; None without a point.

    A thick line is a percentile's interval or range. Hollow: the system did not keep up, so that a longer test would have
    been slower.
    """
    import altair as alt

    values = [
        point
        for rate in curve.get("points") or ()
        for name in RATE_PERCENTILES
        for point in [_rate_point(rate, name)]
        if point is not None
    ]
    if not values:
        return None

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title="latency (ms), log scale", scale=draw.log(10), axis=draw.faint())

    axis = alt.Axis(tickCount=10, gridOpacity=0.35)
    x = alt.X("rate:Q", title="offered rate (queries/s)", scale=alt.Scale(zero=False, padding=20), axis=axis)
    colour = alt.Color(
        "percentile:N",
        title=None,
        scale=alt.Scale(domain=list(RATE_COLOURS), range=list(RATE_COLOURS.values())),
        legend=alt.Legend(orient="top", symbolOpacity=1),
    )
    fields = (("rate_text", "offered (queries/s)"), ("percentile", "percentile"), ("text", "latency (ms)"),
              ("sure", "interval or range (ms)"), ("completed", "completed (queries/s)"), ("count", "queries"),
              ("keeps_up", "keeps up"))  # fmt: skip
    base = alt.Chart(draw.inline(values)).encode(x=x, color=colour, tooltip=draw.tooltip(*fields))
    line = base.mark_line(strokeWidth=1.5, opacity=0.7).encode(y=y("value"))
    sure = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=5, opacity=0.35)
    sure = sure.encode(y=y("low"), y2="high:Q")
    held = (
        base.transform_filter("datum.keeps_up != 'no'").mark_point(filled=True, size=70, opacity=1).encode(y=y("value"))
    )
    lost = base.transform_filter("datum.keeps_up == 'no'").mark_point(filled=False, size=70, strokeWidth=2, opacity=1)
    layers = [sure, line, held, lost.encode(y=y("value"))]
    if limit_ms is not None:
        layers.append(_across(limit_ms, f"limit {number(limit_ms)} ms", y("at")))
    return draw.layered(*layers, height=320)


def sweep_chart(sweep: Sweep) -> alt.LayerChart | None:
    """Throughput over one setting, log axis, with the knee and the cliffs as named lines; None below two points."""
    import altair as alt

    if len(sweep.points) < 2:
        return None
    values = [
        {
            "at": point.setting,
            "value": point.throughput_per_s,
            "low": point.low,
            "high": point.high,
            "text": number(point.throughput_per_s),
            "sure": f"{number(point.low)} to {number(point.high)}" if point.low is not None else "none",
            "p50": number(point.p50_ms, "none"),
        }
        for point in sweep.points
    ]
    axis = alt.Axis(values=[point.setting for point in sweep.points], format="d")
    scale = alt.Scale(type="log", base=2, nice=False, padding=20)

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=f"{sweep.axis}, log scale", scale=scale, axis=axis)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title="throughput (samples/s)", scale=alt.Scale(zero=True))

    fields = (
        ("at", sweep.axis),
        ("text", "samples/s"),
        ("sure", "interval or range"),
        ("p50", "p50 of a request (ms)"),
    )
    base = alt.Chart(draw.inline(values)).encode(x=x("at"), tooltip=draw.tooltip(*fields))
    sure = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=5, opacity=0.35, color=ACCENT)
    layers: list[Any] = [
        sure.encode(y=y("low"), y2="high:Q"),
        base.mark_line(strokeWidth=1.5, opacity=0.7, color=ACCENT).encode(y=y("value")),
        base.mark_point(filled=True, size=70, opacity=1, color=ACCENT).encode(y=y("value")),
    ]
    marks = [{"at": sweep.knee, "name": "knee"}, *({"at": cliff.after, "name": "cliff"} for cliff in sweep.cliffs)]
    named = alt.Chart(draw.inline(marks))
    layers.append(named.mark_rule(color=LINE, strokeDash=[4, 3]).encode(x=x("at")))
    text = named.mark_text(color=LINE, baseline="bottom", fontWeight="bold")
    layers.append(text.encode(x=x("at"), text="name:N", y=alt.value(-4)))
    return draw.layered(*layers, height=260)


def _rate_point(rate: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    spread = spread_of(rate.get(name))
    if spread.value is None:
        return None
    keeps_up = rate.get("keeps_up")
    return {
        "rate": rate["offered_per_s"],
        "rate_text": number(rate["offered_per_s"]),
        "percentile": name,
        "value": spread.value,
        "low": spread.low,
        "high": spread.high,
        "text": number(spread.value),
        "sure": bounds(spread) or "none",
        "completed": number(rate.get("completed_per_s"), "not known"),
        "count": rate.get("count"),
        "keeps_up": "not known" if keeps_up is None else "yes" if keeps_up else "no",
    }


def _across(at: float, name: str, y: alt.Y) -> Any:
    """A dashed line across the chart with its name at the left end."""
    import altair as alt

    base = alt.Chart(draw.inline([{"at": at, "name": name}]))
    text = base.mark_text(color=LINE, align="left", baseline="bottom", fontWeight="bold", dx=4, dy=-2)
    return base.mark_rule(color=LINE, strokeDash=[6, 3], strokeWidth=1.5).encode(y=y) + text.encode(
        x=alt.value(0), y=y, text="name:N"
    )
