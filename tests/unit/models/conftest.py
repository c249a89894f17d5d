"""A web server that behaves as told, and a package index that is a folder."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


@dataclass
class WebServer:
    """Serves `content` at every path; `ranges`: knows Range; `breaks`: bytes after which it hangs up, per request."""

    url: str = ""
    content: bytes = b""
    ranges: bool = True
    breaks: list[int] = field(default_factory=list)
    status: int = 200
    shift: int = 0  # answers a range that begins this much later than asked for
    seen: list[str | None] = field(default_factory=list)  # the Range header of each request


@pytest.fixture
def web_server() -> Iterator[WebServer]:
    """A real HTTP server on loopback."""
    behaviour = WebServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            behaviour.seen.append(asked)
            if behaviour.status != 200:
                self.send_error(behaviour.status)
                return
            start = 0
            if asked and behaviour.ranges:
                start = int(asked.removeprefix("bytes=").rstrip("-")) + behaviour.shift
                if start >= len(behaviour.content):
                    self.send_error(416)
                    return
                self.send_response(206)
                last = len(behaviour.content) - 1
                self.send_header("Content-Range", f"bytes {start}-{last}/{len(behaviour.content)}")
            else:
                self.send_response(200)
            body = behaviour.content[start:]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if behaviour.breaks:
                body = body[: behaviour.breaks.pop(0)]
            self.wfile.write(body)  # and closing: HTTP/1.0

        def log_message(self, format: str, *arguments: object) -> None:
            return None

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hangs up early is part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    behaviour.url = f"http://127.0.0.1:{server.server_port}/model.onnx"
    yield behaviour
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, dict[str, bytes]], Path]:
    """Make pip see one folder and nothing else; the function puts a wheel with these members into it."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    def put(name: str, version: str, members: dict[str, bytes]) -> Path:
        stem = f"{name.replace('-', '_')}-{version}"
        path = folder / f"{stem}-py3-none-any.whl"
        information = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }
        with zipfile.ZipFile(path, "w") as wheel:
            for member, data in members.items():
                wheel.writestr(member, data)
            for member, text in information.items():
                wheel.writestr(f"{stem}.dist-info/{member}", text)
        return path

    return put
