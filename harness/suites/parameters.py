"""What each scenario asks of a suite beside its window: the parameters that are part of a case.

A value or a list of values; lists are swept, so that every combination is a set of cases of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from harness.suites.values import Key, choices, numbers, sweep, wholes
from harness.toml_files import TomlFile

# Of the server scenario; MLPerf's own limits for vision hold at the 99th percentile.
SERVER_PERCENTILE = 99

FILE_CACHES = ("warm", "cold")
COMPILE_CACHES = ("off", "cold", "warm")

Valid = Callable[[Any], str | None]

# Scenario -> key -> (default, what says why a value is wrong). A default of None leaves the key out where it is not said.
PARAMETERS: Mapping[str, Mapping[str, tuple[Any, Valid]]] = {
    "multi_stream": {"samples_per_query": (8, wholes("samples_per_query", 2, 65_536))},
    "server": {"limit_ms": (None, numbers("limit_ms", 0.001, 3_600_000))},
    "duty_cycle": {"period_s": (1.0, numbers("period_s", 0.001, 3_600))},
    "sustained": {"duration_s": (300.0, numbers("duration_s", 1, 86_400))},
    "cold_start": {
        "file_cache": ("warm", choices("file_cache", FILE_CACHES)),
        "compile_cache": ("off", choices("compile_cache", COMPILE_CACHES)),
    },
}


def scenario_parameters(
    document: TomlFile, key: Key, scenario: str, table: Mapping[str, Any]
) -> tuple[dict[str, Any], ...]:
    """Return every combination of the scenario's parameters that `table` asks for; ({},) where it has none.

    Raises SuiteError for a wrong value, and for a parameter that belongs to another scenario.
    """
    own = PARAMETERS.get(scenario, {})
    for other, known in PARAMETERS.items():
        for name in known:
            # duration_s is the window's length everywhere else, and no part of the case there.
            if name in table and name not in own and name != "duration_s":
                raise document.error((*key, name), f"{name} belongs to the scenario {other} only.")
    swept: dict[str, tuple[Any, ...]] = {}
    for name, (default, valid) in own.items():
        if name in table:
            found = sweep(document, (*key, name), table[name], valid)
            # 1 and 1.0 are one period, and so one case: its key is made of its JSON.
            swept[name] = tuple(float(value) for value in found) if name.endswith(("_s", "_ms")) else found
        elif default is not None:
            swept[name] = (default,)
    fixed = {"percentile": SERVER_PERCENTILE} if scenario == "server" else {}
    return tuple({**dict(zip(swept, values, strict=True)), **fixed} for values in product(*swept.values()))


def filled(scenario: str, parameters: Mapping[str, Any], latency_limit_ms: float | None) -> dict[str, Any]:
    """Return the parameters of a case: the server's limit is the workload's own where the suite names none."""
    if scenario != "server" or "limit_ms" in parameters:
        return dict(parameters)
    return {"limit_ms": latency_limit_ms, **parameters}
