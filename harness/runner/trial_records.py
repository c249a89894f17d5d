"""From a worker's outcome to the trial of the record, with its raw samples as blobs beside it."""

from __future__ import annotations

import zlib
from typing import cast

from harness.canonical import sha256_hex
from harness.judgement.steady_state import SteadyState
from harness.records import MeasurementStatus, SampleBlob, Trial, TrialKind
from harness.runner.cases import PlannedTrial
from harness.runner.trial_process import Outcome
from harness.worker.outputs import OUTPUTS

NANOSECONDS = "_ns"  # files of this ending hold eight bytes for each sample; others hold lines


def trial_of(trial: PlannedTrial, outcome: Outcome, steady: SteadyState | None, blobs: dict[str, bytes]) -> Trial:
    """Return the trial's record and put its raw samples, compressed, into `blobs` by digest.

    All samples are kept, those too that no figure uses because the trial had not settled: `discarded_unsteady` counts them.
    """
    samples = []
    for what, data in sorted(outcome.files.items()):
        if what == OUTPUTS:
            continue  # megabytes that are compared and then not asked for again; fidelity keeps what they said
        packed = zlib.compress(data, 6)
        digest = sha256_hex(packed)
        blobs[digest] = packed
        count = len(data) // 8 if what.endswith(NANOSECONDS) else data.count(b"\n")
        samples.append(SampleBlob(what, digest, count, len(packed)))
    document = outcome.document
    return Trial(
        trial_id=trial.job.trial_id,
        kind=cast(TrialKind, trial.job.kind),
        status=cast(MeasurementStatus, outcome.status),
        reason=outcome.reason,
        window_start_ns=document.get("window_start_ns"),
        window_end_ns=document.get("window_end_ns"),
        discarded_warmup=document.get("discarded_warmup"),
        throughput_per_s=document.get("throughput_per_s"),
        samples=tuple(samples),
        last_words=outcome.last_words,
        discarded_unsteady=steady.start if steady is not None else None,
        unsteady_reason=steady.reason if steady is not None else None,
        conditions=dict(document.get("conditions") or {}),
    )
