"""How often a case was repeated, why it ended there, and the confidence that its intervals may claim for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.judgement.flags import NOT_NARROW
from harness.judgement.intervals import CONFIDENCE, median_over_trials
from harness.judgement.stopping import decide
from harness.judgement.summary import ONE_UNIT
from harness.records import Flag, Sampling
from harness.runner.target_figures import OwnFigure, centres_of, values_of
from harness.suites.definition import Group


@dataclass(frozen=True)
class Sampled:
    """The record's own account, the confidence of one look for every interval of the case, and the flags."""

    sampling: Sampling
    confidence: float
    flags: tuple[Flag, ...] = ()


def sampled(group: Group, figure: str, values: Sequence[OwnFigure | None], interrupted: bool) -> Sampled | None:
    """Return how the trials of a case were sampled. `values` are their target figures, in the order of trials, None where
    a trial has no such figure, as a curve has none.

    A case that neither its own rule nor Ctrl-C ended was ended by the run's budget. None without a trial.
    """
    if not values:
        return None
    known = [value for value in values if value is not None]
    if group.fixed or len(known) < len(values):
        complete = known if len(known) == len(values) else []
        return Sampled(_fixed(group, figure, len(values), complete, interrupted), CONFIDENCE)
    return _looked_at(group, figure, known, interrupted)


def _looked_at(group: Group, figure: str, values: Sequence[OwnFigure], interrupted: bool) -> Sampled:
    plan = group.stopping
    points, centres = values_of(values), centres_of(values)
    decision = decide(points, plan, centres=centres)
    # Between two looks nobody looks, unless something else made this the last one.
    ended_by_rule = decision.stop and len(values) >= group.trials
    if not ended_by_rule:
        decision = decide(points, plan, budget_spent=True, centres=centres)
    confidence = plan.confidence_at(len(values), last=not ended_by_rule or len(values) == plan.looks[-1])
    assert decision.interval is not None
    width = decision.interval.relative_half_width
    narrow = decision.why == "narrow_enough"
    stopped = "narrow_enough" if narrow else "interrupted" if interrupted and not ended_by_rule else "budget_spent"
    sentence = f"{figure}: {decision.sentence} {ONE_UNIT[0].upper()}{ONE_UNIT[1:]}."
    if stopped == "interrupted":
        sentence = sentence.replace("the budget is spent", "the run was interrupted")
    account = Sampling(
        trials=len(values),
        figure=figure,
        stopped=stopped,  # type: ignore[arg-type]
        sentence=sentence,
        looks=plan.looks,
        asked_half_width=plan.half_width,
        reached_half_width=width,
    )
    return Sampled(account, confidence, () if narrow else (Flag(NOT_NARROW, sentence),))


def _fixed(group: Group, figure: str, count: int, values: Sequence[OwnFigure], interrupted: bool) -> Sampling:
    trials = f"{count} trial{'s' if count > 1 else ''}"
    short = count < group.trials
    why = f"{trials}, {group.trials} were planned" if short else f"{trials}, a number that was fixed beforehand"
    across = median_over_trials(values_of(values), CONFIDENCE, centres_of(values)) if values else None
    width = across.relative_half_width if across is not None else None
    if not values:
        told = ""
    elif width is not None:
        told = f"; the interval is within {width:.1%} of the median"
    else:
        told = "; they give a range, no interval" if count > 1 else "; one process tells nothing about the next"
    ended = ("interrupted" if interrupted else "budget_spent") if short else "fixed"
    return Sampling(
        trials=count,
        figure=figure,
        stopped=ended,  # type: ignore[arg-type]
        sentence=f"{figure}: {why}{told}. {ONE_UNIT[0].upper()}{ONE_UNIT[1:]}.",
        reached_half_width=width,
    )
