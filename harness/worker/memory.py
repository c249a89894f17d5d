"""Peak memory of this process, from the system."""

from __future__ import annotations

import sys


def peak_rss_bytes() -> int | None:
    """Return the peak resident set in bytes, or None where the system does not tell.

    On Linux it is VmHWM, because getrusage's ru_maxrss starts with the parent's size at the fork.
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
            for line in lines:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux
    try:
        import resource
    except ImportError:
        return None  # Windows
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
