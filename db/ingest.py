"""Storing a run: strict reading, one transaction, and the same bytes twice are one run."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from harness.documents import Bundle, Receipt, read_run
from harness.errors import RecordError, StoreError
from harness.records import Run, SampleBlob

if TYPE_CHECKING:
    from sqlalchemy import Engine

MAX_BLOB_BYTES = 256 * 1024 * 1024  # of one blob, packed and unpacked
NANOSECONDS = 8  # bytes of one int64


def ingest(engine: Engine, bundle: Bundle) -> Receipt:
    """Store `bundle` in one transaction and say whether it was new.

    The record is read strictly and kept as received. Every blob that the record names must be in the bundle or already in
    the store, with the right SHA-256. Raises RecordError for a bundle that is not what it says, StoreError when the
    store refuses, most of all when it holds another content under the same run id; then nothing was stored.
    """
    from sqlalchemy import select

    from db.rows import RowWriter
    from db.schema import Run as RunRow
    from db.transactions import writing

    run = read_run(bundle.record)
    started, finished = _check_record(run, bundle.record)
    named = blobs_of(run)
    _check_blobs(named, bundle)
    with writing(engine) as session:
        known = session.execute(select(RunRow.record_sha256).where(RunRow.run_id == run.run_id)).scalar_one_or_none()
        if known is not None:
            if known != bundle.sha256:
                raise StoreError(
                    f"The store holds another record under the run id {run.run_id}; this one was not stored.",
                    "A run's id is made once: give a changed record a new one.",
                )
            return Receipt(run.run_id, known, new=False)
        writer = RowWriter(session, received_at=datetime.now(UTC))
        writer.store_blobs(list(named), bundle.blobs)
        writer.store_run(run, bundle, started, finished, zlib.compress(bundle.record, 6))
    return Receipt(run.run_id, bundle.sha256, new=True)


def blobs_of(run: Run) -> dict[str, SampleBlob | None]:
    """Every blob that the record names, by digest; None where only an accuracy names it, without a size.

    Raises RecordError when one digest is described in two ways.
    """
    named: dict[str, SampleBlob | None] = {}
    for measurement in run.measurements:
        for trial in measurement.trials:
            for blob in trial.samples:
                other = named.get(blob.sha256) or blob
                named[blob.sha256] = other
                if (other.bytes, other.count) != (blob.bytes, blob.count):
                    raise RecordError(f"The run record describes the blob {blob.sha256} in two ways.")
        if measurement.accuracy is not None and measurement.accuracy.predictions is not None:
            named.setdefault(measurement.accuracy.predictions, None)
    return named


def moment(text: str, what: str) -> datetime:
    """Read an RFC 3339 moment. Raises RecordError where it is none or has no time zone."""
    try:
        value = datetime.fromisoformat(text)
    except ValueError as error:
        raise RecordError(f"The run record is not valid: {what} is {text!r}, which is not an RFC 3339 time.") from error
    if value.tzinfo is None:
        raise RecordError(f"The run record is not valid: {what} is {text!r}, which has no time zone.")
    return value.astimezone(UTC)


def _check_record(run: Run, record: bytes) -> tuple[datetime, datetime | None]:
    """What the types alone cannot say. Returns start and end."""
    for what, text in (("run_id", run.run_id), ("device.uuid", run.device.uuid)):
        try:
            canonical = str(UUID(text))
        except ValueError as error:
            raise RecordError(f"The run record is not valid: {what} is {text!r}, which is not a UUID.") from error
        if canonical != text:
            raise RecordError(f"The run record is not valid: {what} must be written as {canonical}.")
    if rb"\u0000" in record:
        raise RecordError("The run record is not valid: a text in it holds a NUL character.")
    identifiers = [measurement.measurement_id for measurement in run.measurements]
    if len(set(identifiers)) != len(identifiers):
        raise RecordError("The run record is not valid: two of its measurements have the same measurement_id.")
    if not run.device.name.strip():
        raise RecordError("The run record is not valid: device.name is empty.")
    started = moment(run.started_at, "started_at")
    finished = moment(run.finished_at, "finished_at") if run.finished_at is not None else None
    if finished is not None and finished < started:
        raise RecordError("The run record is not valid: it finished before it started.")
    return started, finished


def _check_blobs(named: dict[str, SampleBlob | None], bundle: Bundle) -> None:
    from harness.canonical import sha256_hex

    for digest, data in bundle.blobs.items():
        if digest not in named:
            raise RecordError(f"The bundle holds a blob {digest} that its record does not name.")
        if len(data) > MAX_BLOB_BYTES:
            raise RecordError(f"The blob {digest} has {len(data)} bytes; at most {MAX_BLOB_BYTES} are accepted.")
        if sha256_hex(data) != digest:
            raise RecordError(f"The blob {digest} arrived with another content than its name says.", "Send it again.")
        blob = named[digest]
        if blob is None:
            continue
        if len(data) != blob.bytes:
            raise RecordError(f"The blob {digest} has {len(data)} bytes, the record says {blob.bytes}.")
        if blob.what.endswith("_ns"):
            _check_nanoseconds(digest, data, blob.count)


def _check_nanoseconds(digest: str, data: bytes, count: int) -> None:
    """The blob must unpack to exactly `count` int64; unpacking stops there, so that a bomb costs nothing."""
    size = count * NANOSECONDS
    if not 0 <= size <= MAX_BLOB_BYTES:
        raise RecordError(f"The blob {digest} is said to hold {count} samples; that is too many.")
    unpacker = zlib.decompressobj()
    try:
        unpacked = len(unpacker.decompress(data, size + 1))
    except zlib.error as error:
        raise RecordError(f"The blob {digest} is not zlib data ({error}).") from error
    if unpacked != size or not unpacker.eof or unpacker.unused_data:
        raise RecordError(f"The blob {digest} does not hold the {count} samples that the record says.")
