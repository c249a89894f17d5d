"""Run every benchmark of the product's own speed: `make bench`. Ratios within one run, so that any machine may be busy."""

from __future__ import annotations

from benchmarks import start_up


def main() -> None:
    """Print each benchmark's table."""
    start_up.main()


if __name__ == "__main__":
    main()
