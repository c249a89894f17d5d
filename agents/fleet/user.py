"""Who is at the keyboard."""

from __future__ import annotations

import getpass


def user_name() -> str:
    """Return the login name; "unknown" where a container's user has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
