"""Suites: which workloads are measured how. TOML files, the product's own beside this module and users' own anywhere."""

from __future__ import annotations

from harness.suites.definition import AVAILABLE, RUNTIME_DEFAULT, Group, Suite
from harness.suites.reader import read_suite, suite_from, suite_names

__all__ = ["AVAILABLE", "RUNTIME_DEFAULT", "Group", "Suite", "read_suite", "suite_from", "suite_names"]
