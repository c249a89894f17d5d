"""Run the benchmarks of the product itself: `make bench`, or `python -m benchmarks NAME...` for some of them.

Each prints ratios within one run, so that any machine may be busy. None is a test: goals are said to hold in a run or not.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from backends.base import BackendError
from harness.errors import WeighbridgeError

NAMES = ("start_up", "overhead", "watching", "percentiles", "openvino_peer", "tflite_peer")


def main(arguments: list[str] | None = None) -> int:
    """Print each asked benchmark's table; 1 where one could not be taken."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="The product's own speed beside its peers."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(NAMES)}; all without a name")
    asked = parser.parse_args(arguments).names
    for name in asked:
        if name not in NAMES:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(NAMES)}")
    code = 0
    for name in asked or NAMES:
        try:
            importlib.import_module(f"benchmarks.{name}").main()
        except (BackendError, WeighbridgeError) as error:
            print(f"{name}: not measured. {error}", file=sys.stderr)
            code = 1
        print(flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
