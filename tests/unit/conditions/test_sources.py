"""What each source reads, from trees laid out as a kernel does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.conditions.clocks import Clocks
from harness.conditions.frequency import Frequency
from harness.conditions.heat import Heat
from harness.conditions.limits import GroupLimits
from harness.conditions.paging import Paging, Pressure
from harness.conditions.processor_time import ProcessorTime
from harness.conditions.throttling import GpuThrottling, PiThrottling

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PID = 4242


def _write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def _process(user: int = 0, system: int = 0, faults: int = 0, processor: int = 0, name: str = "(python (x))") -> str:
    """A line of /proc/PID/stat by proc_pid_stat(5); its name holds blanks and brackets on purpose."""
    fields = ["0"] * 52
    fields[0], fields[1], fields[2] = str(PID), name, "R"
    fields[11], fields[13], fields[14], fields[38] = str(faults), str(user), str(system), str(processor)
    return " ".join(fields)


def test_other_load_is_what_the_worker_did_not_use_of_its_processors(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        {
            "proc/stat": "cpu  9 9 9 9 9 9 9 9 0 0\n"
            "cpu0 100 20 30 500 40 5 5 7 0 0\ncpu1 9000 0 0 0 0 0 0 900 0 0\nintr 1\n",
            f"proc/{PID}/stat": _process(user=60, system=10),
            f"proc/{PID}/status": "Cpus_allowed_list:\t0\n",
        },
    )
    source = ProcessorTime(root, PID)
    assert source.processors == (0,)
    counters = source.look(PID, slowly=True).counters
    assert counters["busy_s"] == pytest.approx(160 * TICK_S)  # user, nice, system, irq, softirq of processor 0 only
    assert counters["steal_s"] == pytest.approx(7 * TICK_S)
    assert counters["worker_s"] == pytest.approx(70 * TICK_S)


def test_the_workers_children_are_the_worker(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        {
            "proc/stat": "cpu0 0 0 0 0 0 0 0 0 0 0\n",
            f"proc/{PID}/stat": _process(user=10),
            f"proc/{PID}/task/{PID}/children": "4243 ",
            "proc/4243/stat": _process(user=30),
            "proc/4243/task/4243/children": "",
        },
    )
    assert ProcessorTime(root, PID).look(PID, slowly=True).counters["worker_s"] == pytest.approx(40 * TICK_S)


def test_without_proc_stat_other_load_is_absent_with_the_reason(tmp_path: Path) -> None:
    source = ProcessorTime(tmp_path, PID)
    assert "busy_s" not in source.look(PID, slowly=True).counters
    assert source.absent == dict.fromkeys(("other_load", "steal"), "/proc/stat cannot be read")


def test_a_clock_that_is_set_shows_as_a_jump() -> None:
    moment = {"mono": 0, "wall": 1_000_000_000, "boot": 0}

    def advance(wall_ns: int = 0, boot_ns: int = 0) -> None:
        for name, extra in (("mono", 0), ("wall", wall_ns), ("boot", boot_ns)):
            moment[name] += 1_000_000_000 + extra

    clocks = Clocks(lambda: moment["mono"], lambda: moment["wall"], lambda: moment["boot"])
    before = clocks.look(PID, False).counters
    advance()
    steady = clocks.look(PID, False).counters
    advance(wall_ns=-2_000_000_000, boot_ns=30_000_000_000)
    after = clocks.look(PID, False).counters
    assert steady == before
    assert after["wall_offset_s"] - before["wall_offset_s"] == -2.0
    assert after["suspended_s"] - before["suspended_s"] == 30.0


def test_reading_two_clocks_apart_is_no_step() -> None:
    """Interrupted for a millisecond between the two clocks in four of five tries: the close one counts."""
    now = [0]
    delays = iter([1_000_000, 1_000_000, 1_000_000, 1_000_000, 100] * 2)

    def monotonic() -> int:
        now[0] += 50
        return now[0]

    def wall() -> int:
        now[0] += next(delays)
        return now[0] + 7_000_000_000

    clocks = Clocks(monotonic, wall, lambda: now[0])
    assert clocks.look(PID, False).counters["wall_offset_s"] == pytest.approx(7.0, abs=1e-6)


def test_the_frequency_is_that_of_the_workers_processor(tmp_path: Path) -> None:
    cpu = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
    files = {cpu.format(0): "800000", cpu.format(3): "3400000", f"proc/{PID}/stat": _process(processor=3)}
    assert Frequency(_write(tmp_path, files)).look(PID, False).levels == {"frequency_mhz": 3400.0}


def test_a_virtual_machine_has_no_frequency_and_says_why(tmp_path: Path) -> None:
    source = Frequency(_write(tmp_path, {"proc/cpuinfo": "cpu MHz\t: 2599.998\nflags\t: fpu hypervisor\n"}))
    assert source.look(PID, False).levels == {}
    assert "virtual machine" in source.absent["frequency"]


def test_the_hottest_sensor_of_the_processor_and_the_systems_own_limit(tmp_path: Path) -> None:
    zones = "sys/class/thermal/thermal_zone"
    root = _write(
        tmp_path,
        {
            f"{zones}0/type": "cpu-thermal",
            f"{zones}0/temp": "71000",
            f"{zones}0/trip_point_0_type": "passive",
            f"{zones}0/trip_point_0_temp": "85000",
            f"{zones}0/trip_point_1_type": "critical",
            f"{zones}0/trip_point_1_temp": "110000",
            f"{zones}0/trip_point_2_type": "active",
            f"{zones}0/trip_point_2_temp": "50000",
            f"{zones}1/type": "iwlwifi_1",
            f"{zones}1/temp": "99000",
            "sys/class/hwmon/hwmon0/name": "coretemp",
            "sys/class/hwmon/hwmon0/temp1_input": "74000",
            "sys/class/hwmon/hwmon0/temp1_crit": "100000",
            "sys/class/hwmon/hwmon1/name": "nvme",
            "sys/class/hwmon/hwmon1/temp1_input": "98000",
            "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "3",
            "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "4",
        },
    )
    source = Heat(root)
    values = source.look(PID, slowly=True)
    assert source.limit_c == 85.0
    assert values.levels == {"temperature_c": 74.0}
    assert values.counters == {"thermal_events": 7}
    assert source.look(PID, slowly=False).levels == {}


def test_swap_faults_and_pressure(tmp_path: Path) -> None:
    files = {
        "proc/vmstat": "nr_free_pages 5\npswpin 12\npswpout 30\n",
        f"proc/{PID}/stat": _process(faults=9),
        "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0 total=1\n",
    }
    root = _write(tmp_path, files)
    assert Paging(root).look(PID, False).counters == {"pswpin": 12, "pswpout": 30, "major_faults": 9}
    assert Pressure(root).look(PID, False).counters == {"pressure_cpu_s": 2.5}


@pytest.mark.parametrize("version", [1, 2])
def test_quotas_of_both_versions_are_counted_for_the_workers_own_group(tmp_path: Path, version: int) -> None:
    mount = {
        1: "35 30 0:31 / /sys/fs/cgroup rw - cgroup cgroup rw,cpu\n",
        2: "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    }[version]
    stat = {1: "throttled_time {}000000", 2: "throttled_usec {}000"}[version]
    line = {1: "4:cpu:{}\n", 2: "0::{}\n"}[version]

    def counted(folder: str, throttled: int) -> dict[str, str]:
        text = f"nr_periods {throttled * 2}\nnr_throttled {throttled}\n{stat.format(throttled * 10)}\n"
        return {f"sys/fs/cgroup{folder}/cpu.stat": text, f"sys/fs/cgroup{folder}/cgroup.controllers": "cpu"}

    root = _write(
        tmp_path,
        {
            "proc/self/mountinfo": mount,
            "proc/self/cgroup": line.format("/"),
            f"proc/{PID}/mountinfo": mount,
            f"proc/{PID}/cgroup": line.format("/"),
            **counted("", 3),
            **counted("/half", 100),
        },
    )
    source = GroupLimits(root)
    first = source.look(PID, False).counters
    _write(root, {f"proc/{PID}/cgroup": line.format("/half")})  # moved after its start: its counters go on
    moved = source.look(PID, False).counters
    _write(root, counted("/half", 107))
    last = source.look(PID, False).counters
    name = "worker_throttled_periods"
    assert moved[name] - first[name] == 0
    assert last[name] - first[name] == 7
    assert last["worker_throttled_s"] - first["worker_throttled_s"] == pytest.approx(0.07)
    assert last["harness_throttled_periods"] == 3


PI_MODEL = {"proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.4\0"}


def test_a_pis_bits_by_command_tell_what_happened_between(tmp_path: Path) -> None:
    answers = iter(["throttled=0x10000", "throttled=0x10000", "throttled=0x50000"])
    asked: list[Any] = []

    def run(arguments: Any) -> str | None:
        asked.append(arguments)
        return next(answers)

    source = PiThrottling(_write(tmp_path, PI_MODEL), run)  # under-voltage stood since the start: no news
    assert source.look(PID, slowly=True).signs == set()  # while it is timed, no process is started
    assert source.at_end() == {"throttled"}
    assert asked[0] == ["/usr/bin/vcgencmd", "get_throttled"]


def test_a_pis_bits_by_file_are_read_while_it_runs(tmp_path: Path) -> None:
    file = "sys/devices/platform/soc/soc:firmware/get_throttled"
    source = PiThrottling(_write(tmp_path, {**PI_MODEL, file: "0"}), lambda arguments: None)
    assert source.look(PID, slowly=True).signs == set()
    _write(tmp_path, {file: "50005"})
    assert source.look(PID, slowly=True).signs == {"under_voltage", "throttled"}
    _write(tmp_path, {file: "50000"})
    assert source.at_end() == {"under_voltage", "throttled"}


def test_a_pi_that_does_not_tell_says_so_and_others_are_not_asked(tmp_path: Path) -> None:
    silent = PiThrottling(_write(tmp_path / "pi", PI_MODEL), lambda arguments: None)
    assert "vcgencmd" in silent.absent["raspberry_pi_throttling"]
    other = PiThrottling(tmp_path / "other", lambda arguments: pytest.fail("no Pi, no command"))
    assert other.absent == {} and other.at_end() == set()


class FakeNvml:
    """A board that tells reasons, clock and temperature, with NVML's own names and bits."""

    class NVMLError(Exception):
        """What every call raises."""

    started = 0
    reasons = 0x4 | 0x40

    def nvmlInit(self) -> None:  # noqa: N802
        self.started += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.started -= 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if index:
            raise self.NVMLError("Invalid Argument")
        return index

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, board: int) -> int:  # noqa: N802
        return self.reasons

    def nvmlDeviceGetClockInfo(self, board: int, kind: int) -> int:  # noqa: N802
        return 1410

    def nvmlDeviceGetTemperature(self, board: int, sensor: int) -> int:  # noqa: N802
        raise self.NVMLError("Not Supported")


def test_a_gpus_reasons_are_read_in_process_and_only_once_a_second() -> None:
    library = FakeNvml()
    source = GpuThrottling(0, lambda: library)
    values = source.look(PID, slowly=True)
    assert values.signs == {"gpu_power_cap", "gpu_hardware_thermal_slowdown"}
    assert values.levels == {"gpu_clock_mhz": 1410.0}
    assert source.look(PID, slowly=False).signs == set()
    source.close()
    source.close()
    assert library.started == 0


def test_a_gpu_that_is_not_there_is_absent_with_the_reason() -> None:
    library = FakeNvml()
    assert "Invalid Argument" in GpuThrottling(3, lambda: library).absent["gpu"]
    assert library.started == 0
