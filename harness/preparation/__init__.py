"""A quiet machine on request, with everything put back on every way out; and its repair after a kill."""

from harness.preparation.preparing import QuietMachine, quiet
from harness.preparation.repairing import pending, repair

__all__ = ["QuietMachine", "pending", "quiet", "repair"]
