"""Charts of what time does: a sustained load slice by slice, the parts of cold starts, answers after idleness. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dashboard import drawing as draw
from dashboard.palette import ACCENT, COLOURS, LINE
from dashboard.wording import number

if TYPE_CHECKING:
    import altair as alt

PARTS = ("process", "import", "load", "compile", "first_inference")  # in the order they happen
PART_COLOURS = ("#8A8F98", "#56B4E9", "#0072B2", "#E69F00", "#D55E00")
PANEL_HEIGHT = 140
Line = tuple[str, str, str]  # field of a slice, colour, name written at the line


def over_time_charts(over_time: Mapping[str, Any]) -> list[alt.LayerChart]:
    """One chart below the other on the same time axis: latency (p50 and p99), then frequency and temperature where they
    were read; none without a slice."""
    slices = over_time.get("slices") or ()
    values = [_slice_point(part) for part in slices]
    if not values:
        return []
    shown: list[tuple[str, tuple[Line, ...]]] = [
        ("latency (ms)", (("p50_ms", ACCENT, "p50"), ("p99_ms", LINE, "p99"))),
        ("frequency (MHz)", (("cpu_mhz", COLOURS[2], ""),)),
        ("temperature (°C)", (("temperature_c", COLOURS[1], ""),)),
    ]
    shown = [panel for panel in shown if any(part.get(panel[1][0][0]) is not None for part in slices)]
    end = max(part["end_s"] for part in slices)
    return [_panel(values, title, lines, end, place == len(shown) - 1) for place, (title, lines) in enumerate(shown)]


def cold_start_chart(starts: Sequence[tuple[str, Mapping[str, Any]]]) -> alt.LayerChart | None:
    """One stacked bar for each start (a label, and its parts in milliseconds); None without any."""
    import altair as alt

    values = []
    for label, parts in starts:
        total = sum(parts[name] for name in PARTS if parts.get(name) is not None)
        for place, name in enumerate(PARTS):
            if parts.get(name) is not None:
                words = name.replace("_", " ")
                values.append({"label": label, "part": words, "ms": parts[name], "place": place,
                               "text": f"{number(parts[name])} ms", "total": f"{number(total)} ms"})  # fmt: skip
    if not values:
        return None
    names = [name.replace("_", " ") for name in PARTS]
    present = [name for name in names if any(value["part"] == name for value in values)]
    bars = alt.Chart(draw.inline(values)).mark_bar(size=20).encode(
        y=draw.labels_axis("label:N"),
        x=alt.X("ms:Q", stack="zero", title="milliseconds from the start of the process, medians"),
        color=alt.Color(
            "part:N",
            title=None,
            sort=present,
            scale=alt.Scale(domain=present, range=[PART_COLOURS[names.index(name)] for name in present]),
            legend=alt.Legend(orient="top"),
        ),
        order=alt.Order("place:Q"),
        tooltip=draw.tooltip(("label", "start"), ("part", "part"), ("text", "median"), ("total", "all parts")),
    )  # fmt: skip
    return draw.layered(bars, height=draw.height(len(starts)) + 20)


def _slice_point(part: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **part,
        "middle": (part["start_s"] + part["end_s"]) / 2,
        "span": f"{number(part['start_s'])} to {number(part['end_s'])} s",
        "p50_text": number(part.get("p50_ms"), "none"),
        "p99_text": number(part.get("p99_ms"), "none"),
        "rate_text": number(part.get("throughput_per_s"), "none"),
        "mhz_text": number(part.get("cpu_mhz"), "not read"),
        "degrees_text": number(part.get("temperature_c"), "not read"),
    }


def _panel(
    values: Sequence[Mapping[str, Any]], title: str, lines: Sequence[Line], end_s: float, with_axis: bool
) -> alt.LayerChart:
    import altair as alt

    axis = alt.Axis() if with_axis else alt.Axis(labels=False, ticks=False)
    x = alt.X(
        "middle:Q",
        title="seconds from the window's start" if with_axis else None,
        axis=axis,
        scale=alt.Scale(domain=[0, end_s], nice=False, padding=10),
    )
    fields = (("span", "slice"), ("p50_text", "p50 (ms)"), ("p99_text", "p99 (ms)"), ("rate_text", "samples/s"),
              ("mhz_text", "MHz"), ("degrees_text", "°C"))  # fmt: skip
    layers: list[Any] = []
    for field, colour, name in lines:
        known = [value for value in values if value.get(field) is not None]
        y = alt.Y(f"{field}:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(minExtent=50, titleX=-48))
        base = alt.Chart(draw.inline(known))
        layers.append(base.mark_line(color=colour, strokeWidth=2).encode(x=x, y=y))
        dots = base.mark_point(color=colour, filled=True, size=30)
        layers.append(dots.encode(x=x, y=y, tooltip=draw.tooltip(*fields)))
        if name and known:
            last = alt.Chart(draw.inline(known[-1:]))
            text = last.mark_text(align="right", baseline="bottom", dy=-6, color=colour, fontWeight="bold", text=name)
            layers.append(text.encode(x=x, y=y))
    return draw.layered(*layers, height=PANEL_HEIGHT + (40 if with_axis else 0))
