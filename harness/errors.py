"""The error tree above the backends. Every error says what happened, why, and what to do.

WeighbridgeError
├── UsageError        the user asked for something that does not exist or cannot be meant (exit 2)
│   └── SuiteError    a suite or workload file is wrong: file, line, allowed values
├── ModelError        a model or dataset file cannot be had or is not what it should be
├── RecordError       a run record, or one of its blobs, is not valid
├── StoreError        a database or the ingest API refused or failed
├── TransportError    SSH or HTTP: the other side cannot be reached, or is not who it should be
└── NotDone           what was asked for does not hold (exit 1)

`backends.base.BackendError` is the tree of the ground floor, which imports no other room.
"""

from __future__ import annotations


class WeighbridgeError(Exception):
    """An error for a person: one sentence of what and why, and a way out."""

    exit_code = 1

    def __init__(self, what: str, fix: str = "") -> None:
        self.what = what
        self.fix = fix
        super().__init__(f"{what} {fix}".strip())


class UsageError(WeighbridgeError):
    """The command line or a configuration file asks for something that cannot be meant."""

    exit_code = 2


class SuiteError(UsageError):
    """A suite or workload file is wrong; the text names file, line and the allowed values."""


class ModelError(WeighbridgeError):
    """A model or dataset file cannot be had, or is not what its digest says."""


class RecordError(WeighbridgeError):
    """A run record, or a blob that belongs to it, is not valid."""


class StoreError(WeighbridgeError):
    """A store (database or ingest API) refused or failed."""


class TransportError(WeighbridgeError):
    """The other side of an SSH or HTTP connection cannot be reached, or is not who it should be."""


class NotDone(WeighbridgeError):
    """What was asked for does not hold: a regression, a failed case, a run still to be sent."""
