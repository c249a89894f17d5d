"""Two environments are explained field by field, most important first, in words."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.environment import collect
from harness.environment.reading import System
from harness.judgement.environment_difference import explain

from .conftest import PI, PI_OUTPUTS, SERVER, Tree


def _read(tree: Tree, changes: dict[str, str | bytes], base: dict[str, str | bytes] = SERVER) -> dict[str, Any]:
    return asdict(collect(system=System.recorded(tree({**base, **changes}), outputs=PI_OUTPUTS)))


def test_an_environment_does_not_differ_from_itself(tree: Tree) -> None:
    assert explain(_read(tree, {}), _read(tree, {})) == ()


def test_a_governor_is_named_with_both_values(tree: Tree) -> None:
    fast = {f"sys/devices/system/cpu/cpufreq/policy{n}/scaling_governor": "performance" for n in range(4)}
    (found,) = explain(_read(tree, fast), _read(tree, {}))
    assert found.words == "governor: performance here, powersave there"
    assert (found.path, found.kind) == ("configuration.power.policies.governor", "configuration")
    assert (found.here, found.there) == ("performance", "powersave")
    assert found.matters.endswith(".")


def test_what_matters_most_comes_first(tree: Tree) -> None:
    changed = _read(
        tree,
        {
            "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12"\n',
            "proc/cpuinfo": str(SERVER["proc/cpuinfo"]).replace("0xd0003b9", "0xd0003d1"),
            "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Kernel Module  555.42.02  x\n",
            "proc/self/status": "Cpus_allowed_list:\t0-1\n",
            "proc/loadavg": "3.00 1 1 1/1 1",
        },
    )
    names = [difference.name for difference in explain(changed, _read(tree, {}))]
    first = ["processors allowed", "turbo", "NVIDIA's driver", "microcode"]
    assert names[:4] == first
    assert names.index("operating system") > names.index("microcode")
    assert names[-1] == "load at the start"


def test_runtimes_are_named_by_backend() -> None:
    def environment(version: str, files: str) -> dict[str, Any]:
        packages = {"onnxruntime": {"version": version, "files": files}}
        return {"machine": {}, "configuration": {"software": {"default": {"packages": packages}}}}

    version, build = explain(environment("1.32.0", "aa"), environment("1.31.0", "bb"))
    assert version.words == "onnxruntime for default: 1.32.0 here, 1.31.0 there"
    assert build.name == "build of onnxruntime for default"


def test_order_in_a_list_means_nothing() -> None:
    one = {"machine": {"processor": {"instruction_sets": ["avx", "fma", "avx2"]}}}
    other = {"machine": {"processor": {"instruction_sets": ["avx2", "avx", "avx512f"]}}}
    (found,) = explain(one, other)
    assert found.words == "instruction sets: only here fma; only there avx512f"
    assert explain(one, {"machine": {"processor": {"instruction_sets": ["fma", "avx2", "avx"]}}}) == ()


def test_a_side_that_does_not_tell_says_so(tree: Tree) -> None:
    words = [one.words for one in explain({"configuration": {"power": {"turbo": "on"}}}, {"configuration": {}})]
    assert words == ["turbo: on here, not told there"]


def test_conditions_that_hardly_differ_are_left_out() -> None:
    calm = {"conditions": {"load_1min": 0.1, "uptime_s": 5, "temperature_c": {"cpu 0": 50.0}, "battery_percent": 90}}
    same = {"conditions": {"load_1min": 0.3, "uptime_s": 99, "temperature_c": {"cpu 0": 52.0}, "battery_percent": 85}}
    busy = {"conditions": {"load_1min": 3.1, "uptime_s": 99, "temperature_c": {"cpu 0": 71.0}, "battery_percent": 85}}
    assert explain(calm, same) == ()
    assert [one.name for one in explain(calm, busy)] == ["load at the start", "temperature of cpu 0"]


def test_another_card_or_supply_on_the_same_board_is_told_apart(tree: Tree) -> None:
    """Case 9: same board, other SD image and a weak supply."""
    other = {
        "etc/rpi-issue": "Raspberry Pi reference 2023-10-10\n",
        "proc/device-tree/chosen/power/max_current": (3000).to_bytes(4, "big"),
    }
    good, weak = _read(tree, {}, PI), _read(tree, other, PI)
    assert [one.words for one in explain(weak, good)] == [
        "supply's current: 3000 here, 5000 there",
        "system image (raspberry pi image): Raspberry Pi reference 2023-10-10 here, Raspberry Pi reference 2024-11-19 there",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab.", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=12,
)
SIDE = st.dictionaries(st.text("abc", max_size=2), JSON, max_size=4)


@given(SIDE, SIDE)
def test_any_two_sides_are_explained_the_same_from_both(one: dict[str, Any], other: dict[str, Any]) -> None:
    left = explain({"machine": one, "configuration": other}, {"machine": other, "configuration": one})
    right = explain({"machine": other, "configuration": one}, {"machine": one, "configuration": other})
    assert [(d.path, d.here, d.there) for d in left] == [(d.path, d.there, d.here) for d in right]
    assert all(d.words and d.matters for d in left)
    assert explain({"machine": one}, {"machine": one}) == ()


def test_long_lists_of_another_s_record_take_no_time() -> None:
    """Holding each item against each would take minutes."""
    here = {"machine": {"things": [{"n": n} for n in range(40_000)]}}
    there = {"machine": {"things": [{"n": n} for n in range(1, 40_001)]}}
    (found,) = explain(here, there)
    assert (found.path, found.here, found.there) == ("machine.things.n", 0, 40_000)
