"""Downloads over HTTP that go on where they broke off: a `.part` file, Range requests, and the digest as the judge."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from harness.errors import ModelError
from harness.models.cache import sha256_of
from harness.models.progress import Progress, Step

MOST_BYTES = 4 << 30  # where no size is pinned, whatever the server announces
ATTEMPTS = 4  # in a row without a single new byte
PAUSE_S = 0.5  # doubled after each of them
_TIMEOUT_S = 30.0


def download(url: str, part: Path, sha256: str, size: int | None, progress: Progress, pause_s: float = PAUSE_S) -> None:
    """Fetch `url` into `part`, going on with what an earlier call left there, until its SHA-256 is right.

    A server that knows no ranges is read from the start. A resumed file with the wrong digest is fetched once more from the
    start, since the two halves may be of two versions. Raises ModelError that names file, source and both digests when
    the content is not what was pinned, and one that says what to do when the server cannot be reached.
    """
    name = url.rsplit("/", 1)[-1] or url
    resumed = part.exists() and part.stat().st_size > 0
    while True:
        with progress.step(f"Fetching {name}", size) as step:
            _complete(url, part, size, step, pause_s)
        found = sha256_of(part)
        if found == sha256:
            return
        part.unlink()
        if not resumed:
            raise wrong_hash(name, url, sha256, found)
        resumed = False


def wrong_hash(name: str, source: str, expected: str, found: str) -> ModelError:
    """Return the error for content that is not the pinned one."""
    return ModelError(
        f"{name} from {source} has SHA-256 {found}, but {expected} is pinned.",
        "The file was not used. It was changed at its source, or damaged on the way: try again, and if it stays so, report "
        "it, or give the file's true source.",
    )


def _complete(url: str, part: Path, size: int | None, step: Step, pause_s: float) -> None:
    """Request again and again until the whole body is there."""
    import httpx

    failures = 0
    step.advance(part.stat().st_size if part.exists() else 0)
    with httpx.Client(follow_redirects=True, timeout=_TIMEOUT_S) as client:
        while True:
            before = part.stat().st_size if part.exists() else 0
            try:
                if _request(client, url, part, size, step):
                    return
                reason = "the server closed the connection too early"
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
            except (httpx.InvalidURL, httpx.TooManyRedirects) as error:
                raise ModelError(f"{url} cannot be fetched: {error}.", "Correct the address.") from error
            grown = (part.stat().st_size if part.exists() else 0) > before
            failures = 0 if grown else failures + 1
            if failures >= ATTEMPTS:
                raise ModelError(
                    f"{url} cannot be fetched: {reason}.",
                    "Connect this machine to a network (HTTPS_PROXY is honoured), then try again: it goes on where it "
                    "stopped. Or fetch it on another machine with `weigh models fetch` and copy its cache folder here.",
                )
            time.sleep(pause_s * 2 ** max(failures - 1, 0))


def _request(client: Any, url: str, part: Path, size: int | None, step: Step) -> bool:
    """Make one request and append what comes. Returns whether the body is complete."""
    start = part.stat().st_size if part.exists() else 0
    if size is not None and start == size:
        return True
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == 416:  # what lies here is as long as the file, or longer: its digest will tell
            return True
        if response.status_code not in (200, 206):
            raise ModelError(
                f"{url} cannot be fetched: the server answers {response.status_code} {response.reason_phrase}.",
                "Check the address, or fetch the file by hand and name it with a file: source.",
            )
        if response.status_code == 206 and not _continues(response.headers.get("Content-Range", ""), start):
            part.unlink(missing_ok=True)  # the server sends another piece than was asked for
            return False
        append = response.status_code == 206
        if not append:
            start = 0
        length = response.headers.get("Content-Length", "")
        end = start + int(length) if length.isdigit() else None
        limit = size if size is not None else min(end or MOST_BYTES, MOST_BYTES)
        with part.open("ab" if append else "wb") as sink:
            for block in response.iter_raw():
                start += len(block)
                if start > limit:
                    raise ModelError(f"{url} gives more than the {limit} bytes that were expected; it was not used.")
                sink.write(block)
                step.advance(len(block))
        wanted = size if size is not None else end
        return wanted is None or start >= wanted


def _continues(content_range: str, start: int) -> bool:
    return content_range.startswith(f"bytes {start}-")
