"""The environment of a run: as it is now, with what the probes saw, and as an unfinished run has kept it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.records import Environment

if TYPE_CHECKING:
    from backends.base import TargetStatus

NAMED = 3  # differences in an error's sentence


def environment_now(probes: Iterable[TargetStatus] = (), resumed_from: str | None = None) -> Environment:
    """Read this machine's environment, with the software of each interpreter that the configuration names.

    What a probe loaded (libraries, build) stands among the conditions: it depends on which targets were asked for.
    """
    from harness.configuration import load_configuration
    from harness.environment import collect

    found = collect(runtimes=load_configuration().runtimes)
    loaded = {probe.backend: probe.details["loaded"] for probe in probes if probe.works and "loaded" in probe.details}
    more: dict[str, Any] = {"loaded": loaded} if loaded else {}
    if resumed_from:
        more["resumed_from"] = resumed_from
    return replace(found, conditions={**found.conditions, **more})


def keep(environment: Environment) -> dict[str, Any]:
    """Return what an unfinished run has to remember: that which makes the digest."""
    return {"machine": environment.machine, "configuration": environment.configuration}


def kept_environment(document: Mapping[str, Any]) -> Environment:
    """Read what `keep` wrote. Raises KeyError, TypeError."""
    return Environment(dict(document["machine"]), dict(document["configuration"]))


def refuse_another(before: Environment, now: Environment, run_id: str) -> None:
    """Raise UsageError, naming what differs, where an unfinished run began in another environment."""
    from dataclasses import asdict

    from harness.judgement.environment_difference import explain

    if before.digest == now.digest:
        return
    sides = asdict(now), {**asdict(before), "conditions": now.conditions}
    words = [difference.words for difference in explain(*sides)]
    shown = "; ".join(words[:NAMED]).replace(" here, ", " now, ").replace(" there", " then") or "in its details"
    more = f"; and {len(words) - NAMED} more" if len(words) > NAMED else ""
    raise UsageError(
        f"The environment has changed since the run {run_id} began: {shown}{more}.",
        "One run belongs to one environment: start a new run.",
    )
