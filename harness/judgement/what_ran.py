"""What really ran beside what was asked for, as flags. Pure.

`validity` refuses a number that belongs to another target. Here is what a reader must know of one that may stand: a runtime
chose the processor, a delegate took a part only, fewer bits were used than the name promises, other threads ran.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.judgement.flags import (
    AUTO_TARGET,
    CPU_FALLBACK,
    MIXED_PLACEMENT,
    PRECISION_UNKNOWN,
    REDUCED_PRECISION,
    THREADS_DIFFER,
    THREADS_OVERSUBSCRIBED,
)
from harness.judgement.validity import CHOOSING_TARGETS
from harness.records import Case, Effective, Flag

CPU = "cpu"  # the compute unit's name
FREE = ("auto", "multi", "all")  # of the choosing targets, those for which the CPU is as good an answer as any
# Processors, providers and kernels that mean the CPU, as the runtimes name them (in small letters).
ON_CPU = frozenset({"cpu", "cpuexecutionprovider", "builtin", "xnnpack", "xnnpackexecutionprovider"})
# What a file of this precision may run in without losing bits.
KEEPS = {
    "fp32": {"fp32", "fp64"},
    "fp16": {"fp32", "fp64", "fp16", "mixed"},  # mixed: layers without a kernel for fp16 ran in fp32
    "bf16": {"fp32", "fp64", "bf16", "mixed"},
}
NAMED = ("fp32", "default")  # what is asked for where nobody asked for fewer bits by name
FLOATS = ("tf32", "bf16", "fp16")
LEAST_SHARE = 0.0005  # below it, a share is printed as 0 %


def flags_of(effective: Effective, case: Case, processors: int | None = None) -> tuple[Flag, ...]:
    """Return the flags that what ran deserves. `processors`: how many this process may use, None where that is not known.

    Placement shares are those of `effective.placement`, from the runtime itself.
    """
    found = [
        _chosen(effective, case),
        _fallback(effective, case),
        _mixed(effective),
        _reduced(effective, case),
        _oversubscribed(effective, case, processors),
        _other_threads(effective, case),
    ]
    return tuple(flag for flag in found if flag is not None)


def chooses(target: str) -> bool:
    """Whether a target leaves the choice of processors to the runtime, so that its name is no device's."""
    return target.lower().split(":")[0] in CHOOSING_TARGETS


def shares_in_words(shares: Mapping[str, float]) -> str:
    """Shares as text, largest first: "xnnpack 66.7 %, builtin 33.3 %"."""
    ordered = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {_percent(share)}" for name, share in ordered if share > 0)


def _percent(share: float) -> str:
    if share < LEAST_SHARE:
        return "below 0.1 %"
    return f"{share * 100:.3g} %"


def _chosen(effective: Effective, case: Case) -> Flag | None:
    if not chooses(case.target):
        return None
    used = ", ".join(effective.devices) or effective.target or "it does not tell what"
    return Flag(AUTO_TARGET, f"{case.target} leaves the choice to {case.backend}, which ran it on: {used}.")


def _fallback(effective: Effective, case: Case) -> Flag | None:
    """Some of the work ran on the CPU though an accelerator was asked for, alone or before it ("cpu_and_gpu")."""
    asked = case.target.lower()
    if case.compute_unit == CPU or asked in ON_CPU or asked.split(":")[0] in FREE:
        return None
    nodes = effective.placement.nodes if effective.placement is not None else {}
    times = (effective.placement.time if effective.placement is not None else None) or {}
    left, spent = _on_cpu(nodes), _on_cpu(times)
    if left > 0 or spent > 0:
        of_time = f" and {_percent(spent)} of the time" if times else ""
        return Flag(CPU_FALLBACK, f"{case.target} was asked for; the CPU ran {_percent(left)} of the nodes{of_time}.")
    if not nodes and effective.details.get("cpu_fallback") is True:
        return Flag(
            CPU_FALLBACK, f"{case.target} was allowed to leave nodes to the CPU, and does not tell how many it left."
        )
    return None


def _on_cpu(shares: Mapping[str, float]) -> float:
    return sum(share for name, share in shares.items() if name.lower() in ON_CPU)


def _mixed(effective: Effective) -> Flag | None:
    placement = effective.placement
    if placement is None:
        return None
    used = {name for shares in (placement.nodes, placement.time or {}) for name, share in shares.items() if share > 0}
    if len(used) < 2:
        return None
    words = f"by nodes {shares_in_words(placement.nodes)}" if placement.nodes else "shares of nodes unknown"
    if placement.time:
        words += f"; by time {shares_in_words(placement.time)}"
    return Flag(MIXED_PLACEMENT, f"The network ran on several processors or delegates: {words}.")


def _reduced(effective: Effective, case: Case) -> Flag | None:
    """Fewer bits than the file has, though nobody asked for them by name; or nobody can tell."""
    ran, asked = effective.precision, case.requested_precision
    if ran is None:
        return Flag(PRECISION_UNKNOWN, f"{case.backend} does not tell the precision that ran.")
    if asked not in NAMED:
        return None
    question = f'"{asked}" was asked for' if asked == "default" else f"{asked} was asked for"
    file = case.artifact_precision
    kept = KEEPS.get(file)
    if kept is not None:
        if ran in kept:
            return None
        text = f"{question} and the file is {file}, but {ran} is what ran{_modes(effective)}."
        return Flag(REDUCED_PRECISION, text)
    # A quantised file: its float layers may still have been computed in fewer bits than fp32.
    layers = effective.details.get("layer_precisions")
    fewer = [kind for kind in FLOATS if isinstance(layers, Mapping) and layers.get(kind)]
    if fewer and file not in fewer:
        kinds = " and ".join(fewer)
        return Flag(
            REDUCED_PRECISION, f"{question}; the layers of the {file} file that are not quantised ran in {kinds}."
        )
    return None


def _modes(effective: Effective) -> str:
    """How much of the time was spent in which precision, where a placement pass told it."""
    times = effective.details.get("time_by_precision")
    if not isinstance(times, Mapping) or len(times) < 2:
        return ""
    return f" (of the layers' time: {shares_in_words({str(name): float(share) for name, share in times.items()})})"


def _oversubscribed(effective: Effective, case: Case, processors: int | None) -> Flag | None:
    threads = effective.threads if effective.threads is not None else case.threads
    if threads is None or processors is None or case.compute_unit != CPU or threads <= processors:
        return None
    return Flag(THREADS_OVERSUBSCRIBED, f"{threads} threads ran on {processors} available processors.")


def _other_threads(effective: Effective, case: Case) -> Flag | None:
    if case.threads is None or effective.threads is None or effective.threads == case.threads:
        return None
    return Flag(THREADS_DIFFER, f"{case.threads} threads were asked for, {effective.threads} ran.")
