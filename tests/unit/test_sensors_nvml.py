"""NVML with a stand-in for NVIDIA's library: the same names, units and error class as nvidia-ml-py; no board is here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.sensors import meter_for
from harness.sensors.base import MeterError
from harness.sensors.nvml import NvmlMeter, nvml_statuses


class FakeNvml:
    """One or more boards. Milliwatts and millijoules, as NVML has them."""

    NVML_FI_DEV_POWER_INSTANT = 186
    NVML_POWER_SCOPE_GPU = 0

    class NVMLError(Exception):
        """What every call raises."""

    def __init__(self, boards: int = 1) -> None:
        self.boards = boards
        self.energy_mj: int | None = 10_000_000
        self.instant_mw: int | None = 250_000
        self.average_mw: int | None = 240_000
        self.driver = True
        self.initialised = 0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.driver:
            raise self.NVMLError("NVML Shared Library Not Found")
        self.initialised += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.initialised -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.boards

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802
        if index >= self.boards:
            raise self.NVMLError("Invalid Argument")
        return ("board", index)

    def nvmlDeviceGetName(self, handle: Any) -> str:  # noqa: N802
        return f"Test Board {handle[1]}"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> int:  # noqa: N802
        if self.energy_mj is None:
            raise self.NVMLError("Not Supported")
        return self.energy_mj

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:  # noqa: N802
        if self.average_mw is None:
            raise self.NVMLError("Not Supported")
        return self.average_mw

    def nvmlDeviceGetFieldValues(self, handle: Any, fields: list[Any]) -> list[Any]:  # noqa: N802
        assert fields == [(186, 0)]
        known = self.instant_mw is not None
        return [SimpleNamespace(nvmlReturn=0 if known else 3, value=SimpleNamespace(uiVal=self.instant_mw or 0))]


@pytest.fixture
def nvml() -> FakeNvml:
    """A board with counter and both kinds of power."""
    return FakeNvml()


def test_counter_and_power_are_both_kept(nvml: FakeNvml) -> None:
    meter = NvmlMeter(nvml, 0)
    meter.open()
    nvml.energy_mj = 10_012_500
    reading = meter.read()
    meter.close()
    assert (reading.energy_j, reading.power_w) == (12.5, 250.0)
    assert (reading.source, reading.scope, reading.method, reading.quality) == (
        "nvml:0",
        "gpu_board",
        "counter_diff",
        "sensor",
    )


def test_without_the_instant_field_the_average_is_taken(nvml: FakeNvml) -> None:
    nvml.instant_mw = None
    meter = NvmlMeter(nvml, 0)
    meter.open()
    assert meter.read().power_w == 240.0
    meter.close()


def test_a_board_before_volta_has_power_only(nvml: FakeNvml) -> None:
    nvml.energy_mj = None
    meter = NvmlMeter(nvml, 0)
    meter.open()
    reading = meter.read()
    meter.close()
    assert (reading.energy_j, reading.power_w, reading.method, reading.good) == (None, 250.0, "trapezoid", True)
    assert reading.reason is None


def test_a_failing_counter_is_a_reason_and_not_a_reading(nvml: FakeNvml) -> None:
    meter = NvmlMeter(nvml, 0)
    meter.open()
    nvml.energy_mj = None
    reading = meter.read()
    meter.close()
    assert (reading.energy_j, reading.good) == (None, False)
    assert "energy: Not Supported" in (reading.reason or "")


def test_a_counter_that_went_back_is_never_a_negative_energy(nvml: FakeNvml) -> None:
    meter = NvmlMeter(nvml, 0)
    meter.open()
    nvml.energy_mj = 5
    reading = meter.read()
    meter.close()
    assert reading.energy_j is None
    assert "went back" in (reading.reason or "")


def test_a_board_that_is_not_there_cannot_be_opened(nvml: FakeNvml) -> None:
    with pytest.raises(MeterError, match="nvml:3"):
        NvmlMeter(nvml, 3).open()
    assert nvml.initialised == 0


def test_the_library_is_shut_down_as_often_as_it_was_started(nvml: FakeNvml) -> None:
    meter = NvmlMeter(nvml, 0)
    meter.open()
    meter.close()
    meter.close()
    nvml_statuses(lambda: nvml)
    assert nvml.initialised == 0


def test_each_board_has_a_status_of_its_own() -> None:
    library = FakeNvml(boards=2)
    found = nvml_statuses(lambda: library)
    assert [(s.name, s.works, s.text) for s in found] == [
        ("nvml:0", True, "Test Board 0: energy counter and power"),
        ("nvml:1", True, "Test Board 1: energy counter and power"),
    ]
    assert all(not status.verified for status in found)


def test_without_a_driver_the_status_says_so(nvml: FakeNvml) -> None:
    nvml.driver = False
    (status,) = nvml_statuses(lambda: nvml)
    assert (status.works, status.name) == (False, "nvml")
    assert status.text.startswith("not measured: ")
    assert "NVML Shared Library Not Found" in status.text
    assert "libnvidia-ml.so.1" in (status.fix or "")


def test_a_driver_without_boards_says_so() -> None:
    (status,) = nvml_statuses(lambda: FakeNvml(boards=0))
    assert "no board" in status.text


def test_a_board_that_tells_nothing_is_not_measured(nvml: FakeNvml) -> None:
    nvml.energy_mj = nvml.instant_mw = nvml.average_mw = None
    (status,) = nvml_statuses(lambda: nvml)
    assert not status.works
    assert "Not Supported" in status.text


def test_a_unit_gets_the_meter_of_its_own_scope() -> None:
    statuses = nvml_statuses(lambda: FakeNvml(boards=2))
    assert meter_for(statuses, "gpu", 1).name == "nvml:1"
    assert not meter_for(statuses, "npu").works
    assert meter_for(statuses, "npu").text.startswith("not measured: ")
