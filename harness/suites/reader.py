"""Reads suite files strictly: an unknown key or a wrong value is an error that names file, line and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends import BACKENDS
from harness.canonical import digest_of
from harness.errors import UsageError
from harness.scenarios import SLOT_SCENARIOS
from harness.suites.definition import (
    AVAILABLE,
    FIXED_SCENARIOS,
    LIMITS,
    RUNTIME_DEFAULT,
    Group,
    Suite,
    Targets,
    Threads,
)
from harness.suites.parameters import PARAMETERS, scenario_parameters
from harness.suites.values import Key, number, several, strings, sweep, text, truth, whole, wholes, within, words
from harness.toml_files import TomlFile, read_toml
from harness.workloads.definition import SCENARIOS

if TYPE_CHECKING:
    from harness.workloads.definition import Workload

SUITE_KEYS = (
    "name", "version", "title", "seed", "trials", "max_trials", "half_width", "looks", "budget_s", "timeout_s",
    "accuracy_timeout_s", "placement", "energy_s", "energy_idle_s", "accuracy", "targets", "measure", "workload",
)  # fmt: skip
GROUP_KEYS = (
    "scenario", "workloads", "targets", "precisions", "artifact_precisions", "artifact_precision", "batches", "threads",
    "slots", *dict.fromkeys(name for keys in PARAMETERS.values() for name in keys), "warmup_s", "min_queries",
    "max_queries", "limit_s", "energy", "trials", "max_trials", "half_width", "looks",
)  # fmt: skip
PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "int8", RUNTIME_DEFAULT)
ARTIFACT_PRECISIONS = ("fp32", "fp16", "bf16", "int8", "int8-float-ends", "int4")
TRIALS = (int(LIMITS["trials"][0]), int(LIMITS["trials"][1]))
MOST_SLOTS = 1024
# What says how often a case is repeated; a group takes from the suite what it does not say itself.
SAMPLING_KEYS = ("trials", "max_trials", "half_width", "looks")


def suite_names() -> tuple[str, ...]:
    """Return the names of the product's own suites."""
    return tuple(sorted(item.name[:-5] for item in files("harness.suites").iterdir() if item.name.endswith(".toml")))


def read_suite(name_or_path: str) -> tuple[Suite, TomlFile]:
    """Read a suite by its name, or from the user's own file. Raises UsageError or SuiteError."""
    names = suite_names()
    if name_or_path in names:
        path = Path(str(files("harness.suites") / f"{name_or_path}.toml"))
    else:
        path = Path(name_or_path)
        if path.suffix != ".toml" or not path.is_file():
            raise UsageError(
                f"{name_or_path!r} is neither a suite nor a file.",
                f"Suites: {', '.join(names)}. Or name a suite file (.toml) or a model file.",
            )
    document = read_toml(path)
    return suite_from(document), document


def suite_from(document: TomlFile) -> Suite:
    """Turn a parsed file into a suite. Raises SuiteError."""
    data = document.data
    document.check_keys((), data, SUITE_KEYS)
    own = _own_workloads(document, data.get("workload", []))
    known = (*_catalogue(), *own)
    targets = _targets(document, ("targets",), data["targets"]) if "targets" in data else None
    sampled = _sampling(document, (), data, Group("", (), {}))
    tables = data.get("measure", [])
    if not isinstance(tables, list) or not tables:
        raise document.error(("measure",), "a suite needs at least one [[measure]] table.")
    groups = tuple(
        _group(document, ("measure", position), table, known, targets, sampled) for position, table in enumerate(tables)
    )

    def seconds(name: str, default: float, low: float, high: float) -> float:
        return number(document, (name,), data.get(name, default), low, high)

    return Suite(
        name=text(document, ("name",), data.get("name")),
        version=text(document, ("version",), data.get("version")),
        title=text(document, ("title",), data.get("title", data.get("name"))),
        digest=digest_of(data),
        groups=groups,
        accuracy=words(document, ("accuracy",), data.get("accuracy", []), known, empty=True),
        accuracy_timeout_s=seconds("accuracy_timeout_s", 600, 1, 86_400),
        placement=truth(document, ("placement",), data.get("placement", False)),
        energy_s=seconds("energy_s", 10, 0.1, 86_400),
        energy_idle_s=seconds("energy_idle_s", 30, 0, 3_600),
        timeout_s=seconds("timeout_s", 120, 1, 86_400),
        seed=whole(document, ("seed",), data.get("seed", 1), 0, 2**32 - 1),
        budget_s=seconds("budget_s", 0, *LIMITS["budget_s"]) if "budget_s" in data else None,
        workloads=own,
    )


def _catalogue() -> tuple[str, ...]:
    from harness.workloads.definition import load_workloads

    return tuple(load_workloads())


def _own_workloads(document: TomlFile, tables: Any) -> dict[str, Workload]:
    if not isinstance(tables, list):
        raise document.error(("workload",), "workloads are written as [[workload]] tables.")
    from harness.workloads.definition import load_workloads, workload_from_table

    own: dict[str, Workload] = {}
    for position, table in enumerate(tables):
        workload = workload_from_table(table, document, ("workload", position))
        if workload.name in own or workload.name in load_workloads():
            raise document.error(
                ("workload", position, "name"), f"the name {workload.name!r} is taken; choose another."
            )
        own[workload.name] = workload
    return own


def _group(
    document: TomlFile, key: Key, table: Any, known: tuple[str, ...], targets: Targets | None, sampled: Group
) -> Group:
    document.check_keys(key, table, GROUP_KEYS)
    if "targets" in table:
        targets = _targets(document, (*key, "targets"), table["targets"])
    if targets is None:
        raise document.error(key, "say where it runs: a [targets] table with a list of targets per backend.", BACKENDS)
    scenario = table.get("scenario")
    if scenario not in SCENARIOS:
        where = (*key, "scenario") if "scenario" in table else key
        raise document.error(where, f"there is no scenario {scenario!r}.", SCENARIOS)
    if "slots" in table and scenario not in SLOT_SCENARIOS:
        spelled = ", ".join(SLOT_SCENARIOS)
        raise document.error((*key, "slots"), f"slots belong to the scenarios {spelled} only.")
    parameters = scenario_parameters(document, key, scenario, table)

    def seconds(name: str, default: float, low: float, high: float) -> float:
        return number(document, (*key, name), table.get(name, default), low, high)

    def queries(name: str, default: int, high: int) -> int:
        return whole(document, (*key, name), table.get(name, default), 1, high)

    if scenario == "sustained":  # the window's length is the scenario's own parameter there
        duration_s = max(float(one["duration_s"]) for one in parameters)
    else:
        duration_s = seconds("duration_s", 5.0, *LIMITS["duration_s"])
    group = Group(
        scenario=scenario,
        workloads=words(document, (*key, "workloads"), table.get("workloads"), known),
        targets=targets,
        precisions=words(document, (*key, "precisions"), table.get("precisions", ["fp32"]), PRECISIONS),
        artifact_precisions=_artifact_precisions(document, key, table),
        batches=several(document, (*key, "batches"), table.get("batches", [1]), _batch),
        threads=several(document, (*key, "threads"), table.get("threads", [AVAILABLE]), _threads),
        slots=_slots(document, (*key, "slots"), table["slots"]) if "slots" in table else (None,),
        parameters=parameters,
        duration_s=duration_s,
        warmup_s=seconds("warmup_s", 1.0, *LIMITS["warmup_s"]),
        min_queries=queries("min_queries", 100, 1_000_000),
        max_queries=queries("max_queries", 1_000_000, 10_000_000),
        limit_s=seconds("limit_s", max(60.0, duration_s) if scenario == "sustained" else 60.0, 0.01, 86_400),
        energy=truth(document, (*key, "energy"), table.get("energy", True)),
    )
    return _sampled(document, key, table, group, sampled)


def _sampled(document: TomlFile, key: Key, table: Mapping[str, Any], group: Group, suite: Group) -> Group:
    """Return the group with how often its cases are repeated: what it says itself, else what the suite says."""
    asked = {name: table[name] for name in ("max_trials", "looks", "half_width") if name in table}
    if group.scenario in FIXED_SCENARIOS:
        if asked:
            what = f"the scenario {group.scenario} has a fixed number of trials; {next(iter(asked))} is not for it."
            raise document.error((*key, next(iter(asked))), what)
        trials = whole(document, (*key, "trials"), table.get("trials", 1), *TRIALS)
        return replace(group, trials=trials)
    if "trials" in table and "max_trials" not in table:  # a number of its own, and no room left to it
        suite = replace(suite, max_trials=None, looks=())
    own = {name: getattr(suite, name) for name in SAMPLING_KEYS}
    return _sampling(document, key, table, replace(group, **own))


def _sampling(document: TomlFile, key: Key, table: Mapping[str, Any], default: Group) -> Group:
    """Return `default` with what `table` says about trials. Raises SuiteError where the numbers do not fit together."""
    trials = whole(document, (*key, "trials"), table.get("trials", default.trials), *TRIALS)
    most = default.max_trials
    if "max_trials" in table:
        most = whole(document, (*key, "max_trials"), table["max_trials"], trials, TRIALS[1])
    width = number(document, (*key, "half_width"), table.get("half_width", default.half_width), *LIMITS["half_width"])
    looks = default.looks
    if "looks" in table:
        looks = several(document, (*key, "looks"), table["looks"], wholes("looks", *TRIALS))
        ends = (trials, max(trials, most or 0))
        if (looks[0], looks[-1]) != ends or any(later <= earlier for earlier, later in pairwise(looks)):
            what = f"looks must rise from trials to max_trials, which are {ends[0]} and {ends[1]}."
            raise document.error((*key, "looks"), what)
    elif "trials" in table or "max_trials" in table:
        looks = ()
    return replace(default, trials=trials, max_trials=most, half_width=width, looks=looks)


def _artifact_precisions(document: TomlFile, key: Key, table: Mapping[str, Any]) -> tuple[str, ...]:
    one, many = "artifact_precision", "artifact_precisions"
    if one in table and many in table:
        raise document.error((*key, one), f"say either {one} or {many}, not both.")
    if one not in table:
        return words(document, (*key, many), table.get(many, ["fp32"]), ARTIFACT_PRECISIONS)
    if table[one] not in ARTIFACT_PRECISIONS:
        raise document.error((*key, one), f"there is no artifact precision {table[one]!r}.", ARTIFACT_PRECISIONS)
    return (table[one],)


def _slots(document: TomlFile, key: Key, value: Any) -> tuple[int | None, ...]:
    """Return the numbers of requests in flight; the word "default" is what the runtime would choose."""

    def valid(item: Any) -> str | None:
        wrong = wholes("slots", 1, MOST_SLOTS)(item)
        return f'{wrong[:-1]} or "{RUNTIME_DEFAULT}".' if wrong and item != RUNTIME_DEFAULT else None

    found = sweep(document, key, value, valid)
    return tuple(None if item == RUNTIME_DEFAULT else int(item) for item in found)


def _targets(document: TomlFile, key: Key, table: Any) -> Targets:
    import backends

    document.check_keys(key, table, BACKENDS)
    if not table:
        raise document.error(key, "no backend is named.", BACKENDS)
    found = {}
    for backend, names in table.items():
        made = backends.create(backend)
        spelled = strings(document, (*key, backend), names)
        for name in spelled:
            if made.target_named(name) is None:
                raise document.error((*key, backend), f"{backend} has no target {name!r}.", made.targets())
        found[backend] = spelled
    return found


def _batch(value: Any) -> str | None:
    good = isinstance(value, int) and not isinstance(value, bool) and within("batch", value)
    return None if good else f"a batch must be a whole number from 1 to 65536, not {value!r}."


def _threads(value: Threads) -> str | None:
    if value in (AVAILABLE, RUNTIME_DEFAULT):
        return None
    good = isinstance(value, int) and not isinstance(value, bool) and within("threads", value)
    return (
        None if good else f'threads must be a whole number from 1, "{AVAILABLE}" or "{RUNTIME_DEFAULT}", not {value!r}.'
    )


def known_workloads(suite: Suite) -> Mapping[str, Workload]:
    """Return the catalogue's workloads and the suite's own, by name."""
    from harness.workloads.definition import load_workloads

    return {**load_workloads(), **suite.workloads}
