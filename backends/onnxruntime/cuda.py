"""Name and compute capability of a CUDA device, from NVIDIA's driver itself. Not verified on hardware."""

from __future__ import annotations

import ctypes

MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR in cuda.h


def cuda_device(index: int) -> tuple[str | None, tuple[int, int] | None]:
    """Return (name, (major, minor)); None for what the driver does not tell, or where there is no driver."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if hasattr(ctypes, "WinDLL") else "libcuda.so.1")
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        name = ctypes.create_string_buffer(256)
        if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), index):
            return None, None
        named = driver.cuDeviceGetName(name, len(name), device) == 0
        if driver.cuDeviceGetAttribute(ctypes.byref(major), MAJOR, device) or driver.cuDeviceGetAttribute(
            ctypes.byref(minor), MINOR, device
        ):
            return None, None
    except (OSError, AttributeError):
        return None, None
    return name.value.decode(errors="replace") if named else None, (major.value, minor.value)
