"""Reads suite files strictly: an unknown key or a wrong value is an error that names file, line and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends import BACKENDS
from harness.canonical import digest_of
from harness.errors import UsageError
from harness.suites.definition import AVAILABLE, LIMITS, RUNTIME_DEFAULT, Group, Suite, Targets, Threads
from harness.toml_files import TomlFile, read_toml

if TYPE_CHECKING:
    from harness.workloads.definition import Workload

Key = tuple[str | int, ...]

SUITE_KEYS = (
    "name", "version", "title", "seed", "trials", "timeout_s", "accuracy_timeout_s", "placement", "energy_s",
    "energy_idle_s", "accuracy", "targets", "measure", "workload",
)  # fmt: skip
GROUP_KEYS = (
    "scenario", "workloads", "targets", "precisions", "artifact_precision", "batches", "threads", "slots", "duration_s",
    "warmup_s", "min_queries", "max_queries", "limit_s", "trials",
)  # fmt: skip
SCENARIOS = ("single_stream", "offline")
PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "int8", RUNTIME_DEFAULT)
TRIALS = (int(LIMITS["trials"][0]), int(LIMITS["trials"][1]))
TEXT_CHARACTERS = 200
ARTIFACT_PRECISIONS = ("fp32", "fp16", "int8")


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
    trials = _whole(document, ("trials",), data.get("trials", 1), *TRIALS)
    tables = data.get("measure", [])
    if not isinstance(tables, list) or not tables:
        raise document.error(("measure",), "a suite needs at least one [[measure]] table.")
    groups = tuple(
        _group(document, ("measure", position), table, known, targets, trials) for position, table in enumerate(tables)
    )
    placement = data.get("placement", False)
    if not isinstance(placement, bool):
        raise document.error(("placement",), f"placement cannot be {placement!r}.", ("true", "false"))
    return Suite(
        name=_text(document, ("name",), data.get("name")),
        version=_text(document, ("version",), data.get("version")),
        title=_text(document, ("title",), data.get("title", data.get("name"))),
        digest=digest_of(data),
        groups=groups,
        accuracy=_words(document, ("accuracy",), data.get("accuracy", []), known, empty=True),
        accuracy_timeout_s=_number(document, ("accuracy_timeout_s",), data.get("accuracy_timeout_s", 600), 1, 86_400),
        placement=placement,
        energy_s=_number(document, ("energy_s",), data.get("energy_s", 10), 0.1, 86_400),
        energy_idle_s=_number(document, ("energy_idle_s",), data.get("energy_idle_s", 30), 0, 3_600),
        timeout_s=_number(document, ("timeout_s",), data.get("timeout_s", 120), 1, 86_400),
        seed=_whole(document, ("seed",), data.get("seed", 1), 0, 2**32 - 1),
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
    document: TomlFile, key: Key, table: Any, known: tuple[str, ...], targets: Targets | None, trials: int
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
    if "slots" in table and scenario != "offline":
        raise document.error((*key, "slots"), "slots belong to the scenario offline only.")

    def number(name: str, default: float, low: float, high: float) -> float:
        return _number(document, (*key, name), table.get(name, default), low, high)

    def whole(name: str, default: int, low: int, high: int) -> int:
        return _whole(document, (*key, name), table.get(name, default), low, high)

    precision = table.get("artifact_precision", "fp32")
    if precision not in ARTIFACT_PRECISIONS:
        what = f"there is no artifact precision {precision!r}."
        raise document.error((*key, "artifact_precision"), what, ARTIFACT_PRECISIONS)
    return Group(
        scenario=scenario,
        workloads=_words(document, (*key, "workloads"), table.get("workloads"), known),
        targets=targets,
        precisions=_words(document, (*key, "precisions"), table.get("precisions", ["fp32"]), PRECISIONS),
        artifact_precision=precision,
        batches=_list(document, (*key, "batches"), table.get("batches", [1]), _batch),
        threads=_list(document, (*key, "threads"), table.get("threads", [AVAILABLE]), _threads),
        slots=whole("slots", 1, 1, 1024) if "slots" in table else None,
        duration_s=number("duration_s", 5.0, *LIMITS["duration_s"]),
        warmup_s=number("warmup_s", 1.0, *LIMITS["warmup_s"]),
        min_queries=whole("min_queries", 100, 1, 1_000_000),
        max_queries=whole("max_queries", 1_000_000, 1, 10_000_000),
        limit_s=number("limit_s", 60.0, 0.01, 86_400),
        trials=whole("trials", trials, *TRIALS),
    )


def _targets(document: TomlFile, key: Key, table: Any) -> Targets:
    import backends

    document.check_keys(key, table, BACKENDS)
    if not table:
        raise document.error(key, "no backend is named.", BACKENDS)
    found = {}
    for backend, names in table.items():
        made = backends.create(backend)
        spelled = _strings(document, (*key, backend), names)
        for name in spelled:
            if made.target_named(name) is None:
                raise document.error((*key, backend), f"{backend} has no target {name!r}.", made.targets())
        found[backend] = spelled
    return found


def _strings(document: TomlFile, key: Key, value: Any, empty: bool = False) -> tuple[str, ...]:
    if not isinstance(value, list) or not (value or empty) or not all(isinstance(item, str) for item in value):
        raise document.error(key, f"{key[-1]} must be a list of texts{'' if empty else ' that is not empty'}.")
    return tuple(dict.fromkeys(value))


def _words(document: TomlFile, key: Key, value: Any, allowed: tuple[str, ...], empty: bool = False) -> tuple[str, ...]:
    spelled = _strings(document, key, value, empty)
    for name in spelled:
        if name not in allowed:
            raise document.error(key, f"{name!r} is not known in {key[-1]}.", allowed)
    return spelled


def _list(document: TomlFile, key: Key, value: Any, valid: Callable[[Any], str | None]) -> tuple[Any, ...]:
    if not isinstance(value, list) or not value:
        raise document.error(key, f"{key[-1]} must be a list that is not empty.")
    for item in value:
        wrong = valid(item)
        if wrong:
            raise document.error(key, wrong)
    return tuple(dict.fromkeys(value))


def _within(name: str, value: float) -> bool:
    low, high = LIMITS[name]
    return low <= value <= high


def _batch(value: Any) -> str | None:
    good = isinstance(value, int) and not isinstance(value, bool) and _within("batch", value)
    return None if good else f"a batch must be a whole number from 1 to 65536, not {value!r}."


def _threads(value: Threads) -> str | None:
    if value in (AVAILABLE, RUNTIME_DEFAULT):
        return None
    good = isinstance(value, int) and not isinstance(value, bool) and _within("threads", value)
    return (
        None if good else f'threads must be a whole number from 1, "{AVAILABLE}" or "{RUNTIME_DEFAULT}", not {value!r}.'
    )


def _text(document: TomlFile, key: Key, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise document.error(key, f"{key[-1]} must be a text that is not empty.")
    if not value.isprintable() or len(value) > TEXT_CHARACTERS:
        raise document.error(
            key, f"{key[-1]} must be one line of at most {TEXT_CHARACTERS} characters without control characters."
        )
    return value


def _whole(document: TomlFile, key: Key, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise document.error(key, f"{key[-1]} must be a whole number from {low} to {high}, not {value!r}.")
    return value


def _number(document: TomlFile, key: Key, value: Any, low: float, high: float) -> float:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
    if not good:
        raise document.error(key, f"{key[-1]} must be a number from {low:g} to {high:g}, not {value!r}.")
    return float(value)


def known_workloads(suite: Suite) -> Mapping[str, Workload]:
    """Return the catalogue's workloads and the suite's own, by name."""
    from harness.workloads.definition import load_workloads

    return {**load_workloads(), **suite.workloads}
