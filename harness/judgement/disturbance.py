"""From what went on beside the timed windows to flags, by thresholds that stand here. Pure.

The input is `Trial.conditions` of a measurement's timing trials, as harness.conditions wrote them. What a system does not
tell raises no flag; the reasons stand under `unavailable` in the conditions. A message has the worst trial's numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.judgement import flags
from harness.records import Flag

# A twentieth of the processors, or half of one on a large machine: one stalled thread of many holds all others up.
OTHER_LOAD_SHARE = 0.05
OTHER_LOAD_PROCESSORS = 0.5
STEAL_SHARE = 0.01
# One megabyte of 4 KiB pages: less is a page that nobody needs.
SWAPPED_PAGES = 256
MAJOR_FAULTS = 10
# Reading two clocks one after the other is off by microseconds, by a millisecond where we are interrupted between.
CLOCK_STEP_S = 0.01
SUSPENDED_S = 0.1
# Within a window, and between the trials' medians: about one step of turbo, and half of it.
FREQUENCY_SPREAD = 0.10
FREQUENCY_BETWEEN_TRIALS = 0.05
# Kelvin below the limit that the system itself names: cooling by throttling usually begins a few below.
NEAR_LIMIT_K = 5.0

THROTTLING_SIGNS = {
    "under_voltage": "the supply voltage was too low",
    "frequency_capped": "the firmware capped the frequency",
    "throttled": "the firmware throttled the processor",
    "soft_temperature_limit": "the soft temperature limit was reached",
    "gpu_hardware_slowdown": "the GPU's hardware slowed it down",
    "gpu_thermal_slowdown": "the GPU's driver slowed it down because of heat",
    "gpu_hardware_thermal_slowdown": "the GPU's hardware slowed it down because of heat",
    "gpu_power_brake": "the GPU's power supply asked it to slow down",
}


def flags_of(conditions: Sequence[Mapping[str, Any]]) -> tuple[Flag, ...]:
    """Return the flags that the conditions of a case's timing trials raise, each once, in a fixed order."""
    known = [one for one in conditions if one]
    found = (
        _other_load(known),
        _steal(known),
        _throttled_by_group(known),
        _swap(known),
        _clock(known),
        _frequency(known),
        _temperature(known),
        _slowed_down(known),
    )
    return tuple(flag for flag in found if flag is not None)


def _other_load(known: Sequence[Mapping[str, Any]]) -> Flag | None:
    hit = [one for one in known if _is_loaded(one)]
    if not hit:
        return None
    worst = max(hit, key=lambda one: float(one["other_load"]))
    share, processors = float(worst["other_load"]), int(worst.get("processors", 1))
    return Flag(
        flags.OTHER_LOAD,
        f"Other processes used up to {share * processors:.2f} of {_processors(processors)} ({share:.0%}), "
        f"in {_trials(hit, known)}.",
    )


def _is_loaded(one: Mapping[str, Any]) -> bool:
    share = one.get("other_load")
    if share is None:
        return False
    return float(share) >= OTHER_LOAD_SHARE or float(share) * int(one.get("processors", 1)) >= OTHER_LOAD_PROCESSORS


def _steal(known: Sequence[Mapping[str, Any]]) -> Flag | None:
    hit = [one for one in known if (one.get("steal") or 0.0) >= STEAL_SHARE]
    if not hit:
        return None
    worst = max(float(one["steal"]) for one in hit)
    return Flag(
        flags.STEAL, f"The hypervisor took up to {worst:.1%} of the processors' time, in {_trials(hit, known)}."
    )


def _throttled_by_group(known: Sequence[Mapping[str, Any]]) -> Flag | None:
    hit = [one for one in known if (_of(one, "cgroup").get("throttled") or 0) > 0]
    if not hit:
        return None
    worst = max(hit, key=lambda one: float(one["cgroup"]["throttled_s"]))
    group = worst["cgroup"]
    share = float(group["throttled_s"]) / max(float(worst.get("seconds", 0.0)), 1e-9)
    periods = f" of {group['periods']:.0f}" if group.get("periods") else ""
    return Flag(
        flags.CGROUP_THROTTLED,
        f"The control group's CPU quota stopped it in {group['throttled']:.0f}{periods} periods, for "
        f"{group['throttled_s']:.2f} processor seconds in a window of {worst.get('seconds', 0.0):.2f} s ({share:.0%}), "
        f"in {_trials(hit, known)}.",
    )


def _swap(known: Sequence[Mapping[str, Any]]) -> Flag | None:
    hit = []
    for one in known:
        swap = _of(one, "swap")
        pages = (swap.get("pages_in") or 0) + (swap.get("pages_out") or 0)
        if pages >= SWAPPED_PAGES or (swap.get("major_faults") or 0) >= MAJOR_FAULTS:
            hit.append((pages, swap.get("major_faults") or 0, one))
    if not hit:
        return None
    pages, faults, _ = max(hit, key=lambda item: (item[0], item[1]))
    return Flag(
        flags.SWAP,
        f"{pages:.0f} pages were swapped and the worker waited for the disk at {faults:.0f} page faults, "
        f"in {_trials(hit, known)}.",
    )


def _clock(known: Sequence[Mapping[str, Any]]) -> Flag | None:
    hit = []
    for one in known:
        clock = _of(one, "clock")
        step, slept = float(clock.get("largest_step_s") or 0.0), float(clock.get("suspended_s") or 0.0)
        if abs(step) >= CLOCK_STEP_S or slept >= SUSPENDED_S:
            hit.append((abs(step), step, slept))
    if not hit:
        return None
    _, step, slept = max(hit)
    words = f"The wall clock jumped by {step:+.3f} s against the monotonic one"
    asleep = max(item[2] for item in hit)
    if asleep >= SUSPENDED_S:
        words += f", and the machine slept for {asleep:.1f} s"
    return Flag(flags.CLOCK_STEP, f"{words}, in {_trials(hit, known)}; latencies are of the monotonic clock.")


def _frequency(known: Sequence[Mapping[str, Any]]) -> Flag | None:
    for name, what in (("frequency_mhz", "The processor's frequency"), ("gpu_clock_mhz", "The GPU's clock")):
        levels = [level for one in known if (level := _of(one, name))]
        hit = [level for level in levels if level["high"] > 0 and 1 - level["low"] / level["high"] >= FREQUENCY_SPREAD]
        if hit:
            worst = min(hit, key=lambda level: float(level["low"]) / float(level["high"]))
            return Flag(
                flags.FREQUENCY_CHANGED,
                f"{what} lay between {worst['low']:.0f} and {worst['high']:.0f} MHz inside a window, "
                f"in {_trials(hit, known)}.",
            )
        medians = [float(level["median"]) for level in levels]
        if len(medians) > 1 and 1 - min(medians) / max(medians) >= FREQUENCY_BETWEEN_TRIALS:
            return Flag(
                flags.FREQUENCY_CHANGED,
                f"{what} differed between trials: from {min(medians):.0f} to {max(medians):.0f} MHz.",
            )
    return None


def _temperature(known: Sequence[Mapping[str, Any]]) -> Flag | None:
    hit = [
        level
        for one in known
        if (level := _of(one, "temperature_c")).get("limit") is not None
        and level["high"] >= level["limit"] - NEAR_LIMIT_K
    ]
    if not hit:
        return None
    worst = max(hit, key=lambda level: float(level["high"]))
    return Flag(
        flags.TEMPERATURE_HIGH,
        f"The processor reached {worst['high']:.0f} °C; the system's own limit is {worst['limit']:.0f} °C "
        f"(in {_trials(hit, known)}).",
    )


def _slowed_down(known: Sequence[Mapping[str, Any]]) -> Flag | None:
    hit, reasons, during_process = [], dict[str, None](), True
    for one in known:
        inside = [name for name in one.get("signs", ()) if name in THROTTLING_SIGNS]
        around = [name for name in one.get("signs_of_worker", ()) if name in THROTTLING_SIGNS]
        events = float(one.get("thermal_events") or 0)
        if inside or around or events:
            hit.append(one)
            reasons.update(dict.fromkeys(THROTTLING_SIGNS[name] for name in (*inside, *around)))
            if events:
                reasons[f"the processor throttled itself because of heat ({events:.0f} events)"] = None
            during_process = during_process and not inside and not events
    if not hit:
        return None
    when = "while the workers ran" if during_process else "while it was measured"
    words = "; ".join(reasons)
    return Flag(flags.THROTTLED, f"{words[0].upper()}{words[1:]} ({when}, in {_trials(hit, known)}).")


def _of(one: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = one.get(name)
    return value if isinstance(value, Mapping) else {}


def _processors(count: int) -> str:
    return "1 processor" if count == 1 else f"{count} processors"


def _trials(hit: Iterable[Any], known: Sequence[Any]) -> str:
    return f"{len(list(hit))} of {len(known)} trials"
