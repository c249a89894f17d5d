"""macOS by what its commands print, Windows by its variables, NVIDIA's boards by a stand-in for their library.

Constructed after the vendors' documentation; no such hardware was here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.environment import collect, cpu_name, hypervisor
from harness.environment.graphics import devices, drivers
from harness.environment.macos import SYSCTL_ALL
from harness.environment.reading import System
from harness.environment.windows import POWERCFG

from .conftest import SERVER, Tree

SYSCTL = """hw.ncpu: 8
hw.memsize: 17179869184
hw.model: Mac14,2
hw.packages: 1
hw.physicalcpu_max: 8
hw.logicalcpu_max: 8
hw.perflevel0.physicalcpu: 4
hw.perflevel0.name: Performance
hw.perflevel1.physicalcpu: 4
hw.perflevel1.name: Efficiency
hw.l1icachesize: 131072
hw.l1dcachesize: 65536
hw.l2cachesize: 4194304
hw.optional.arm.FEAT_BF16: 1
hw.optional.arm.FEAT_I8MM: 1
hw.optional.arm.FEAT_SME: 0
machdep.cpu.brand_string: Apple M2
"""
DISPLAYS = {
    "SPDisplaysDataType": [
        {
            "sppci_model": "Apple M2",
            "sppci_cores": "8",
            "spdisplays_mtlgpufamilysupport": "spdisplays_metal3",
            "spdisplays_ndrvs": [{"_spdisplays_display-serial-number": "fd626d62", "_name": "Color LCD"}],
        }
    ]
}
BATTERY = """Now drawing from 'Battery Power'
 -InternalBattery-0 (id=21037155)\t83%; discharging; 6:01 remaining present: true
"""
MAC = {
    SYSCTL_ALL: SYSCTL,
    ("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"): "Apple M2",
    ("/usr/sbin/sysctl", "-n", "hw.model"): "Mac14,2",
    ("/usr/sbin/sysctl", "-n", "kern.hv_vmm_present"): "0",
    ("/usr/bin/sw_vers", "-productVersion"): "14.5",
    ("/usr/bin/sw_vers", "-buildVersion"): "23F79",
    (
        "/usr/bin/pmset",
        "-g",
    ): "Currently in use:\n standby              1\n lowpowermode         1\n displaysleep         2\n",
    ("/usr/bin/pmset", "-g", "batt"): BATTERY,
    ("/usr/bin/pmset", "-g", "therm"): "CPU_Scheduler_Limit \t= 100\n\tCPU_Speed_Limit \t= 72\n",
    ("/usr/sbin/system_profiler", "SPDisplaysDataType", "-json"): json.dumps(DISPLAYS),
}


def test_a_mac(tmp_path: Path) -> None:
    found = collect(system=System.recorded(tmp_path, "Darwin", MAC))
    assert (found.machine["cpu"], found.machine["board"]) == ("Apple M2", "Mac14,2")
    processor = found.machine["processor"]
    assert processor["kinds_of_cores"] == {"Performance": "4", "Efficiency": "4"}
    assert processor["instruction_sets"] == ["FEAT_BF16", "FEAT_I8MM"]
    assert processor["caches"][-1] == {"level": "l2", "bytes": 4194304}
    assert found.machine["memory"] == {"gib": 16.0}
    assert found.machine["graphics"] == [{"name": "Apple M2", "cores": "8", "metal": "spdisplays_metal3"}]
    assert found.configuration["os"] == "macOS 14.5"
    assert found.configuration["power"] == {"low_power_mode": "1", "source": "battery"}
    assert found.conditions == {"speed_limit_percent": 72, "battery_percent": 83}
    assert "fd626d62" not in json.dumps(found.machine)
    assert "hypervisor" not in found.machine


def test_a_macs_battery_and_heat_leave_the_digest(tmp_path: Path) -> None:
    later = {
        **MAC,
        ("/usr/bin/pmset", "-g", "batt"): BATTERY.replace("83%", "41%"),
        ("/usr/bin/pmset", "-g", "therm"): "CPU_Speed_Limit \t= 100\n",
    }
    digests = {collect(system=System.recorded(tmp_path, "Darwin", outputs)).digest for outputs in (MAC, later)}
    assert len(digests) == 1


def test_a_virtual_mac(tmp_path: Path) -> None:
    outputs = {**MAC, ("/usr/sbin/sysctl", "-n", "kern.hv_vmm_present"): "1"}
    assert hypervisor(system=System.recorded(tmp_path, "Darwin", outputs)) == "unknown"
    assert cpu_name(system=System.recorded(tmp_path, "Darwin", outputs)) == "Apple M2"


@pytest.mark.parametrize(
    ("printed", "scheme"),
    [
        ("Power Scheme GUID: 8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c  (High performance)", "high performance"),
        ("GUID des Energieschemas: 381b4222-f694-41f0-9685-ff5bb260df2e  (Ausbalanciert)", "balanced"),
        ("Power Scheme GUID: 11112222-3333-4444-5555-666677778888  (Alice's)", "custom"),
    ],
)
def test_windows(tmp_path: Path, printed: str, scheme: str) -> None:
    variables = {"PROCESSOR_IDENTIFIER": "Intel64 Family 6 Model 154 Stepping 3, GenuineIntel", "USERNAME": "alice"}
    found = collect(system=System.recorded(tmp_path, "Windows", {POWERCFG: printed}, variables))
    assert found.machine["processor"] == {"family": "6", "model": "154", "stepping": "3", "vendor": "GenuineIntel"}
    assert found.configuration["power"] == {"scheme": scheme}
    kept = json.dumps([found.machine, found.configuration, found.conditions])
    assert "alice" not in kept.lower() and "11112222" not in kept


class FakeNvml:
    """Two boards; names as bytes, as older versions of the library give them, and an MIG query that the board refuses."""

    class NVMLError(Exception):
        """What every call raises."""

    opened = 0

    def nvmlInit(self) -> None:  # noqa: N802
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlDeviceGetCount": 2,
            "nvmlDeviceGetHandleByIndex": "board",
            "nvmlDeviceGetName": b"NVIDIA A100-PCIE-80GB",
            "nvmlDeviceGetMemoryInfo": type("Memory", (), {"total": 85899345920}),
            "nvmlDeviceGetVbiosVersion": "92.00.68.00.01",
            "nvmlDeviceGetMaxPcieLinkGeneration": 4,
            "nvmlDeviceGetPowerManagementDefaultLimit": 300000,
            "nvmlDeviceGetPowerManagementLimit": 250000,
            "nvmlDeviceGetEccMode": [1, 1],
            "nvmlSystemGetDriverVersion": "550.54.15",
            "nvmlSystemGetCudaDriverVersion_v2": 12040,
        }
        if name not in answers:
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            if name == "nvmlDeviceGetMigMode":
                raise self.NVMLError("Not Supported")
            return answers[name]

        return call


def test_nvidias_boards_are_machine_and_their_settings_configuration(tree: Tree) -> None:
    library = FakeNvml()
    found = collect(system=System.recorded(tree(SERVER)), load_nvml=lambda: library)
    board = {
        "name": "NVIDIA A100-PCIE-80GB",
        "memory_gib": 80.0,
        "vbios": "92.00.68.00.01",
        "pcie_generation": 4,
        "default_power_limit_w": 300.0,
    }
    assert found.machine["graphics"] == [board, board]
    settings = found.configuration["drivers"]["nvidia_settings"]
    assert settings["boards"] == [{"power_limit_w": 250.0, "ecc": True}] * 2
    assert (settings["driver"], settings["cuda"]) == ("550.54.15", "12.4")
    assert library.opened == 0


def test_a_machine_without_nvidias_driver_tells_nothing_of_it(tree: Tree) -> None:
    def missing() -> Any:
        raise ImportError("no pynvml")

    assert "graphics" not in collect(system=System.recorded(tree(SERVER)), load_nvml=missing).machine


def test_what_the_kernel_lists_as_graphics(tree: Tree) -> None:
    root = tree(
        {
            "sys/class/drm/card0/device/vendor": "0x8086",
            "sys/class/drm/card0/device/device": "0x56a0",
            "sys/class/drm/card0-HDMI-A-1/status": "connected",
            "sys/class/accel/accel0/device/vendor": "0x8086",
            "sys/class/accel/accel0/device/device": "0x7d1d",
            "sys/module/amdgpu/version": "6.7.0",
            "sys/module/i915/refcnt": "3",
            "opt/rocm/.info/version": "6.1.2-119\n",
        }
    )
    (root / "sys/bus/pci/drivers/i915").mkdir(parents=True)
    (root / "sys/class/drm/card0/device/driver").symlink_to(root / "sys/bus/pci/drivers/i915")
    system = System.recorded(root)
    assert devices(system) == [
        {"vendor": "0x8086", "device": "0x56a0", "driver": "i915", "count": 1},
        {"vendor": "0x8086", "device": "0x7d1d", "count": 1},
    ]
    assert drivers(system) == {"amdgpu": "6.7.0", "i915": "of the kernel", "rocm": "6.1.2-119"}


def test_each_interpreter_is_asked_for_its_own_software(tmp_path: Path) -> None:
    found = collect(runtimes={"tflite": Path(sys.executable), "openvino": tmp_path / "none"}).configuration["software"]
    assert found["tflite"]["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert found["tflite"]["packages"]["numpy"] == found["default"]["packages"]["numpy"]
    assert found["openvino"] == {"unknown": "its interpreter does not answer"}


def test_two_builds_of_one_version_differ_in_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.environment.software import packages

    info = tmp_path / "onnxruntime_gpu-1.20.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.20.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    seen = []
    for hashed, compiled in (("aaa", "x"), ("aaa", "y"), ("bbb", "x")):
        lines = (
            f"onnxruntime/capi.so,sha256={hashed},9\nonnxruntime/__pycache__/a.pyc,{compiled},\n../bin/t,{compiled},1\n"
        )
        (info / "RECORD").write_text(lines + f"onnxruntime_gpu-1.20.0.dist-info/INSTALLER,sha256={compiled},4\n")
        seen.append(packages()["onnxruntime-gpu"])
    assert seen[0] == seen[1] != seen[2]  # bytecode and the installer's notes are no part of the build
    assert seen[0]["version"] == "1.20.0"
