"""What every chart is drawn with: axes, labels, colours, tooltips, data inside the chart's own document. Pure.

Latency axes are logarithmic: hardware in one table is four orders of magnitude apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from dashboard.palette import BASELINE, Marker

if TYPE_CHECKING:
    import altair as alt

ROW_HEIGHT = 36
AXIS_HEIGHT = 60  # Streamlit fits the axis and its title into the chart's height
LABEL_PIXELS = 300
BREAK = "\n"  # a label of two lines


def numbered(names: Iterable[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def log(padding: int) -> Any:
    import altair as alt

    return alt.Scale(type="log", nice=False, padding=padding)


def faint() -> Any:
    """A log axis has many lines; they must not outshine the data."""
    import altair as alt

    return alt.Axis(gridOpacity=0.35)


def labels_axis(field: str) -> Any:
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


def colour_of(hardware: Iterable[str], marks: Mapping[str, Marker]) -> Any:
    """Colour by hardware. No legend: each line is labelled with the hardware's name."""
    import altair as alt

    names = sorted(set(hardware))
    colours = [marks[name].colour if name in marks else BASELINE for name in names]
    return alt.Color("hardware:N", scale=alt.Scale(domain=names, range=colours), legend=None)


def shape_of(hardware: Iterable[str], marks: Mapping[str, Marker]) -> Any:
    import altair as alt

    names = sorted(set(hardware))
    shapes = [marks[name].shape if name in marks else "circle" for name in names]
    return alt.Shape("hardware:N", scale=alt.Scale(domain=names, range=shapes), legend=None)


def tooltip(*fields: tuple[str, str]) -> list[Any]:
    import altair as alt

    return [alt.Tooltip(name, type="nominal", title=title) for name, title in fields]


def inline(values: Sequence[Mapping[str, object]]) -> Any:
    """Data inside the chart's own document."""
    import altair as alt

    return alt.InlineData(values=list(values))


def layered(*layers: Any, height: int) -> alt.LayerChart:
    """Layers on one pair of axes, as wide as the page."""
    import altair as alt

    return cast("alt.LayerChart", alt.layer(*layers).properties(height=height, width="container"))


def height(rows: int) -> int:
    return ROW_HEIGHT * rows + AXIS_HEIGHT
