"""Charts of a comparison: each system's figure, and its ratio to the baseline with the interval. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dashboard import drawing as draw
from dashboard.drawing import BREAK
from dashboard.palette import BASELINE, Marker
from dashboard.wording import bounds, number, ratio_words
from harness.judgement.comparison import Entry, Section
from harness.judgement.figures import headline_metric, spread_of_metric

if TYPE_CHECKING:
    import altair as alt


def ratio_chart(section: Section, marks: Mapping[str, Marker]) -> alt.LayerChart | None:
    """The scenario's figure over the baseline's, log axis, a line at 1; None where nothing can be divided.

    A thick line is the ratio's 95 % interval. Grey: no difference is shown, or the two are not comparable.
    """
    import altair as alt

    entries = [entry for entry in section.entries if entry.headline is not None and entry.headline.ratio is not None]
    if not entries:
        return None
    values = [_ratio_point(entry, label) for entry, label in zip(entries, _entry_labels(entries), strict=True)]
    unit, direction = _headline_words(section.scenario)

    def x(field: str) -> alt.X:
        title = f"{unit} ÷ baseline's, log scale ({direction})"
        return alt.X(f"{field}:Q", title=title, scale=draw.log(34), axis=draw.faint())

    fields = (("label", "system"), ("text", "÷ baseline"), ("verdict", "verdict"), ("why", "because"),
              ("source", "source"), ("differs", "differs in"))  # fmt: skip
    base = alt.Chart(draw.inline(values)).encode(y=draw.labels_axis("label:N"), tooltip=draw.tooltip(*fields))
    hardware = [entry.system.hardware_model for entry in entries]
    coloured = draw.colour_of(hardware, marks)
    colour = alt.condition("datum.grey", alt.value(BASELINE), coloured)
    line = base.mark_rule(strokeWidth=1.5, opacity=0.45, strokeDash=[2, 2]).encode(
        x=x("ratio"), x2="one:Q", color=colour
    )
    interval = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=5, opacity=0.6)
    interval = interval.encode(x=x("low"), x2="high:Q", color=colour)
    dot = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x("ratio"), color=colour, shape=draw.shape_of(hardware, marks)
    )
    one = alt.Chart(draw.inline([{"one": 1}])).mark_rule(strokeDash=[4, 4], color=BASELINE).encode(x=x("one"))
    return draw.layered(one, line, interval, dot, height=draw.height(len(entries)))


def _ratio_point(entry: Entry, label: str) -> dict[str, object]:
    figure = entry.headline
    assert figure is not None and figure.ratio is not None
    judged = entry.judged(figure.metric)
    interval = judged.ratio if judged is not None else None
    refused = judged is not None and judged.verdict.kind == "not_comparable"
    return {
        "label": label,
        "hardware": entry.system.hardware_model,
        "source": entry.system.source,
        "ratio": figure.ratio,
        "low": interval.low if interval is not None else None,
        "high": interval.high if interval is not None else None,
        "one": 1,
        "text": ratio_words(figure.ratio, judged),
        "verdict": judged.verdict.title if judged is not None else "",
        "why": " ".join(judged.verdict.reasons[:2]) if judged is not None else "",
        "grey": refused or (judged is not None and judged.difference == "not_shown"),
        "differs": ", ".join(item.field for item in entry.differences) or "nothing that is known",
    }


def absolute_chart(section: Section, marks: Mapping[str, Marker]) -> alt.LayerChart | None:
    """The scenario's figure of each system; for latency a thin line from p50 to p90. A thick line is its 95 % interval.

    None where there is none. What failed its accuracy gate is grey.
    """
    import altair as alt

    entries = [entry for entry in section.entries if entry.headline is not None and entry.headline.value is not None]
    if not entries:
        return None
    values = [_absolute_point(entry, label) for entry, label in zip(entries, _entry_labels(entries), strict=True)]
    unit, direction = _headline_words(section.scenario)

    def x(field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=f"{unit}, log scale ({direction})", scale=draw.log(12), axis=draw.faint())

    latency = headline_metric(section.scenario) == "p50"
    fields = [("label", "system"), ("text", unit), ("sure", "95 % interval or range"), ("source", "source")]
    fields += [("p90", "p90 (ms)")] if latency else []
    base = alt.Chart(draw.inline(values)).encode(y=draw.labels_axis("label:N"), tooltip=draw.tooltip(*fields))
    hardware = [entry.system.hardware_model for entry in entries]
    colour = alt.condition("datum.failed", alt.value(BASELINE), draw.colour_of(hardware, marks))
    dot = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x("value"), color=colour, shape=draw.shape_of(hardware, marks)
    )
    layers = [dot]
    if any(value["low"] is not None for value in values):
        interval = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=5, opacity=0.5)
        layers.insert(0, interval.encode(x=x("low"), x2="sure_high:Q", color=colour))
    if latency:
        layers.insert(0, base.mark_rule(strokeWidth=2, opacity=0.45).encode(x=x("value"), x2="high:Q", color=colour))
    return draw.layered(*layers, height=draw.height(len(entries)))


def _absolute_point(entry: Entry, label: str) -> dict[str, object]:
    figure, p90 = entry.headline, entry.figure("p90")
    assert figure is not None and entry.row is not None
    spread = spread_of_metric(entry.row, figure.metric)
    sure = spread.kind == "interval"
    return {
        "label": label,
        "hardware": entry.system.hardware_model,
        "source": entry.system.source,
        "value": figure.value,
        "high": p90.value if p90 is not None and p90.value is not None else figure.value,
        "low": spread.low if sure else None,
        "sure_high": spread.high if sure else None,
        "sure": bounds(spread) or "none",
        "failed": bool(entry.barred),
        "text": number(figure.value),
        "p90": number(p90.value, "not given") if p90 is not None else "",
    }


def _entry_labels(entries: Sequence[Entry]) -> list[str]:
    """Hardware on one line, what ran on it on the next, with what tells it apart and whether it failed the gate."""

    def label(entry: Entry) -> str:
        system = entry.system
        rest = system.label.removeprefix(f"{system.hardware}, ")
        more = "".join(f", {text}" for text in (entry.variant, entry.barred) if text)
        return f"{system.hardware}{BREAK}{rest}{more}" if rest != system.label else f"{system.label}{more}"

    return draw.numbered(label(entry) for entry in entries)


def _headline_words(scenario: str) -> tuple[str, str]:
    if headline_metric(scenario) == "throughput":
        return ("throughput (samples/s)", "more to the right is faster")
    if headline_metric(scenario) == "first_answer":
        return ("first answer (ms)", "more to the left is faster")
    return ("p50 latency (ms)", "more to the left is faster")
