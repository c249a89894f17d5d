"""NVML: power and energy of NVIDIA boards, by NVIDIA's own Python package (nvidia-ml-py), which is handed in.

Both the energy counter (Volta and newer, mJ, steps every 10 to 100 ms) and the power are kept: they have differed by 75 %
on an idle board, and such a gap is flagged where a window's energy is made. Power is NVML_FI_DEV_POWER_INSTANT where the
driver has it, because nvmlDeviceGetPowerUsage is an average over one second on most boards since Ampere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from harness.sensors.base import MeterError, MeterStatus, Method, Quality, Reading, Scope, not_measured

Library = Any  # the module pynvml, or what plays it
DRIVER_FIX = "Install NVIDIA's driver; it brings libnvidia-ml.so.1."


def import_nvml() -> Library:
    """Import nvidia-ml-py. Raises ImportError."""
    import pynvml

    return pynvml


class NvmlMeter:
    """One board, by its number in nvidia-smi's order."""

    scope: Scope = "gpu_board"
    quality: Quality = "sensor"

    def __init__(self, library: Library, index: int) -> None:
        self.source = f"nvml:{index}"
        self._library = library
        self._index = index
        self._handle: Any = None
        self._zero_mj: int | None = None
        self._instant = False
        self._opened = False

    def open(self) -> None:
        """Find the board, and which of the two values it has. Raises MeterError."""
        self.close()
        nvml = self._library
        try:
            nvml.nvmlInit()
            self._opened = True
            self._handle = nvml.nvmlDeviceGetHandleByIndex(self._index)
        except nvml.NVMLError as error:
            self.close()
            raise MeterError(f"{self.source} cannot be read ({_words(error)}).") from error
        try:
            self._zero_mj = int(nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))
        except nvml.NVMLError:
            self._zero_mj = None  # before Volta: power only
        self._instant = self._instant_power() is not None

    def read(self) -> Reading:
        """Read counter and power together."""
        now = time.monotonic_ns()
        reasons = []
        energy = power = None
        if self._handle is None:
            reasons.append("it is not open")
        else:
            if self._zero_mj is not None:
                try:
                    total = int(self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle))
                    energy = (total - self._zero_mj) / 1e3
                    if energy < 0:
                        energy = None
                        reasons.append("the energy counter went back; the driver was loaded anew")
                except self._library.NVMLError as error:
                    reasons.append(f"energy: {_words(error)}")
            try:
                power = self._power()
            except self._library.NVMLError as error:
                reasons.append(f"power: {_words(error)}")
        method: Method = "counter_diff" if self._zero_mj is not None else "trapezoid"
        reason = f"{self.source} cannot be read ({'; '.join(reasons)})" if reasons else None
        return Reading(now, self.source, self.scope, method, self.quality, energy, power, reason)

    def name(self) -> str:
        """The board's name."""
        found = self._library.nvmlDeviceGetName(self._handle)
        return found.decode(errors="replace") if isinstance(found, bytes) else str(found)

    def close(self) -> None:
        """Shut the library down."""
        self._handle = None
        if self._opened:
            self._opened = False
            with suppress(self._library.NVMLError):  # the driver may be gone; there is nothing left to release
                self._library.nvmlShutdown()

    def _power(self) -> float:
        if self._instant:
            watts = self._instant_power()
            if watts is not None:
                return watts
        return float(self._library.nvmlDeviceGetPowerUsage(self._handle)) / 1e3

    def _instant_power(self) -> float | None:
        """Watts of this moment, of the board's GPU scope; None where this driver or board has no such field."""
        nvml = self._library
        field = getattr(nvml, "NVML_FI_DEV_POWER_INSTANT", None)
        if field is None:
            return None
        try:
            (value,) = nvml.nvmlDeviceGetFieldValues(self._handle, [(field, getattr(nvml, "NVML_POWER_SCOPE_GPU", 0))])
        except nvml.NVMLError:
            return None
        return value.value.uiVal / 1e3 if value.nvmlReturn == 0 else None


def nvml_statuses(load: Callable[[], Library] = import_nvml) -> list[MeterStatus]:
    """One status per board, or one that says why there is none."""
    try:
        nvml = load()
    except ImportError:
        return [
            not_measured("nvml", "the package nvidia-ml-py is not installed", "Install it: pip install nvidia-ml-py.")
        ]
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        why = f"NVIDIA's driver does not answer ({_words(error)})"
        return [not_measured("nvml", why, DRIVER_FIX, "gpu_board")]
    try:
        count = int(nvml.nvmlDeviceGetCount())
        if count == 0:
            return [not_measured("nvml", "NVIDIA's driver sees no board", None, "gpu_board")]
        return [_status(nvml, index) for index in range(count)]
    except nvml.NVMLError as error:
        return [not_measured("nvml", f"NVIDIA's driver does not list its boards ({_words(error)})", None, "gpu_board")]
    finally:
        nvml.nvmlShutdown()


def _status(nvml: Library, index: int) -> MeterStatus:
    meter = NvmlMeter(nvml, index)
    try:
        meter.open()
        reading = meter.read()
        name = meter.name()
    except MeterError as error:
        return not_measured(meter.source, error.what.rstrip("."), error.fix or None, meter.scope)
    except nvml.NVMLError as error:
        return not_measured(meter.source, _words(error), None, meter.scope)
    finally:
        meter.close()
    if not reading.good:
        return not_measured(meter.source, reading.reason or "it has neither energy nor power", None, meter.scope)
    what = [
        word for word, value in (("energy counter", reading.energy_j), ("power", reading.power_w)) if value is not None
    ]
    text = f"{name}: {' and '.join(what)}"
    return MeterStatus(meter.source, True, text, None, False, meter.scope, meter.quality, meter)


def _words(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
