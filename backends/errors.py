"""The error tree of the ground floor, importable without numpy. Each error says what, why and how to fix it.

BackendError
├── RuntimeMissing       the runtime's package or a library it needs is not installed
├── TargetUnsupported    the runtime is here, the target cannot run on this machine
├── ModelRejected        the runtime cannot read or compile this artifact
├── OptionUnsupported    this runtime has no such option, or refuses its value
└── InferenceFailed      a request failed after the session was made
"""

from __future__ import annotations


class BackendError(Exception):
    """What happened and why, in one sentence, and how to fix it."""

    def __init__(self, what: str, fix: str = "") -> None:
        self.what = what
        self.fix = fix
        super().__init__(f"{what} {fix}".strip())


class RuntimeMissing(BackendError):
    """The runtime's package, or a library that it needs, is not installed."""


class TargetUnsupported(BackendError):
    """The runtime is installed, but this target cannot run on this machine."""


class ModelRejected(BackendError):
    """The runtime cannot read or compile this artifact."""


class OptionUnsupported(BackendError):
    """This runtime has no such option, or refuses the value."""


class InferenceFailed(BackendError):
    """A request failed after the session was made."""
