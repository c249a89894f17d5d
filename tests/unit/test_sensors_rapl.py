"""RAPL on constructed powercap trees: which zones count, the wrap, what cannot be read, and what is not there at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.sensors import available_meters, rapl
from harness.sensors.base import MeterError
from harness.sensors.rapl import RaplMeter, packages, rapl_status

RANGE = 262_143_328_850  # of a Xeon, in microjoules


def zone(root: Path, folder: str, name: str, energy_uj: int, range_uj: int = RANGE) -> Path:
    """Make one zone of /sys/class/powercap."""
    path = root / "sys/class/powercap" / folder
    path.mkdir(parents=True)
    (path / "name").write_text(f"{name}\n")
    (path / "max_energy_range_uj").write_text(f"{range_uj}\n")
    (path / "energy_uj").write_text(f"{energy_uj}\n")
    return path / "energy_uj"


def cpuinfo(root: Path, vendor: str, flags: str = "fpu sse2") -> None:
    """Make /proc/cpuinfo."""
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(f"vendor_id\t: {vendor}\nmodel name\t: Test\nflags\t\t: {flags}\n")


@pytest.fixture
def two_sockets(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A two-socket Xeon's tree, with everything that must not be counted, numbered so that only names tell."""
    second = zone(tmp_path, "intel-rapl:0", "package-1", 5_000_000)
    first = zone(tmp_path, "intel-rapl:1", "package-0", 1_000_000)
    zone(tmp_path, "intel-rapl:0:0", "dram", 77_000_000)
    zone(tmp_path, "intel-rapl:1:0", "core", 77_000_000)
    zone(tmp_path, "intel-rapl:2", "psys", 77_000_000)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 77_000_000)
    (tmp_path / "sys/class/powercap/intel-rapl").mkdir()  # the control type: a folder without a counter
    cpuinfo(tmp_path, "GenuineIntel")
    return tmp_path, first, second


def test_packages_are_found_by_name_and_each_once(two_sockets: tuple[Path, Path, Path]) -> None:
    root, first, second = two_sockets
    assert [(d.name, d.counter) for d in packages(root)] == [("package-0", first), ("package-1", second)]


def test_dies_of_a_package_count_as_packages(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0-die-0", 1)
    zone(tmp_path, "intel-rapl:1", "package-0-die-1", 1)
    assert [d.name for d in packages(tmp_path)] == ["package-0-die-0", "package-0-die-1"]


def test_a_tree_with_mmio_only_is_used(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 1)
    assert [d.name for d in packages(tmp_path)] == ["package-0"]


def test_energy_counts_from_opening_over_all_packages(two_sockets: tuple[Path, Path, Path]) -> None:
    root, first, second = two_sockets
    meter = RaplMeter(packages(root), "sensor")
    meter.open()
    assert meter.read().energy_j == 0
    first.write_text("1500000\n")
    second.write_text("7000000\n")
    reading = meter.read()
    meter.close()
    meter.close()
    assert reading.energy_j == pytest.approx(0.5 + 2.0)
    assert (reading.source, reading.scope) == ("rapl:package-0+package-1", "cpu_package")
    assert (reading.method, reading.quality, reading.reason) == ("counter_diff", "sensor", None)


def test_the_counter_may_wrap_between_readings_more_than_once_in_a_run(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 900, range_uj=1_000_000_000)
    meter = RaplMeter(packages(tmp_path), "sensor")
    counter.write_text("999000000")
    meter.open()
    for value in (4_000_000, 500_000_000, 999_999_999, 1_000_000):
        counter.write_text(str(value))
        reading = meter.read()
    meter.close()
    # 999 J -> wrap -> 4 J is 5 J; to 500 J 496 more; to the end 499.999999; wrap -> 1 J is 1.000001
    assert reading.energy_j == pytest.approx(5 + 496 + 499.999999 + 1.000001)


def test_a_wrap_that_may_have_been_missed_ends_the_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 0)
    meter = RaplMeter(packages(tmp_path), "sensor")
    clock = [1_000_000_000]
    monkeypatch.setattr(rapl.time, "monotonic_ns", lambda: clock[0])
    meter.open()
    clock[0] += 300 * 10**9  # 262 kJ last 262 s at 1000 W
    for _ in range(2):
        reading = meter.read()
        assert reading.energy_j is None
        assert "300 s" in (reading.reason or "")
    meter.close()


def test_a_counter_that_breaks_while_running_is_a_reason_not_a_zero(tmp_path: Path) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 5)
    meter = RaplMeter(packages(tmp_path), "sensor")
    meter.open()
    counter.write_text("broken")
    reading = meter.read()
    meter.close()
    assert (reading.energy_j, reading.good) == (None, False)
    assert "cannot be read" in (reading.reason or "")


def test_reading_before_opening_is_a_reason(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    assert "not open" in (RaplMeter(packages(tmp_path), "sensor").read().reason or "")


def test_without_permission_the_status_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = zone(tmp_path, "intel-rapl:0", "package-0", 5)
    cpuinfo(tmp_path, "GenuineIntel")
    real = os.open

    def refuse(path: object, *rest: object) -> int:  # root may read everything, so the kernel's answer is played
        if str(path) == str(counter):
            raise PermissionError(13, "Permission denied")
        return real(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(rapl.os, "open", refuse)
    with pytest.raises(MeterError, match=r"Linux 5\.10"):
        RaplMeter(packages(tmp_path), "sensor").open()
    status = rapl_status(tmp_path)
    assert not status.works
    assert status.text.startswith("not measured: ")
    assert "chmod a+r" in (status.fix or "")


@pytest.mark.parametrize(("vendor", "quality"), [("GenuineIntel", "sensor"), ("AuthenticAMD", "estimated")])
def test_amds_modelled_counters_are_called_estimated(tmp_path: Path, vendor: str, quality: str) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    cpuinfo(tmp_path, vendor)
    status = rapl_status(tmp_path)
    assert (status.works, status.quality, status.verified) == (True, quality, False)
    assert "package-0" in status.text


def test_a_virtual_machine_is_told_that_its_host_keeps_the_counters(tmp_path: Path) -> None:
    cpuinfo(tmp_path, "GenuineIntel", "fpu hypervisor sse2")
    status = rapl_status(tmp_path)
    assert not status.works
    assert "not measured: " in status.text
    assert "virtual machine" in status.text


def test_a_machine_without_the_tree_is_told_which_module(tmp_path: Path) -> None:
    status = rapl_status(tmp_path)
    assert (status.works, status.meter) == (False, None)
    assert "intel_rapl_msr" in (status.fix or "")


def test_a_tree_without_packages_says_so(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "psys", 5)
    assert "holds no package domain" in rapl_status(tmp_path).text


def test_available_meters_never_raises_and_names_each_kind(tmp_path: Path) -> None:
    def absent() -> object:
        raise ImportError("pynvml")

    found = available_meters(tmp_path, absent)
    assert [status.name for status in found] == ["rapl", "nvml"]
    assert all(not status.works and status.text.startswith("not measured: ") for status in found)
    assert "nvidia-ml-py" in (found[1].fix or "")
