"""Charts of what load does: latency at offered rates with a limit across, and figures over batch or streams. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dashboard import drawing as draw
from dashboard.palette import ACCENT, LINE
from dashboard.wording import bounds, number
from harness.judgement.spread import spread_of

if TYPE_CHECKING:
    import altair as alt

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


def sweep_chart(
    points: Sequence[Mapping[str, Any]], axis: str, unit: str, marks: Sequence[tuple[float, str]] = ()
) -> alt.LayerChart | None:
    """A figure over batch, streams or threads, with named vertical lines (a knee, a cliff); None below two points.

    `points` have `at`, `value`, and `low` and `high` where an interval or range exists.
    """
    import altair as alt

    if len(points) < 2:
        return None
    values = [{**point, "text": number(point["value"])} for point in points]
    x = alt.X("at:Q", title=f"{axis}, log scale", scale=alt.Scale(type="log", base=2, nice=False, padding=20),
              axis=alt.Axis(values=sorted({point["at"] for point in points}), format="d"))  # fmt: skip

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=unit, scale=alt.Scale(zero=True))

    tooltip = draw.tooltip(("at", axis), ("text", unit), ("sure", "interval or range"))
    base = alt.Chart(draw.inline(values)).encode(x=x, tooltip=tooltip)
    layers: list[Any] = [
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=5, opacity=0.35, color=ACCENT)
        .encode(y=y("low"), y2="high:Q"),
        base.mark_line(strokeWidth=1.5, opacity=0.7, color=ACCENT).encode(y=y("value")),
        base.mark_point(filled=True, size=70, opacity=1, color=ACCENT).encode(y=y("value")),
    ]
    if marks:
        named = alt.Chart(draw.inline([{"at": at, "name": name} for at, name in marks]))
        layers.append(named.mark_rule(color=LINE, strokeDash=[4, 3]).encode(x=x))
        layers.append(
            named.mark_text(color=LINE, baseline="bottom", align="left", dx=4, fontWeight="bold").encode(
                x=x, text="name:N", y=alt.value(12)
            )
        )
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
