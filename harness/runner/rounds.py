"""Which trial comes next: rounds over all cases in a seeded random order, until each case is sure enough. No process here.

Rounds spread slow changes of the machine over all cases, and the order keeps one case from always following another. After
each round every case is looked at (`harness.judgement.stopping`): one that is narrow enough leaves. The rest go on until
their last look, or until the budget does not hold another round; then all stop at the last finished round.

What is decided depends on finished outcomes alone, the time they took included. A run that is resumed plays its finished
trials through again and comes to the same decisions.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.judgement.stopping import decide
from harness.runner.cases import PlannedCase, PlannedTrial
from harness.runner.target_figures import MEASURING_KINDS, OwnFigure, centres_of, target_figure, values_of
from harness.runner.trial_process import Outcome
from harness.suites.definition import Group

# After the first round, so that an early end leaves their answers too, and before the last, so that time is left for them.
BETWEEN_KINDS = ("placement", "fidelity", "accuracy")
LAST_KINDS = ("energy",)  # they begin with a stretch of idle
ENERGY_OVERHEAD_S = 3.0  # beside the window: start, load; for what is set aside of the budget only

Step = tuple[PlannedCase, PlannedTrial]


@dataclass(frozen=True)
class Finished:
    """What a decision needs to know of a trial. `value` is its target figure, None where it has none (a curve)."""

    ok: bool
    value: OwnFigure | None
    elapsed_s: float


class Rounds:
    """Goes through the trials of a run. After each step the caller says what came of it by `record`, before the next."""

    def __init__(
        self, cases: Sequence[PlannedCase], seed: int, budget_s: float | None = None, energy_idle_s: float = 0.0
    ) -> None:
        self._cases = cases
        self._seed = seed
        self._budget_s = budget_s
        self._done: dict[str, list[Finished]] = {case.measurement_id: [] for case in cases}
        self._spent_s = 0.0
        last = [trial for case in cases for trial in case.trials if trial.job.kind in LAST_KINDS]
        windows = sum(float(trial.job.scenario_parameters.get("duration_s", 0)) + ENERGY_OVERHEAD_S for trial in last)
        self._reserved_s = windows + energy_idle_s if last else 0.0
        self._recorded = 0
        self.number = 0  # of the round, from one
        self.active = 0  # cases in this round
        self.budget_spent = False

    def __iter__(self) -> Iterator[Step]:
        """Yield every trial that is to be run, or was run before."""
        active = [case for case in self._cases if measuring(case)]
        while active:
            self.number += 1
            self.active = len(active)
            steps = [(case, measuring(case)[self.number - 1]) for case in active]
            yield from self._shuffled(steps, f"timing-{self.number - 1}")
            if self.number == 1:
                yield from self._of_kinds(BETWEEN_KINDS)
            active = [case for case in active if self.goes_on(case)]
            if active and self._budget_s is not None and self._next_round_s(active) > self._budget_s:
                self.budget_spent = True
                active = []
        if not self.number:
            yield from self._of_kinds(BETWEEN_KINDS)
        yield from self._of_kinds(LAST_KINDS)

    def record(self, case: PlannedCase, trial: PlannedTrial, outcome: Outcome) -> None:
        """Take note of what came of a step."""
        self._spent_s += outcome.elapsed_s
        self._recorded += 1
        if trial.job.kind in MEASURING_KINDS:
            value = target_figure(case.intent.scenario, outcome)
            self._done[case.measurement_id].append(Finished(outcome.status == "ok", value, outcome.elapsed_s))

    def goes_on(self, case: PlannedCase) -> bool:
        """Say whether a case gets a further trial, as far as it alone decides."""
        done = self._done[case.measurement_id]
        if len(done) >= len(measuring(case)):
            return False
        return wants_more(case.intent.group, done)

    def trials_of(self, case: PlannedCase) -> int:
        """Return how many measuring trials of a case have ended."""
        return len(self._done[case.measurement_id])

    @property
    def done(self) -> int:
        """How many trials of all kinds have ended."""
        return self._recorded

    @property
    def expected(self) -> int:
        """How many trials there will be, if every case that goes on ends at its next look."""
        total = 0
        for case in self._cases:
            most, done = len(measuring(case)), self.trials_of(case)
            goes_on = done < most and (not done or self.goes_on(case)) and not self.budget_spent
            total += _next_stop(case.intent.group, done, most) if goes_on else done
            total += len(case.trials) - most
        return max(total, self._recorded)

    def _next_round_s(self, active: Sequence[PlannedCase]) -> float:
        """Return the seconds at the end of one more round, with what is set aside: each case takes what it took so far."""
        each = (self._done[case.measurement_id] for case in active)
        coming = sum(sum(one.elapsed_s for one in done) / len(done) for done in each)
        return self._spent_s + coming + self._reserved_s

    def _of_kinds(self, kinds: Iterable[str]) -> Iterator[Step]:
        for kind in kinds:
            steps = [(case, trial) for case in self._cases for trial in case.trials if trial.job.kind == kind]
            yield from self._shuffled(steps, kind)

    def _shuffled(self, steps: list[Step], what: str) -> list[Step]:
        random.Random(f"{self._seed}-{what}").shuffle(steps)  # noqa: S311  an order, not a secret
        return steps


def measuring(case: PlannedCase) -> list[PlannedTrial]:
    """Return the trials that the case's figures are made of, one for each round that it may take part in."""
    return [trial for trial in case.trials if trial.job.kind in MEASURING_KINDS]


def wants_more(group: Group, done: Sequence[Finished]) -> bool:
    """Say whether a case with these finished trials gets a further one. One that failed ends it: no figure comes of it."""
    if not all(one.ok for one in done):
        return False
    if len(done) < group.trials:
        return True
    values = [one.value for one in done if one.value is not None]
    if group.fixed or len(done) >= group.most_trials or len(values) < len(done):
        return False
    return not decide(values_of(values), group.stopping, centres=centres_of(values)).stop


def _next_stop(group: Group, done: int, most: int) -> int:
    following = [count for count in (group.trials, *group.stopping.looks) if count > done]
    return min(min(following, default=most), most)
