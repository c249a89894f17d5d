"""Recorded systems as a kernel lays them out: a server and a Raspberry Pi 5. Each holds what must not be kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Tree = Callable[[Mapping[str, str | bytes]], Path]

SERIALS = (
    "10000000abcdef01",
    "SRV-SERIAL-77",
    "MEM-SERIAL-88",
    "8b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0",
    "dc:a6:32:01:02:03",
)

SERVER: dict[str, str | bytes] = {
    "proc/cpuinfo": "".join(
        f"""processor\t: {number}
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 106
model name\t: Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz
stepping\t: 6
microcode\t: 0xd0003b9
cpu MHz\t\t: {800 + number * 111}.123
flags\t\t: fpu vme sse4_1 avx avx2 fma avx512f avx512_vnni amx_none
bogomips\t: 4600.{number}0

"""
        for number in range(4)
    ),
    **{f"sys/devices/system/cpu/cpu{n}/topology/physical_package_id": str(n // 2) for n in range(4)},
    **{f"sys/devices/system/cpu/cpu{n}/topology/core_id": "0" for n in range(4)},
    **{f"sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": "0-1" if n < 2 else "2-3" for n in range(4)},
    **{f"sys/devices/system/cpu/cpu{n}/cache/index3/level": "3" for n in range(4)},
    **{f"sys/devices/system/cpu/cpu{n}/cache/index3/type": "Unified" for n in range(4)},
    **{f"sys/devices/system/cpu/cpu{n}/cache/index3/size": "61440K" for n in range(4)},
    **{f"sys/devices/system/cpu/cpu{n}/cache/index3/shared_cpu_list": "0-1" if n < 2 else "2-3" for n in range(4)},
    "sys/devices/system/node/node0/cpulist": "0-1",
    "sys/devices/system/node/node1/cpulist": "2-3",
    "sys/devices/system/cpu/vulnerabilities/meltdown": "Not affected\n",
    "sys/devices/system/cpu/vulnerabilities/spectre_v2": "Mitigation: Enhanced / Automatic IBRS\n",
    **{f"sys/devices/system/cpu/cpufreq/policy{n}/scaling_driver": "intel_pstate" for n in range(4)},
    **{f"sys/devices/system/cpu/cpufreq/policy{n}/scaling_governor": "powersave" for n in range(4)},
    **{
        f"sys/devices/system/cpu/cpufreq/policy{n}/energy_performance_preference": "balance_performance"
        for n in range(4)
    },
    **{f"sys/devices/system/cpu/cpufreq/policy{n}/cpuinfo_min_freq": "800000" for n in range(4)},
    **{f"sys/devices/system/cpu/cpufreq/policy{n}/cpuinfo_max_freq": "3400000" for n in range(4)},
    **{f"sys/devices/system/cpu/cpufreq/policy{n}/scaling_min_freq": "800000" for n in range(4)},
    **{f"sys/devices/system/cpu/cpufreq/policy{n}/scaling_max_freq": "3400000" for n in range(4)},
    **{f"sys/devices/system/cpu/cpufreq/policy{n}/related_cpus": str(n) for n in range(4)},
    **{f"sys/devices/system/cpu/cpu{n}/cpufreq/scaling_cur_freq": str(800000 + n * 100000) for n in range(4)},
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
    "sys/devices/system/cpu/intel_pstate/status": "active",
    "proc/meminfo": "MemTotal:       131785820 kB\nMemAvailable:   99000000 kB\nHugePages_Total:       0\n"
    "Hugepagesize:       2048 kB\nSwapTotal:       8388604 kB\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
    "sys/class/dmi/id/product_name": "PowerEdge R750\n",
    "sys/class/dmi/id/product_serial": "SRV-SERIAL-77\n",
    "sys/class/dmi/id/product_uuid": "8b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0\n",
    "sys/class/dmi/id/bios_version": "1.10.2\n",
    "sys/class/dmi/id/bios_date": "03/07/2023\n",
    # SMBIOS type 17: 16384 MiB at 0x0C, DDR4 (0x1A) at 0x12, 3200 MT/s at 0x15, configured 2933 at 0x20.
    "sys/firmware/dmi/entries/17-0/raw": bytes([17, 0x54, 0, 0])
    + bytes(8)
    + (16384).to_bytes(2, "little")
    + bytes(4)
    + b"\x1a"
    + bytes(2)
    + (3200).to_bytes(2, "little")
    + bytes(9)
    + (2933).to_bytes(2, "little")
    + b"\0MEM-SERIAL-88\0",
    "proc/sys/kernel/osrelease": "5.15.0-91-generic\n",
    "proc/sys/kernel/version": "#101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023\n",
    "proc/sys/kernel/hostname": "db-host-7\n",
    "etc/hostname": "db-host-7\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=8b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0 ro isolcpus=2-3 mitigations=off "
    "wg.key=hunter2 ip=10.0.0.7 quiet -- --token abc123",
    "boot/config-5.15.0-91-generic": "CONFIG_HZ=250\nCONFIG_PREEMPT_VOLUNTARY=y\n# CONFIG_PREEMPT is not set\n"
    "CONFIG_NO_HZ_IDLE=y\n",
    "etc/os-release": 'PRETTY_NAME="Ubuntu 22.04.3 LTS"\nID=ubuntu\nVERSION_ID="22.04"\n',
    "proc/self/status": "Name:\tpython3\nUid:\t1000\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1\n",
    "proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units\n"
    "Max locked memory         65536                unlimited            bytes\n"
    "Max open files            1024                 1048576              files     \n",
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5 2024\n",
    "sys/class/net/eno1/address": "dc:a6:32:01:02:03\n",
    "proc/loadavg": "0.12 0.30 0.25 1/700 4242\n",
    "proc/uptime": "86400.10 300000.00\n",
    "proc/stat": "cpu  100 0 100 700 0 0 0 100 0 0\ncpu0 100 0 100 700 0 0 0 100 0 0\n",
    "sys/class/thermal/thermal_zone0/type": "x86_pkg_temp",
    "sys/class/thermal/thermal_zone0/temp": "61000",
    "sys/class/thermal/thermal_zone0/trip_point_0_type": "passive",
    "sys/class/thermal/thermal_zone0/trip_point_0_temp": "77000",
    "sys/class/hwmon/hwmon0/name": "coretemp",
    "sys/class/hwmon/hwmon0/temp1_crit": "100000",
}

PI: dict[str, str | bytes] = {
    "proc/device-tree/model": b"Raspberry Pi 5 Model B Rev 1.0\0",
    "proc/device-tree/serial-number": b"10000000abcdef01\0",
    "proc/cpuinfo": "".join(
        f"""processor\t: {number}
BogoMIPS\t: 108.00
Features\t: fp asimd evtstrm aes pmull fphp asimdhp asimddp atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x4
CPU part\t: 0xd0b
CPU revision\t: 1

"""
        for number in range(4)
    )
    + "Revision\t: d04170\nSerial\t\t: 10000000abcdef01\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n",
    "proc/meminfo": "MemTotal:        8245696 kB\nMemAvailable:    7000000 kB\nSwapTotal:        204784 kB\n",
    "proc/device-tree/chosen/bootloader/version": b"2bb2ae640058a2f3aa8dcbdc2da33302e509668d\0",
    "proc/device-tree/chosen/bootloader/build-timestamp": (1726581033).to_bytes(4, "big"),
    "proc/device-tree/chosen/power/max_current": (5000).to_bytes(4, "big"),
    "sys/devices/system/cpu/cpufreq/policy0/scaling_driver": "cpufreq-dt",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "ondemand",
    "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq": "2400000",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "2400000",
    "sys/devices/system/cpu/cpufreq/policy0/related_cpus": "0 1 2 3",
    "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n',
    "etc/rpi-issue": "Raspberry Pi reference 2024-11-19\nGenerated using pi-gen\n",
    "sys/class/thermal/thermal_zone0/type": "cpu-thermal",
    "sys/class/thermal/thermal_zone0/temp": "48000",
    "sys/class/thermal/thermal_zone0/trip_point_0_type": "critical",
    "sys/class/thermal/thermal_zone0/trip_point_0_temp": "110000",
}
PI_OUTPUTS = {
    (
        "/usr/bin/vcgencmd",
        "get_config",
        "int",
    ): "arm_boost=1\narm_freq=2400\nforce_turbo=0\nhdmi_mode:0=4\ntotal_mem=8192\n",
    ("/usr/bin/vcgencmd", "get_throttled"): "throttled=0x0",
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Write files below a fresh root and return it."""
    made = [0]

    def write(files: Mapping[str, str | bytes]) -> Path:
        made[0] += 1
        root = tmp_path / f"root{made[0]}"
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return root

    return write
