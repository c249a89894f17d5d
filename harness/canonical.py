"""Canonical JSON and content digests: the one way this project turns data into an identity."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Return `value` as canonical JSON: sorted keys, no spaces, UTF-8, explicit nulls.

    Raises ValueError for NaN and infinities, which have no place in a record.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of `value`."""
    return sha256_hex(canonical_json(value))
