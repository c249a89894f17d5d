"""Send finished runs over HTTP to `weigh serve`. A run leaves the spool only when the store has acknowledged its digest.

Redirects are not followed, because the token would go along; TLS certificates are verified. Faults that pass (no
connection, a server that restarts) are tried again with growing pauses; everything else is reported at once.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agents.device.credentials import read_token
from agents.device.spool import Spool, run_id_of
from harness.documents import Bundle, Receipt, Sink
from harness.errors import StoreError, TransportError, UsageError, WeighbridgeError

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

ATTEMPTS = 4
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
_PASSING_STATUS = (429, 502, 503, 504)


class AccessRefused(StoreError):
    """The server does not accept the token; no other run will fare better with it."""


class _PassingFault(Exception):
    """Something that may work in a moment."""


@dataclass(frozen=True)
class Delivery:
    """What became of one run: `receipt` when the store has it, else `reason`."""

    run_id: str
    receipt: Receipt | None = None
    reason: str | None = None


class HttpSink:
    """The ingest API of a `weigh serve` as a Sink. One connection is kept for all runs."""

    def __init__(self, url: str, token: str, attempts: int = ATTEMPTS, transport: httpx.BaseTransport | None = None):
        import httpx

        self.url = url.rstrip("/")
        self._attempts = attempts
        self._limit: int | None = None
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(60.0, connect=10.0),
            follow_redirects=False,
            transport=transport,
        )

    def store(self, bundle: Bundle) -> Receipt:
        """Send one bundle; returns the server's receipt for exactly these bytes.

        Asks first whether the run is there already: that costs little, checks the token before megabytes travel, and
        makes sending again after a lost answer cheap. Raises TransportError (cannot be reached), AccessRefused (token),
        StoreError (refused); then the server holds nothing new, or exactly this run.
        """
        run_id = run_id_of(bundle.record)
        held = self._ask("GET", f"/v1/runs/{run_id}")
        if held.status_code == 200 and (receipt := _receipt(held)) and receipt.sha256 == bundle.sha256:
            return Receipt(receipt.run_id, receipt.sha256, False)
        if held.status_code not in (200, 404):
            raise self._refusal(held)
        size = len(bundle.record) + sum(len(data) for data in bundle.blobs.values())
        if size > self._body_limit():
            raise StoreError(
                f"The run {run_id} has {size} bytes; {self.url} accepts at most {self._body_limit()}.",
                "Raise its `--max-mb`, or split the suite.",
            )
        parts: list[tuple[str, tuple[str, bytes, str]]] = [("run", ("run.json", bundle.record, "application/json"))]
        parts += [(name, (name, data, "application/octet-stream")) for name, data in sorted(bundle.blobs.items())]
        answer = self._ask("POST", "/v1/runs", files=parts)
        if answer.status_code not in (200, 201):
            raise self._refusal(answer)
        receipt = _receipt(answer)
        if receipt is None or receipt.run_id != run_id or receipt.sha256 != bundle.sha256:
            raise StoreError(f"{self.url} did not acknowledge the bytes that were sent for run {run_id}.")
        return receipt

    def close(self) -> None:
        self._client.close()

    def _body_limit(self) -> int:
        if self._limit is None:
            answer = self._ask("GET", "/v1/health")
            try:
                self._limit = int(answer.json()["limits"]["body_bytes"])
            except (ValueError, KeyError, TypeError) as error:
                raise StoreError(
                    f"{self.url} does not answer like a `weigh serve`.", "Is the address right?"
                ) from error
        return self._limit

    def _ask(self, method: str, path: str, **content: Any) -> httpx.Response:
        import tenacity

        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self._attempts),
            wait=tenacity.wait_exponential(FIRST_PAUSE_S, LONGEST_PAUSE_S) + tenacity.wait_random(0, FIRST_PAUSE_S),
            retry=tenacity.retry_if_exception_type(_PassingFault),
            reraise=True,
        )
        try:
            return retrying(self._ask_once, method, path, **content)
        except _PassingFault as fault:
            raise TransportError(f"{self.url} cannot be reached: {fault}.") from fault

    def _ask_once(self, method: str, path: str, **content: Any) -> httpx.Response:
        import httpx

        try:
            answer = self._client.request(method, self.url + path, **content)
        except httpx.TransportError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise TransportError(
                    f"{self.url} shows a certificate that cannot be verified ({error}).",
                    "For a certificate authority of your own, set SSL_CERT_FILE to its certificate.",
                ) from error
            raise _PassingFault(_why(error)) from error
        except httpx.InvalidURL as error:
            raise UsageError(f"{self.url!r} is not an address: {error}.") from error
        if answer.status_code in _PASSING_STATUS:
            raise _PassingFault(f"it answered {answer.status_code} {_message(answer)}".strip())
        return answer

    def _refusal(self, answer: httpx.Response) -> WeighbridgeError:
        if answer.is_redirect:
            return StoreError(
                f"{self.url} answered with a redirect to {answer.headers.get('location', '?')!r}, which is not followed: "
                "the token would go along.",
                "If that is the right server, give its address.",
            )
        said = _message(answer) or f"status {answer.status_code}."
        if answer.status_code == 401:
            return AccessRefused(f"{self.url} refused the token: {said}")
        return StoreError(f"{self.url} refused the run: {said}")


def open_sink(url: str, token_file: Path | None = None, attempts: int = ATTEMPTS) -> HttpSink:
    """Open the ingest API at an http(s) address. Raises UsageError for a wrong address or a missing token."""
    try:
        parts = urlsplit(url)
        host, secret = parts.hostname, parts.username or parts.password
    except ValueError as error:
        raise UsageError(f"The server's address is not valid: {error}.") from error
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise UsageError(f"{url!r} is not the address of a `weigh serve`.", "It looks like https://host:8787.")
    if secret:
        raise UsageError(
            "The server's address holds a password; addresses are logged.", "Keep the token in a file with mode 0600."
        )
    if parts.scheme == "http" and not _is_loopback(host):
        log.warning("The token travels unencrypted to %s; use https.", host)
    return HttpSink(url, read_token(f"{parts.scheme}://{parts.netloc}", token_file), attempts)


def deliver(
    spool: Spool, sink: Sink, run_ids: list[str], seen: Callable[[], None] = lambda: None
) -> Iterator[Delivery]:
    """Send the named runs one by one; each leaves the spool only after its acknowledgement.

    A run that is damaged or refused does not stop the others. When the server cannot be reached or refuses the token, the
    rest is reported as not tried: waiting for each of them again would only take longer.
    """
    stop: str | None = None
    for run_id in run_ids:
        if stop is not None:
            yield Delivery(run_id, reason=f"not tried: {stop}")
            continue
        try:
            bundle = spool.load(run_id)
            receipt = sink.store(bundle)
            if receipt.sha256 != bundle.sha256:
                raise StoreError(f"The store acknowledged other bytes than those of run {run_id}.")
            spool.remove(run_id)
            yield Delivery(run_id, receipt=receipt)
        except (TransportError, AccessRefused) as error:
            stop = error.what
            yield Delivery(run_id, reason=str(error))
        except WeighbridgeError as error:
            yield Delivery(run_id, reason=str(error))
        seen()


def _why(error: Exception) -> str:
    """The reason without the number that the system gives it."""
    return re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _receipt(answer: httpx.Response) -> Receipt | None:
    try:
        found = answer.json()
        return Receipt(str(found["run_id"]), str(found["sha256"]), bool(found["new"]))
    except (ValueError, KeyError, TypeError):
        return None


def _message(answer: httpx.Response) -> str:
    """The server's own sentence, shortened and without control characters: it ends up on a terminal."""
    try:
        error = json.loads(answer.content[:65536])["error"]
        text = f"{error['message']} {error.get('fix') or ''}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    return "".join(character for character in text if character.isprintable())[:500].strip()
