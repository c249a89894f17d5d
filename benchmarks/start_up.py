"""How long a person waits for `weigh --version`, beside an interpreter that does nothing, interleaved in one run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 15
GOAL_IMPORT_MS = 200.0


def wall_ms(*arguments: str) -> float:
    """Wall milliseconds of one fresh interpreter with `arguments`."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return (time.perf_counter() - begin) * 1e3


def import_ms() -> float:
    """Cumulative milliseconds of all top-level imports of `weigh --version`, as -X importtime counts them."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "weigh", "--version"], check=True, capture_output=True, text=True
    )
    total_us = 0
    for line in done.stderr.splitlines():
        parts = line.removeprefix("import time:").split("|")
        if len(parts) == 3 and parts[0].strip().isdigit():
            total_us += int(parts[0])
    return total_us / 1e3


def main() -> None:
    """Print medians and their ratio."""
    bare, version = [], []
    for _ in range(ROUNDS):
        bare.append(wall_ms("-c", "pass"))
        version.append(wall_ms("-m", "weigh", "--version"))
    imports = statistics.median(import_ms() for _ in range(ROUNDS))
    print("start-up, median of", ROUNDS)
    print(f"  python -c pass      {statistics.median(bare):8.1f} ms")
    print(f"  weigh --version     {statistics.median(version):8.1f} ms")
    print(f"  ratio               {statistics.median(version) / statistics.median(bare):8.2f}")
    print(f"  imports (importtime){imports:8.1f} ms, goal below {GOAL_IMPORT_MS:.0f}")
