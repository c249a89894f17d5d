"""Records at the doors: strict reading of run records (pydantic over the dataclasses), and their bundle with blobs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Protocol

from harness.canonical import canonical_json, sha256_hex
from harness.errors import RecordError
from harness.records import SCHEMA, Run

MAX_RECORD_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Bundle:
    """A run record exactly as it was written, and the blobs it names by SHA-256. This is what travels and is hashed."""

    record: bytes
    blobs: dict[str, bytes] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        return sha256_hex(self.record)


@dataclass(frozen=True)
class Receipt:
    """What a store answers: which run it holds now, and whether this call brought it."""

    run_id: str
    sha256: str
    new: bool


class Sink(Protocol):
    """Where finished runs go. Storing the same bundle twice is one run; another content under the same id is refused."""

    def store(self, bundle: Bundle) -> Receipt:
        """Store in one transaction. Raises StoreError or RecordError; then nothing was stored."""
        ...


def write_run(run: Run) -> bytes:
    """Serialise a run record. Raises RecordError for NaN and infinities."""
    document = asdict(run)
    for measurement in document["measurements"]:
        cold = measurement["cold_start_ms"]
        if cold is not None:
            cold["import"] = cold.pop("import_")
    try:
        return canonical_json(document)
    except ValueError as error:
        raise RecordError(f"The run record holds a number that is not finite ({error}).") from error


def read_run(data: bytes) -> Run:
    """Read a run record strictly: unknown fields, wrong types, NaN, newer schemas are refused with RecordError."""
    if len(data) > MAX_RECORD_BYTES:
        raise RecordError(f"The run record has {len(data)} bytes; at most {MAX_RECORD_BYTES} are accepted.")
    try:
        document = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"The run record is not valid JSON: {error}.") from error
    return validate_run(document)


def validate_run(document: Any) -> Run:
    """Turn a decoded JSON document into a Run. Raises RecordError that names the first wrong field."""
    from pydantic import ValidationError

    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise RecordError(
            f"The run record has schema {schema!r}; this version reads {SCHEMA!r}.",
            "Update weighbridge on this side." if str(schema) > SCHEMA else "",
        )
    for measurement in _measurements(document):
        cold = measurement.get("cold_start_ms")
        if isinstance(cold, dict) and "import" in cold:
            measurement["cold_start_ms"] = {("import_" if k == "import" else k): v for k, v in cold.items()}
    try:
        text = json.dumps(document, allow_nan=False)  # 1e999 is a JSON number, and infinite once it is read
    except ValueError as error:
        raise RecordError("The run record is not valid: a number in it is too large.") from error
    try:
        run: Run = _adapter().validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the record"
        raise RecordError(f"The run record is not valid: {where}: {first['msg']}.") from error
    for position, found in enumerate(run.measurements):
        if found.case.key != found.case_key:
            raise RecordError(f"The run record is not valid: measurements.{position}.case_key does not fit its case.")
    return run


def _measurements(document: dict[str, Any]) -> list[dict[str, Any]]:
    found = document.get("measurements")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


@cache
def _adapter() -> Any:
    """A validator over the dataclasses that forbids unknown fields, built once."""
    from pydantic import ConfigDict, TypeAdapter

    from harness import records

    for kind in vars(records).values():
        if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__"):
            # mypy is told off: a dataclass does not declare the attribute that pydantic looks for.
            kind.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)  # type: ignore[attr-defined]
    return TypeAdapter(Run)
