"""What every probe runs: y = x + x over a session that was really made, because importing a runtime proves nothing."""

from __future__ import annotations

import numpy as np

from backends.base import Report, Session, TargetUnsupported


def run_addition(session: Session, target: str) -> Report:
    """Run y = x + x, x float32[1,2], once, and return the session's report; the session is closed in every case.

    Raises TargetUnsupported where the answer is wrong, and what the session raises.
    """
    try:
        session.prepare(1)
        answer = session.infer(0, [np.array([[1.0, 2.0]], dtype=np.float32)])[0].tolist()
        report = session.report()
    finally:
        session.close()
    if answer != [[2.0, 4.0]]:
        raise TargetUnsupported(f"{target} computed 1 + 1 and 2 + 2 as {answer}.")
    return report
