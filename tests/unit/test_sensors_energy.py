"""Energy of a window, energy of an inference: by hand-made readings whose answer is plain arithmetic."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sensors.base import MeterError, MeterStatus, Reading, not_measured
from harness.sensors.energy_window import WindowEnergy, window_energy
from harness.sensors.joining import join_energy
from harness.sensors.metering import Metering
from harness.sensors.sampler import Sampler

S = 1_000_000_000


def counter(at_s: float, joules: float | None, watts: float | None = None, reason: str | None = None) -> Reading:
    """A reading of a counter, and of power where given."""
    return Reading(round(at_s * S), "nvml:0", "gpu_board", "counter_diff", "sensor", joules, watts, reason)


def power(at_s: float, watts: float | None, reason: str | None = None) -> Reading:
    """A reading of power only."""
    return Reading(round(at_s * S), "ina:0", "board_rails", "trapezoid", "sensor", None, watts, reason)


def test_a_counters_window_is_the_difference_between_its_ends() -> None:
    readings = [counter(t, 10.0 * t) for t in range(13)]
    window = window_energy(readings, 1 * S, 11 * S, 1.0)
    assert window.joules == pytest.approx(100)
    assert window.mean_w == pytest.approx(10)
    assert (window.method, window.source, window.scope, window.readings) == ("counter_diff", "nvml:0", "gpu_board", 11)


def test_ends_between_two_readings_are_interpolated() -> None:
    readings = [counter(0, 0), counter(1, 8), counter(2, 10), counter(3, 30)]
    # at 0.5 s: 4 J; at 2.25 s: 10 + 0.25 x 20 = 15 J
    assert window_energy(readings, S // 2, 9 * S // 4, 1.0).joules == pytest.approx(11)


def test_power_is_integrated_over_its_own_times() -> None:
    readings = [power(0, 0), power(1, 10), power(3, 20), power(4, 20)]
    # trapezoids: 5 + 30 + 20
    window = window_energy(readings, 0, 4 * S, 1.0)
    assert window.joules == pytest.approx(55)
    assert window.method == "trapezoid"


def test_power_at_ends_between_readings_is_interpolated() -> None:
    readings = [power(0, 10), power(2, 30)]
    # from 0.5 s (15 W) to 1.5 s (25 W)
    assert window_energy(readings, S // 2, 3 * S // 2, 1.0).joules == pytest.approx(20)


def test_a_gap_of_more_than_five_percent_gives_no_energy() -> None:
    readings = [counter(t / 10, t) for t in range(101) if not 40 < t < 47]
    # 4.0 s to 4.7 s is 0.7 s of 10 s, and wider than three intervals
    window = window_energy(readings, 0, 10 * S, 0.1)
    assert window.joules is None
    assert window.reason is not None
    assert "7% of the window has no reading" in window.reason


def test_a_gap_of_less_is_tolerated() -> None:
    readings = [counter(t / 10, t) for t in range(101) if not 40 < t < 44]
    assert window_energy(readings, 0, 10 * S, 0.1).joules == pytest.approx(100)


def test_failed_readings_make_the_gap_and_give_their_reason() -> None:
    readings = [
        counter(t, float(t) if t < 5 else None, reason=None if t < 5 else "permission was withdrawn") for t in range(11)
    ]
    window = window_energy(readings, 0, 10 * S, 1.0)
    assert window.joules is None
    assert "permission was withdrawn" in (window.reason or "")


@pytest.mark.parametrize(("start", "end"), [(0, 10), (5, 15), (20, 30)])
def test_a_window_that_readings_do_not_reach_over_has_no_energy(start: int, end: int) -> None:
    readings = [counter(t, float(t)) for t in range(2, 13)]
    assert window_energy(readings, start * S, end * S, 1.0).joules is None


def test_no_reading_and_no_length_are_reasons() -> None:
    assert window_energy([], 0, S, 1.0).reason == "no reading was taken"
    assert window_energy([counter(0, 0), counter(1, 1)], S, S, 1.0).reason == "the window has no length"


def test_a_counter_that_stands_still_is_no_zero() -> None:
    window = window_energy([counter(t, 7.0) for t in range(11)], 0, 10 * S, 1.0)
    assert window.joules is None
    assert "did not move" in (window.reason or "")


def test_a_power_of_nothing_is_no_zero() -> None:
    window = window_energy([power(t, 0.0) for t in range(11)], 0, 10 * S, 1.0)
    assert window.joules is None
    assert "no power" in (window.reason or "")


def test_both_ways_are_kept_where_a_meter_has_both() -> None:
    window = window_energy([counter(t, 100.0 * t, 175.0) for t in range(31)], 0, 30 * S, 1.0)
    assert window.joules == pytest.approx(3000)
    assert window.integrated_j == pytest.approx(5250)
    assert window.disagreement == pytest.approx(0.75)


@given(
    watts=st.floats(0.1, 500),
    times=st.lists(st.integers(1, 1000), min_size=4, max_size=40),
    share=st.floats(0.1, 0.9),
)
def test_constant_power_is_power_times_time_and_parts_add_up(watts: float, times: list[int], share: float) -> None:
    moments = [0]
    for step in times:
        moments.append(moments[-1] + step)
    readings = [counter(at / 1000, watts * at / 1000, watts) for at in moments]
    start, end = 0, moments[-1] * S // 1000
    middle = int(end * share)
    whole = window_energy(readings, start, end, 1.0)
    parts = [window_energy(readings, start, middle, 1.0), window_energy(readings, middle, end, 1.0)]
    assert whole.joules == pytest.approx(watts * end / S, rel=1e-6)
    assert whole.integrated_j == pytest.approx(watts * end / S, rel=1e-6)
    assert sum(part.joules or 0 for part in parts) == pytest.approx(whole.joules, rel=1e-6)


def measured(seconds: float, joules: float, **changes: object) -> WindowEnergy:
    """A window of a board's counter with plenty of readings."""
    window = WindowEnergy(0, round(seconds * S), joules, None, "nvml:0", "gpu_board", "counter_diff", "sensor", 60)
    return replace(window, **changes)  # type: ignore[arg-type]


def test_gross_and_net_energy_of_an_inference() -> None:
    joined = join_energy([(measured(20, 4000), 1000)], idle=measured(30, 1500), loaded_idle=measured(30, 2100))
    energy = joined.energy
    assert energy.per_inference_j == pytest.approx(4.0)
    assert energy.net_per_inference_j == pytest.approx((4000 - 50 * 20) / 1000)
    assert (energy.mean_w, energy.idle_w, energy.loaded_idle_w) == (200, 50, 70)
    assert (energy.source, energy.scope, energy.method, energy.quality, energy.samples) == (
        "nvml:0",
        "gpu_board",
        "counter_diff",
        "sensor",
        60,
    )
    assert (energy.reason, joined.flags) == (None, ())


def test_trials_are_joined_by_their_sums_and_one_without_energy_is_left_out() -> None:
    lost = WindowEnergy(0, 20 * S, None, "8% of the window has no reading", "nvml:0")
    joined = join_energy([(lost, 900), (measured(10, 1000), 200), (measured(30, 5000), 1000)], idle=measured(30, 600))
    assert joined.energy.per_inference_j == pytest.approx(6000 / 1200)
    assert joined.energy.net_per_inference_j == pytest.approx((6000 - 20 * 40) / 1200)
    assert joined.energy.mean_w == pytest.approx(150)
    assert joined.energy.samples == 120


def test_nothing_at_all_is_a_reason() -> None:
    assert join_energy([]).energy.reason == "no meter was read"


def test_without_idle_there_is_no_net() -> None:
    assert join_energy([(measured(20, 4000), 1000)]).energy.net_per_inference_j is None


def test_idle_of_another_meter_is_never_subtracted() -> None:
    other = measured(30, 1500, source="rapl:package-0")
    assert join_energy([(measured(20, 4000), 1000)], idle=other).energy.net_per_inference_j is None


def test_a_window_without_energy_keeps_its_reason() -> None:
    energy = join_energy([(WindowEnergy(0, S, None, "8% of the window has no reading"), 10)]).energy
    assert (energy.per_inference_j, energy.mean_w, energy.reason) == (None, None, "8% of the window has no reading")


def test_no_inference_is_no_energy_per_inference() -> None:
    energy = join_energy([(measured(20, 4000), 0)]).energy
    assert energy.per_inference_j is None
    assert "no inference" in (energy.reason or "")


@pytest.mark.parametrize(
    ("window", "idle", "code"),
    [
        (measured(20, 4000, integrated_j=7000.0), None, "energy_methods_differ"),
        (measured(2, 400), None, "energy_window_short"),
        (measured(20, 4000, readings=19), None, "energy_window_short"),
        (measured(20, 400), measured(30, 1500), "energy_below_idle"),
    ],
)
def test_what_a_reader_must_know_is_flagged(window: WindowEnergy, idle: WindowEnergy | None, code: str) -> None:
    joined = join_energy([(window, 100)], idle=idle)
    assert [flag.code for flag in joined.flags] == [code]
    assert joined.energy.net_per_inference_j is None


def test_methods_that_agree_are_not_flagged() -> None:
    assert join_energy([(measured(20, 4000, integrated_j=3700.0), 100)]).flags == ()


class SteadyMeter:
    """A meter of 50 W by the real clock."""

    source = "steady"
    scope = "wall"
    quality = "metered"

    def __init__(self) -> None:
        self.opened = self.closed = 0
        self.zero = 0

    def open(self) -> None:
        self.opened += 1
        self.zero = time.monotonic_ns()

    def read(self) -> Reading:
        now = time.monotonic_ns()
        return Reading(now, self.source, "wall", "counter_diff", "metered", 50.0 * (now - self.zero) / S)

    def close(self) -> None:
        self.closed += 1


class ClosedMeter(SteadyMeter):
    """A meter that cannot be opened."""

    source = "closed"

    def open(self) -> None:
        raise MeterError("closed cannot be read (only root may).", "Ask root.")


def test_the_sampler_measures_a_window_on_the_real_clock() -> None:
    meter = SteadyMeter()
    with Sampler([meter, ClosedMeter()], interval_s=0.02) as sampler:
        start = time.monotonic_ns()
        time.sleep(0.3)
        end = time.monotonic_ns()
        time.sleep(0.05)
    window = sampler.window("steady", start, end)
    assert window.mean_w == pytest.approx(50, rel=1e-3)
    assert window.readings >= 3
    assert (meter.opened, meter.closed) == (1, 1)


def test_a_window_that_ended_just_now_is_read_to_its_end() -> None:
    with Sampler([SteadyMeter()], interval_s=0.1) as sampler:
        start = time.monotonic_ns()
        time.sleep(0.25)
        window = sampler.window("steady", start, time.monotonic_ns())
    assert window.mean_w == pytest.approx(50, rel=1e-3)


def test_a_meter_that_cannot_be_opened_keeps_its_reason_and_disturbs_no_other() -> None:
    with Sampler([ClosedMeter(), SteadyMeter()], interval_s=0.02) as sampler:
        pass
    sampler.stop()
    window = sampler.window("closed", 0, S)
    assert window.joules is None
    assert "only root may" in (window.reason or "")
    assert sampler.sources == ("closed", "steady")
    assert "no meter wall" in (sampler.window("wall", 0, S).reason or "")


def test_metering_subtracts_the_rest_before_the_run() -> None:
    meter = SteadyMeter()
    status = MeterStatus("rapl", True, "played", scope="wall", quality="metered", meter=meter)
    with Metering([status], interval_s=0.02) as metering:
        metering.rest(0.15)
        start = time.monotonic_ns()
        time.sleep(0.2)
        end = time.monotonic_ns()
    joined = metering.energy("cpu", 0, [(start, end, 10)])
    assert joined.energy.mean_w == pytest.approx(50, rel=1e-3)
    assert joined.energy.idle_w == pytest.approx(50, rel=1e-3)
    assert joined.energy.per_inference_j == pytest.approx(50 * (end - start) / S / 10, rel=1e-3)
    assert "energy_window_short" in [flag.code for flag in joined.flags]
    assert meter.closed == 1


def test_metering_without_meters_costs_nothing_and_gives_the_reason() -> None:
    status = not_measured("rapl", "this machine has no /sys/class/powercap")
    before = threading.active_count()
    with Metering([status]) as metering:
        assert threading.active_count() == before
        start = time.monotonic()
        metering.rest(30)
        assert time.monotonic() - start < 1
    energy = metering.energy("cpu", 0, [(0, S, 10)]).energy
    assert energy.per_inference_j is None
    assert energy.reason == "not measured: this machine has no /sys/class/powercap"


def test_a_unit_without_a_meter_gets_no_other_units_energy() -> None:
    status = MeterStatus("rapl", True, "played", scope="cpu_package", quality="sensor", meter=SteadyMeter())
    with Metering([status], interval_s=0.02) as metering:
        pass
    energy = metering.energy("gpu", 0, [(0, S, 10)]).energy
    assert energy.per_inference_j is None
    assert (energy.reason or "").startswith("not measured: ")


def test_the_sampler_stops_its_thread_when_the_work_fails() -> None:
    meter = SteadyMeter()
    with pytest.raises(ZeroDivisionError), Sampler([meter], interval_s=0.02):
        raise ZeroDivisionError
    assert meter.closed == 1
