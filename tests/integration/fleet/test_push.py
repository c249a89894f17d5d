"""`weigh push` against a real server that is down, wrong, killed in the middle, or right."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from sqlalchemy import func, select

from agents.device.push import AccessRefused, HttpSink, deliver, open_sink
from agents.device.spool import Spool
from db.api.limits import Limits
from db.schema import Run
from harness.errors import StoreError, TransportError, UsageError
from harness.folders import config_dir, spool_dir


def runs(server) -> int:
    with server.engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(Run))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture
def spool() -> Spool:
    return Spool(spool_dir())


def test_pushed_runs_leave_the_spool_and_are_in_the_store(serve, make_bundle, weigh, spool) -> None:
    server = serve()
    ids = [spool.add(make_bundle("pi5")).run_id for _ in range(3)]
    done = weigh("push", "--to", server.url, "--json", WEIGHBRIDGE_TOKEN=server.token("pi5"))
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert sorted(item["run_id"] for item in outcome) == sorted(ids)
    assert all(item["sent"] and item["new"] for item in outcome)
    assert spool.pending() == []
    assert runs(server) == 3
    assert weigh("push", "--list").stdout == "Nothing waits in the spool.\n"
    reading = weigh("results", "--store", server.url)
    assert (reading.returncode, "can be written to only" in reading.stderr) == (2, True)


def test_sent_twice_is_one_run(serve, make_bundle, spool) -> None:
    server, bundle = serve(), make_bundle("pi5")
    sink = HttpSink(server.url, server.token("pi5"))
    assert sink.store(bundle).new is True
    assert sink.store(bundle).new is False
    assert runs(server) == 1


def test_a_server_that_is_down_keeps_everything_and_exits_1(make_bundle, weigh, spool) -> None:
    ids = {spool.add(make_bundle("pi5")).run_id for _ in range(2)}
    done = weigh("push", "--to", f"http://127.0.0.1:{free_port()}", "--attempts", "2", WEIGHBRIDGE_TOKEN="wb_x")
    assert done.returncode == 1
    assert all(run_id in done.stdout for run_id in ids)
    assert "cannot be reached" in done.stdout
    assert "2 of 2 runs were not sent" in done.stderr
    assert "Traceback" not in done.stderr
    assert set(spool.pending()) == ids


def test_a_wrong_token_stops_at_the_first_run_and_loses_nothing(serve, make_bundle, spool) -> None:
    server = serve()
    ids = [spool.add(make_bundle("pi5")).run_id for _ in range(2)]
    outcome = list(deliver(spool, HttpSink(server.url, "wb_000000000000_" + "A" * 43), ids))
    assert ["token" in item.reason for item in outcome] == [True, True]
    assert outcome[1].reason.startswith("not tried")
    assert len(spool.pending()) == 2


def test_another_devices_run_is_refused_and_the_rest_goes_on(serve, make_bundle, spool) -> None:
    server = serve()
    other, mine = spool.add(make_bundle("mac")).run_id, spool.add(make_bundle("pi5")).run_id
    outcome = {item.run_id: item for item in deliver(spool, HttpSink(server.url, server.token("pi5")), [other, mine])}
    assert "pi5" in outcome[other].reason
    assert outcome[mine].receipt.new is True
    assert spool.pending() == [other]


def test_a_damaged_entry_is_reported_and_the_rest_goes_on(serve, make_bundle, spool) -> None:
    server = serve()
    broken, whole = spool.add(make_bundle("pi5")).run_id, spool.add(make_bundle("pi5")).run_id
    (spool.path / broken / "run.json").write_bytes(b"{}")
    outcome = {item.run_id: item for item in deliver(spool, HttpSink(server.url, server.token("pi5")), [broken, whole])}
    assert "damaged" in outcome[broken].reason
    assert outcome[whole].receipt is not None
    assert len(spool.damaged()) == 1


def test_a_run_that_is_too_large_is_said_before_it_travels(serve, make_bundle) -> None:
    server = serve(Limits(body_bytes=1000))
    with pytest.raises(StoreError, match="accepts at most 1000"):
        HttpSink(server.url, server.token("pi5")).store(make_bundle("pi5"))
    assert runs(server) == 0


def test_a_push_that_is_killed_in_the_middle_is_finished_by_the_next(
    serve, make_bundle, weigh, spool, tmp_path
) -> None:
    """The process dies after the server has stored the run, before it hears so: the worst moment."""
    server = serve()
    run_id = spool.add(make_bundle("pi5")).run_id
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from agents.device import push; from agents.device.spool import Spool\n"
        "push._receipt = lambda answer: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sink = push.HttpSink(sys.argv[1], os.environ['WEIGHBRIDGE_TOKEN']); spool = Spool(Path(sys.argv[2]))\n"
        "list(push.deliver(spool, sink, spool.pending()))"
    )
    token = server.token("pi5")
    environment = {**os.environ, "WEIGHBRIDGE_TOKEN": token}
    died = subprocess.run([sys.executable, "-c", code, server.url, str(spool.path)], env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    assert runs(server) == 1
    assert spool.pending() == [run_id]
    done = weigh("push", "--to", server.url, WEIGHBRIDGE_TOKEN=token)
    assert (done.returncode, "there already" in done.stdout) == (0, True)
    assert spool.pending() == []
    assert runs(server) == 1


class Scripted(BaseHTTPRequestHandler):
    """A server that answers as its script says; it notes what it was asked."""

    script: list[tuple[int, dict[str, str], bytes]]
    asked: list[tuple[str, str | None]]

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((f"{self.command} {self.path}", self.headers.get("Authorization")))
        status, headers, body = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815 - names that http.server looks for

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def scripted(request: pytest.FixtureRequest):
    def start(*script: tuple[int, dict[str, str], bytes]):
        handler = type("Handler", (Scripted,), {"script": list(script), "asked": []})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        request.addfinalizer(server.server_close)
        request.addfinalizer(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}", handler

    return start


def test_a_redirect_is_not_followed_with_the_token(scripted, make_bundle) -> None:
    elsewhere, other = scripted((200, {}, b"{}"))
    url, _ = scripted((307, {"Location": f"{elsewhere}/v1/runs"}, b""))
    with pytest.raises(StoreError, match="redirect"):
        HttpSink(url, "wb_secret").store(make_bundle())
    assert other.asked == []


def test_a_passing_fault_is_tried_again(scripted, make_bundle) -> None:
    url, handler = scripted((503, {}, b""), (401, {}, b'{"error": {"message": "No.", "fix": ""}}'))
    with pytest.raises(AccessRefused, match=r"No\."):
        HttpSink(url, "wb_secret").store(make_bundle())
    assert len(handler.asked) == 2


def test_a_fault_that_stays_is_given_up(scripted, make_bundle) -> None:
    url, handler = scripted((503, {}, b""))
    with pytest.raises(TransportError, match="503"):
        HttpSink(url, "wb_secret", attempts=2).store(make_bundle())
    assert len(handler.asked) == 2


@pytest.mark.parametrize("body", [b"<html>hello", b"[]", b'{"run_id": "x", "sha256": "y", "new": true}'])
def test_an_acknowledgement_of_something_else_keeps_the_run(scripted, make_bundle, spool, body: bytes) -> None:
    url, _ = scripted((404, {}, b"{}"), (200, {}, b'{"limits": {"body_bytes": 1000000}}'), (201, {}, body))
    run_id = spool.add(make_bundle()).run_id
    (outcome,) = deliver(spool, HttpSink(url, "wb_secret"), [run_id])
    assert "did not acknowledge" in outcome.reason
    assert spool.pending() == [run_id]


def test_what_a_server_says_cannot_command_the_terminal(scripted, make_bundle) -> None:
    body = json.dumps({"error": {"message": "bad\x1b[2J" + "x" * 9000, "fix": ""}}).encode()
    url, _ = scripted((422, {}, body))
    with pytest.raises(StoreError) as caught:
        HttpSink(url, "wb_secret").store(make_bundle())
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_certificate_that_cannot_be_verified_is_refused(tmp_path: Path, make_bundle) -> None:
    import ssl
    from http.server import HTTPServer

    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    handler = type("Handler", (Scripted,), {"script": [(404, {}, b"")], "asked": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(TransportError, match="certificate"):
            HttpSink(f"https://127.0.0.1:{server.server_port}", "wb_secret").store(make_bundle())
        assert handler.asked == []
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_with_a_certificate_of_ones_own_authority(here, weigh, make_bundle, spool, tmp_path: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    store = f"sqlite:///{tmp_path / 'central.sqlite'}"
    token = here("serve", "token", "create", "pi5", "--store", store).stdout.strip()
    command = [sys.executable, "-m", "weigh", "serve", "--port", "0", "--store", store]
    command += ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        url = server.stderr.readline().split()[-1]
        assert url.startswith("https://127.0.0.1:")
        run_id = spool.add(make_bundle("pi5")).run_id
        refused = weigh("push", "--to", url, "--attempts", "1", WEIGHBRIDGE_TOKEN=token)
        assert (refused.returncode, "certificate that cannot be verified" in refused.stdout) == (1, True)
        assert spool.pending() == [run_id]
        trusted = weigh("push", "--to", url, WEIGHBRIDGE_TOKEN=token, SSL_CERT_FILE=str(tmp_path / "cert.pem"))
        assert (trusted.returncode, spool.pending()) == (0, []), trusted.stdout
    finally:
        server.kill()
        server.wait(10)


@pytest.mark.parametrize(
    "url", ["ftp://x", "https://", "http://user:secret@x", "http://x/?token=1", "http://[::1", "x"]
)
def test_an_address_that_cannot_be_meant_is_refused_without_repeating_secrets(url: str, monkeypatch) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_TOKEN", "wb_x")
    with pytest.raises(UsageError) as caught:
        open_sink(url)
    assert "secret" not in str(caught.value)


def test_plain_http_to_another_machine_is_warned_about(monkeypatch, caplog) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_TOKEN", "wb_x")
    open_sink("http://127.0.0.1:1")
    open_sink("https://bench.example.org")
    assert not caplog.records
    open_sink("http://bench.example.org")
    assert "unencrypted" in caplog.text


def test_a_token_file_that_others_can_read_is_refused(here, spool, make_bundle, tmp_path: Path) -> None:
    spool.add(make_bundle())
    file = tmp_path / "token"
    file.write_text("wb_secret\n")
    file.chmod(0o644)
    done = here("push", "--to", "http://127.0.0.1:9", "--token-file", str(file))
    assert done.returncode == 2
    assert "chmod 600" in done.stderr and "wb_secret" not in done.stderr
    file.chmod(0o600)
    done = here("push", "--to", f"http://127.0.0.1:{free_port()}", "--token-file", str(file), "--attempts", "1")
    assert "cannot be reached" in done.stdout
    assert "wb_secret" not in done.stdout + done.stderr


def test_without_a_token_the_way_to_one_is_said(monkeypatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    with pytest.raises(UsageError, match="weigh serve token create"):
        open_sink("https://bench.example.org")


def test_the_file_in_the_configuration_folder_is_found(serve, make_bundle, weigh, spool) -> None:
    server = serve()
    config_dir().mkdir(parents=True, exist_ok=True)
    file = config_dir() / "token"
    file.write_text(server.token("pi5") + "\n")
    file.chmod(0o600)
    spool.add(make_bundle("pi5"))
    done = weigh("push", WEIGHBRIDGE_STORE=server.url, PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring")
    assert (done.returncode, runs(server)) == (0, 1), done.stderr


def test_serve_and_its_tokens_on_the_command_line(here, make_bundle, spool, tmp_path: Path, monkeypatch) -> None:
    """The whole road as typed: make a token, start the server, push, list, revoke, be refused."""
    store = f"sqlite:///{tmp_path / 'central.sqlite'}"
    made = here("serve", "token", "create", "pi5", "--store", store)
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    monkeypatch.setenv("WEIGHBRIDGE_TOKEN", token)
    server = subprocess.Popen(
        [sys.executable, "-m", "weigh", "serve", "--port", "0", "--store", store], stderr=subprocess.PIPE, text=True
    )
    try:
        url = server.stderr.readline().split()[-1]
        spool.add(make_bundle("pi5"))
        assert here("push", "--to", url).returncode == 0
        listed = json.loads(here("serve", "token", "list", "--json", "--store", store).stdout)
        assert [(row["device"], row["revoked_at"]) for row in listed] == [("pi5", None)]
        assert listed[0]["last_used_at"] and listed[0]["device_uuid"] == str(uuid.uuid5(uuid.NAMESPACE_DNS, "pi5"))
        assert here("serve", "token", "revoke", listed[0]["token_id"], "--store", store).returncode == 0
        spool.add(make_bundle("pi5"))
        refused = here("push", "--to", url)
        assert (refused.returncode, "revoked" in refused.stdout) == (1, True)
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(10) in (0, 130, -2)
    assert "Traceback" not in server.stderr.read()
