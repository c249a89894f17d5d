"""Energy of one inference from an MLPerf summary and the analyser's log beside it. Pure."""

from __future__ import annotations

from db.importers.mlperf.power import busiest_window, read_power_log
from db.importers.mlperf.summary import Summary
from db.importers.mlperf.tree import SourceFile, reading
from harness.errors import RecordError
from harness.judgement import flags as flag_codes
from harness.records import Energy, Flag


def energy_of(power: SourceFile | None, summary: Summary) -> tuple[Energy, tuple[Flag, ...]]:
    """Energy of one inference from the analyser's log over the estimated window."""
    if power is None:
        return Energy(None, "The submission holds no power log for this result."), ()
    log = reading(power, read_power_log)
    length = test_length(summary)
    if length is None:
        return Energy(None, "The summary does not tell how long the test took, so the power log has no window."), ()
    duration_s, inferences = length
    try:
        window = busiest_window(log, duration_s)
    except RecordError as error:
        return Energy(None, f"The power log {power.location} was not used: {error.what}."), ()
    energy = Energy(
        per_inference_j=window.mean_w * duration_s / inferences,
        mean_w=window.mean_w,
        source="spec-ptdaemon",
        scope="wall",
        method="trapezoid",
        quality="estimated",
        samples=window.readings,
    )
    message = (
        f"The power log holds idle ends and nothing tells when the test ran: power is the mean of the {duration_s:.0f} s "
        f"with the highest draw, {window.mean_w:.2f} W; the whole log's mean is {log.mean_w:.2f} W."
    )
    return energy, (Flag(flag_codes.POWER_WINDOW_ESTIMATED, message),)


def test_length(summary: Summary) -> tuple[float, float] | None:
    """Seconds that the test took at least, and how many inferences it did in them. None where the summary does not tell.

    Queries one after the other take count x mean; LoadGen goes on for its minimum duration at least. Offline is one
    query of many samples at the printed rate. Server runs for its minimum duration at the completed rate.
    """
    shortest = summary.parameters.get("min_duration (ms)", 0) / 1000
    per_query = summary.parameters.get("samples_per_query", 0)
    if summary.scenario in {"single_stream", "multi_stream"} and summary.queries and summary.mean_ns and per_query:
        return max(summary.queries * summary.mean_ns / 1e9, shortest), summary.queries * per_query
    if summary.scenario == "offline" and summary.samples_per_second and per_query:
        return per_query / summary.samples_per_second, per_query
    if summary.scenario == "server" and summary.completed_per_second and shortest:
        return shortest, summary.completed_per_second * shortest
    return None
