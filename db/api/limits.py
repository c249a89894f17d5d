"""What the ingest API accepts at most, checked while the bytes arrive: nobody can fill its memory or disk."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.documents import MAX_RECORD_BYTES
from harness.errors import RecordError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEBIBYTE = 1024 * 1024
_CHUNK = 64 * 1024


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    body_bytes: int = 128 * MEBIBYTE
    record_bytes: int = MAX_RECORD_BYTES
    blobs: int = 10_000
    inflated_bytes: int = 1024 * MEBIBYTE  # all blobs of a run together, unpacked
    read_s: float = 300.0  # for the whole body: a client that trickles bytes does not hold a place for ever
    at_once: int = 4  # runs held in memory together


class BodyLimit:
    """ASGI middleware: refuses a body that is too large by its Content-Length, or while counting what arrives."""

    def __init__(self, app: ASGIApp, body_bytes: int) -> None:
        self._app = app
        self._body_bytes = body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with a `receive` that counts."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._body_bytes:
            from starlette.responses import JSONResponse

            text = self._text()
            answer = JSONResponse({"error": {"code": "too_large", "message": text, "fix": ""}}, 413)
            await answer(scope, receive, send)
            return
        received = 0

        async def counting() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._body_bytes:
                from starlette.exceptions import HTTPException

                raise HTTPException(413, self._text())
            return message

        await self._app(scope, counting, send)

    def _text(self) -> str:
        return f"The request is larger than {self._body_bytes} bytes."


def check_inflated(blobs: Mapping[str, bytes], limits: Limits) -> None:
    """Raise RecordError when the zlib blobs together unpack to more than allowed. Nothing large is ever held."""
    left = limits.inflated_bytes
    for digest, data in blobs.items():
        unpacker = zlib.decompressobj()
        rest = data
        try:
            while rest and not unpacker.eof:
                left -= len(unpacker.decompress(rest, _CHUNK))
                rest = unpacker.unconsumed_tail
                if left < 0:
                    raise RecordError(f"The blobs unpack to more than {limits.inflated_bytes} bytes.")
        except zlib.error as error:
            raise RecordError(f"The blob {digest} is not zlib data ({error}).") from error
