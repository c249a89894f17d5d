"""Every flag that a measurement may carry: its code, what it is called, what it means, how much trust it costs. Pure data.

A code is stable: records of years ago keep theirs, and what a code means is looked up when it is read, so that better
wording and better weights hold for old data too. The message of a flag in a record has the numbers; this has the meaning.

Weights: 0 tells, and costs nothing; 1 a slight doubt; 2 a serious one; 3 a grave one, the number may mean something else
than it seems to. `harness.judgement.trust` adds them up. A flag is a *caveat* where its cause is particular to this one
measurement, so that a comparison with another must name it (`harness.judgement.verdict`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["time", "energy", "accuracy"]

# What really ran
PRECISION_UNKNOWN = "precision_unknown"
REDUCED_PRECISION = "reduced_precision"
CPU_FALLBACK = "cpu_fallback"
MIXED_PLACEMENT = "mixed_placement"
AUTO_TARGET = "auto_target"
THREADS_OVERSUBSCRIBED = "threads_oversubscribed"
THREADS_DIFFER = "threads_differ"
RANDOM_INPUTS = "random_inputs"
# How it was sampled
FEWER_TRIALS = "fewer_trials"
FEW_SAMPLES = "few_samples"
NOT_NARROW = "not_narrow"
TRIALS_DISAGREE = "trials_disagree"
NOT_STEADY = "not_steady"
SLOW_START = "slow_start"
OVERLOAD = "overload"
WORKER_ENDED_BADLY = "worker_ended_badly"
# What else went on
OTHER_LOAD = "other_load"
STEAL = "steal"
CGROUP_THROTTLED = "cgroup_throttled"
SWAP = "swap"
CLOCK_STEP = "clock_step"
FREQUENCY_CHANGED = "frequency_changed"
TEMPERATURE_HIGH = "temperature_high"
THROTTLED = "throttled"
# Accuracy
GATE_FAILED = "gate_failed"
GATE_UNDECIDED = "gate_undecided"
LOW_FIDELITY = "low_fidelity"
OVERLAPPING_CALIBRATION = "overlapping_calibration"
# Energy
ENERGY_METHODS_DIFFER = "energy_methods_differ"
ENERGY_BELOW_IDLE = "energy_below_idle"
ENERGY_WINDOW_SHORT = "energy_window_short"
POWER_WINDOW_ESTIMATED = "power_window_estimated"
# Imported results
IMPORTED = "imported"
SCENARIO_INFERRED = "scenario_inferred_by_submitter"
INCLUDES_QUEUEING = "includes_queueing"
PRECISION_FROM_NAME = "precision_from_name"
BATCH_UNKNOWN = "batch_unknown"
NOT_AVAILABLE = "not_available"
LOADGEN_WARNINGS = "loadgen_warnings"
LOADGEN_ERRORS = "loadgen_errors"


@dataclass(frozen=True)
class FlagKind:
    """What a code stands for. `touches` are the figures it casts doubt on; `caveat`: a comparison must name it."""

    code: str
    title: str  # a few words, for a badge
    meaning: str  # one sentence
    weight: int
    touches: tuple[Part, ...] = ("time",)
    caveat: bool = False


_EVERYTHING: tuple[Part, ...] = ("time", "energy", "accuracy")
_RUNNING: tuple[Part, ...] = ("time", "energy")

KINDS: dict[str, FlagKind] = {
    kind.code: kind
    for kind in (
        FlagKind(
            PRECISION_UNKNOWN, "precision unknown",
            "The runtime does not tell in which precision it computed.", 1, _EVERYTHING, caveat=True,
        ),
        FlagKind(
            REDUCED_PRECISION, "reduced precision",
            "It computed in bf16, tf32 or fp16 where fp32 was the name.", 3, _EVERYTHING, caveat=True,
        ),
        FlagKind(
            CPU_FALLBACK, "fell back to the CPU",
            "A part or the whole of the network ran on the CPU and not on the processor that was asked for.",
            3, _EVERYTHING, caveat=True,
        ),
        FlagKind(
            MIXED_PLACEMENT, "mixed placement",
            "The network ran on several processors or delegates; the number belongs to their combination.",
            1, _RUNNING, caveat=True,
        ),
        FlagKind(
            AUTO_TARGET, "the runtime chose", "The runtime chose the processor itself; the devices it used are stored.", 0,
            _RUNNING,
        ),
        FlagKind(
            THREADS_OVERSUBSCRIBED, "too many threads", "More threads ran than processors were available.", 2, _RUNNING,
            caveat=True,
        ),
        FlagKind(
            THREADS_DIFFER, "other threads", "Another number of threads ran than was asked for.", 1, _RUNNING, caveat=True
        ),
        FlagKind(
            RANDOM_INPUTS, "random inputs",
            "Inputs were seeded noise instead of real data; networks whose work depends on the data may run otherwise.",
            1, _RUNNING,
        ),
        FlagKind(
            FEWER_TRIALS, "fewer trials",
            "The run was interrupted, or its budget spent, before all planned trials had ended.", 2, caveat=True,
        ),
        FlagKind(
            FEW_SAMPLES, "few samples", "There are too few samples for a percentile that was asked for.", 1, caveat=True
        ),
        FlagKind(
            NOT_NARROW, "interval wider than asked", "The interval is wider than the suite asked for; the budget ended.", 1
        ),
        FlagKind(
            TRIALS_DISAGREE, "trials disagree",
            "The trials' medians lie far apart: something else than the case changed between them.", 2, _RUNNING,
            caveat=True,
        ),
        FlagKind(
            NOT_STEADY, "no steady state",
            "No steady part was found in a trial, so nothing was left out of its figures.", 2, _RUNNING, caveat=True,
        ),
        FlagKind(
            SLOW_START, "slow start", "A trial started slowly; the part before its steady state was left out.", 0
        ),
        FlagKind(OVERLOAD, "overload", "Every offered rate was more than the system can keep up with.", 1, caveat=True),
        FlagKind(
            WORKER_ENDED_BADLY, "worker ended badly",
            "A worker process ended badly after it had written its results.", 1, _EVERYTHING,
        ),
        FlagKind(
            OTHER_LOAD, "other load", "Other processes used the processors while it was measured.", 2, _RUNNING,
            caveat=True,
        ),
        FlagKind(
            STEAL, "stolen time", "The hypervisor gave processor time to other guests while it was measured.", 2,
            _RUNNING, caveat=True,
        ),
        FlagKind(
            CGROUP_THROTTLED, "limited by its container",
            "The control group's limit stopped the process again and again; the number is the limit's.", 2, _RUNNING,
            caveat=True,
        ),
        FlagKind(SWAP, "swapping", "Memory was swapped in or out while it was measured.", 2, _RUNNING, caveat=True),
        FlagKind(
            CLOCK_STEP, "clock step",
            "The wall clock was set while it was measured; durations use the monotonic clock.", 1, _RUNNING,
        ),
        FlagKind(
            FREQUENCY_CHANGED, "frequency changed", "The processors' frequency changed while it was measured.", 1,
            _RUNNING, caveat=True,
        ),
        FlagKind(
            TEMPERATURE_HIGH, "hot", "The device was near its thermal limit while it was measured.", 1, _RUNNING,
            caveat=True,
        ),
        FlagKind(
            THROTTLED, "throttled", "The device slowed itself down because of heat, power or supply voltage.", 2,
            _RUNNING, caveat=True,
        ),
        FlagKind(
            GATE_FAILED, "failed the gate", "It lost more accuracy than the workload allows; it cannot win a ranking.", 3,
            _EVERYTHING, caveat=True,
        ),
        FlagKind(
            GATE_UNDECIDED, "gate undecided",
            "The samples are too few to tell whether enough accuracy is kept.", 1, _EVERYTHING, caveat=True,
        ),
        FlagKind(
            LOW_FIDELITY, "outputs differ", "Its raw outputs lie far from those of the fp32 reference.", 2, _EVERYTHING,
            caveat=True,
        ),
        FlagKind(
            OVERLAPPING_CALIBRATION, "calibrated on its test",
            "Data that set the scales of the quantised file also judge its accuracy.", 3, ("accuracy",), caveat=True,
        ),
        FlagKind(
            ENERGY_METHODS_DIFFER, "energy methods differ", "Counter and integrated power do not agree.", 2, ("energy",),
            caveat=True,
        ),
        FlagKind(
            ENERGY_BELOW_IDLE, "below idle", "Power under load was below the idle power.", 2, ("energy",), caveat=True
        ),
        FlagKind(
            ENERGY_WINDOW_SHORT, "short energy window", "Energy was taken over too short a time to rely on.", 1,
            ("energy",), caveat=True,
        ),
        FlagKind(
            POWER_WINDOW_ESTIMATED, "window estimated", "When the test ran inside the power log is an estimate.", 1,
            ("energy",), caveat=True,
        ),
        FlagKind(IMPORTED, "imported", "Taken from published results, not measured here.", 1, _EVERYTHING, caveat=True),
        FlagKind(
            SCENARIO_INFERRED, "scenario inferred",
            "The submitter inferred this scenario from another run; it is stored as what ran.", 1,
        ),
        FlagKind(
            INCLUDES_QUEUEING, "includes waiting", "Latency counts from the scheduled arrival, so waiting is inside.", 0
        ),
        FlagKind(
            PRECISION_FROM_NAME, "precision from a name", "The precision was read from a submitter's file name.", 1,
            _EVERYTHING,
        ),
        FlagKind(BATCH_UNKNOWN, "batch unknown", "The source does not tell the batch size.", 1, caveat=True),
        FlagKind(NOT_AVAILABLE, "not for sale", "At submission the system could not be bought.", 0),
        FlagKind(LOADGEN_WARNINGS, "LoadGen warnings", "LoadGen gave warnings that are not in the published files.", 0),
        FlagKind(LOADGEN_ERRORS, "LoadGen errors", "LoadGen gave errors that are not in the published files.", 2,
                 caveat=True),
    )
}  # fmt: skip

# Causes outside the case that pass: a change seen beside one of them says nothing about the case itself.
DISTURBANCES = frozenset(
    {OTHER_LOAD, STEAL, CGROUP_THROTTLED, SWAP, CLOCK_STEP, FREQUENCY_CHANGED, TEMPERATURE_HIGH, THROTTLED}
)
# Beside any of these a median is no settled number.
UNSETTLED = DISTURBANCES | {TRIALS_DISAGREE, NOT_STEADY, FEWER_TRIALS}


def kind_of(code: str) -> FlagKind:
    """What `code` stands for. A code of a newer version is not known here: it counts as a serious doubt, by its name."""
    known = KINDS.get(code)
    if known is not None:
        return known
    words = code.replace("_", " ")
    return FlagKind(code, words, f'This version does not know the flag "{words}".', 2, _EVERYTHING, caveat=True)
