"""An unfinished run goes on in its own environment only; what differs is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.device.run_environment import environment_now, keep, kept_environment, refuse_another
from backends.base import TargetStatus
from harness.errors import UsageError
from harness.records import Environment

BEFORE = Environment(
    {"cpu": "x"}, {"power": {"turbo": "on", "policies": [{"governor": "powersave"}]}, "kernel": {"release": "6.1"}}
)


def test_the_same_environment_goes_on_whatever_passed_meanwhile() -> None:
    refuse_another(kept_environment(keep(BEFORE)), replace(BEFORE, conditions={"load_1min": 9.0}), "r1")


def test_another_environment_is_refused_with_its_differences() -> None:
    now = replace(
        BEFORE, configuration={"power": {"turbo": "on", "policies": [{"governor": "performance"}]}, "kernel": {}}
    )
    with pytest.raises(UsageError, match="r1") as caught:
        refuse_another(BEFORE, now, "r1")
    assert "governor: performance now, powersave then; kernel's release: not told now, 6.1 then" in caught.value.what
    assert "start a new run" in caught.value.fix


def test_what_a_probe_loaded_is_a_condition() -> None:
    loaded = {"libraries": ["libgomp.so.1"]}
    probes = [
        TargetStatus("onnxruntime", "cpu", True, details={"loaded": loaded}),
        TargetStatus("openvino", "gpu", False, "no GPU"),
    ]
    found = environment_now(probes, resumed_from="r0")
    assert found.conditions["loaded"] == {"onnxruntime": loaded}
    assert found.conditions["resumed_from"] == "r0"
    assert found.digest == environment_now().digest
