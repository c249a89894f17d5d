"""The environment of a run: machine and configuration (these make its digest), and passing conditions beside them."""

from harness.environment.collecting import collect
from harness.environment.firmware import board_name
from harness.environment.limits import hypervisor
from harness.environment.processor import cpu_name

__all__ = ["board_name", "collect", "cpu_name", "hypervisor"]
