"""What else went on while a worker was timed, seen from the parent process."""

from harness.conditions.watching import INTERVAL_S, Watch, watch

__all__ = ["INTERVAL_S", "Watch", "watch"]
