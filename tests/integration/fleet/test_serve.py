"""The ingest API as devices and strangers meet it: a real uvicorn, real HTTP."""

from __future__ import annotations

import json
import re
import socket
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from db.api.limits import Limits
from db.api.tokens import revoke_token
from db.schema import Run, Token
from db.store import open_store
from harness.documents import Bundle


def post(server, bundle: Bundle, token: str | None) -> httpx.Response:
    files = [("run", ("run.json", bundle.record, "application/json"))]
    files += [(name, (name, data)) for name, data in bundle.blobs.items()]
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return httpx.post(f"{server.url}/v1/runs", files=files, headers=headers)


def runs(server) -> int:
    with server.engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(Run))


def test_a_run_is_stored_once_however_often_it_is_sent(serve, make_bundle, store_url: str) -> None:
    """On SQLite and on PostgreSQL."""
    server, bundle = serve(url=store_url), make_bundle("pi5")
    token = server.token("pi5")
    first, second = post(server, bundle, token), post(server, bundle, token)
    run_id = json.loads(bundle.record)["run_id"]
    assert (first.status_code, first.json()) == (201, {"run_id": run_id, "sha256": bundle.sha256, "new": True})
    assert (second.status_code, second.json()["new"]) == (200, False)
    assert runs(server) == 1


def test_another_record_under_the_same_id_is_refused(serve, make_bundle) -> None:
    server, run_id = serve(), str(uuid.uuid4())
    token = server.token("pi5")
    assert post(server, make_bundle("pi5", run_id=run_id), token).status_code == 201
    answer = post(server, make_bundle("pi5", run_id=run_id), token)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")
    assert runs(server) == 1


@pytest.mark.parametrize("wrong", [None, "x", "wb_000000000000_" + "A" * 43, "x" * 4000, "ü"])
def test_without_the_right_token_nothing_is_stored(serve, make_bundle, wrong: str | None) -> None:
    server = serve()
    server.token("pi5")
    headers = {} if wrong is None else {"Authorization": b"Bearer " + wrong.encode()}
    files = {"run": ("run.json", make_bundle("pi5").record)}
    answer = httpx.post(f"{server.url}/v1/runs", files=files, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert runs(server) == 0


def test_a_revoked_token_is_refused_at_once(serve, make_bundle) -> None:
    server = serve()
    token = server.token("pi5")
    assert post(server, make_bundle("pi5"), token).status_code == 201
    revoke_token(server.engine, token.split("_")[1])
    assert post(server, make_bundle("pi5"), token).status_code == 401


def test_the_store_holds_no_token_in_clear(serve) -> None:
    server = serve()
    token = server.token("pi5")
    with server.engine.connect() as connection:
        row = connection.execute(select(Token.__table__)).one()
    secret = token.split("_", 2)[2]
    assert all(secret not in str(value) for value in row)
    assert re.fullmatch("[0-9a-f]{64}", row.hash)


def test_a_token_pushes_only_its_own_device(serve, make_bundle) -> None:
    server = serve()
    token = server.token("pi5")
    answer = post(server, make_bundle("mac"), token)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert runs(server) == 0


def test_the_first_push_binds_the_token_to_the_uuid(serve, make_bundle, store_url: str) -> None:
    server = serve(url=store_url)
    token, mine, clone = server.token("pi5"), str(uuid.uuid4()), str(uuid.uuid4())
    assert post(server, make_bundle("pi5", mine), token).status_code == 201
    assert post(server, make_bundle("pi5", clone), token).status_code == 403  # another machine under the same name
    assert post(server, make_bundle("renamed", mine), token).status_code == 201  # the same machine under a new name
    assert runs(server) == 2


def test_a_new_token_cannot_claim_a_known_device_by_its_uuid(serve, make_bundle) -> None:
    server, theirs = serve(), str(uuid.uuid4())
    assert post(server, make_bundle("pi5", theirs), server.token("pi5")).status_code == 201
    answer = post(server, make_bundle("mallory", theirs), server.token("mallory"))
    assert answer.status_code == 403
    assert "pi5" in answer.json()["error"]["message"]
    # and the failed attempt has not bound it to anything
    assert post(server, make_bundle("mallory"), server.token("mallory")).status_code == 201


def test_imported_results_do_not_come_from_devices(serve, make_bundle) -> None:
    from harness.records import Source

    server = serve()
    bundle = make_bundle("pi5", source=Source("imported", "MLPerf Inference v3.0"))
    assert post(server, bundle, server.token("pi5")).status_code == 403


def test_a_receipt_is_shown_to_its_own_device_only(serve, make_bundle) -> None:
    server, bundle = serve(), make_bundle("pi5")
    mine, other = server.token("pi5"), server.token("mac")
    post(server, bundle, mine)
    address = f"{server.url}/v1/runs/{json.loads(bundle.record)['run_id']}"
    answer = httpx.get(address, headers={"Authorization": f"Bearer {mine}"})
    assert (answer.status_code, answer.json()["sha256"]) == (200, bundle.sha256)
    assert httpx.get(address, headers={"Authorization": f"Bearer {other}"}).status_code == 404
    assert httpx.get(address).status_code == 401


def with_blob(bundle: Bundle, name: str, data: bytes) -> Bundle:
    return Bundle(bundle.record, {**bundle.blobs, name: data})


@pytest.mark.parametrize(
    ("spoil", "status"),
    [
        (lambda b: Bundle(b"{", b.blobs), 422),
        (lambda b: Bundle(b.record.replace(b'"pi5"', b"NaN"), b.blobs), 422),
        (lambda b: Bundle(b.record[:-1] + b',"surprise":1}', b.blobs), 422),
        (lambda b: Bundle(b.record, {}), 422),
        (lambda b: Bundle(b.record, {name: data + b"x" for name, data in b.blobs.items()}), 422),
        (lambda b: with_blob(b, "not-a-digest", b"x"), 422),
        (lambda b: with_blob(b, "../../etc/passwd", b"x"), 422),
    ],
)
def test_what_is_not_a_whole_valid_bundle_is_refused_with_a_sentence(
    serve, make_bundle, spoil: Callable[[Bundle], Bundle], status: int
) -> None:
    server = serve()
    answer = post(server, spoil(make_bundle("pi5")), server.token("pi5"))
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"code", "message", "fix"}
    assert "Traceback" not in answer.text
    assert runs(server) == 0


def test_a_zlib_bomb_is_refused(serve, make_bundle) -> None:
    import hashlib

    server = serve(Limits(inflated_bytes=1_000_000))
    bomb = zlib.compress(bytes(50_000_000))
    assert len(bomb) < 60_000
    answer = post(server, with_blob(make_bundle("pi5"), hashlib.sha256(bomb).hexdigest(), bomb), server.token("pi5"))
    assert answer.status_code == 422
    assert "unpack" in answer.json()["error"]["message"]


def test_a_body_that_is_announced_too_large_is_refused_before_it_is_read(serve) -> None:
    server = serve(Limits(body_bytes=10_000))
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        head = f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token('pi5')}\r\n"
        connection.sendall(
            f"{head}Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 99999999\r\n\r\n".encode()
        )
        assert b" 413 " in connection.recv(4096).split(b"\r\n")[0]


def test_a_body_that_grows_too_large_is_cut_off(serve) -> None:
    server = serve(Limits(body_bytes=100_000))

    def endless():
        yield b'--b\r\nContent-Disposition: form-data; name="run"; filename="run.json"\r\n\r\n'
        for _ in range(40):
            yield b"x" * 10_000
        yield b"\r\n--b--\r\n"

    headers = {"Authorization": f"Bearer {server.token('pi5')}", "Content-Type": "multipart/form-data; boundary=b"}
    answer = httpx.post(f"{server.url}/v1/runs", content=endless(), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nowhere", 404), ("PUT", "/v1/runs", 405), ("GET", "/docs", 404)]
)
def test_every_error_has_the_same_shape(serve, method: str, path: str, status: int) -> None:
    answer = httpx.request(method, serve().url + path)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"code", "message", "fix"}


@pytest.mark.parametrize("body", [b"", b"--b\r\nbroken", b"--b\r\n\r\n\r\n--b--\r\n"])
def test_a_broken_body_is_a_client_error(serve, body: bytes) -> None:
    server = serve()
    headers = {"Authorization": f"Bearer {server.token('pi5')}", "Content-Type": "multipart/form-data; boundary=b"}
    answer = httpx.post(f"{server.url}/v1/runs", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_a_body_that_trickles_is_given_up(serve) -> None:
    server = serve(Limits(read_s=0.3))
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        head = f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token('pi5')}\r\n"
        connection.sendall(
            f"{head}Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 999\r\n\r\n--b".encode()
        )
        assert b" 408 " in connection.recv(4096).split(b"\r\n")[0]


def test_a_store_that_fails_is_said_without_its_inside(serve, make_bundle) -> None:
    server = serve()
    token = server.token("pi5")
    server.engine.dispose()
    for suffix in ("", "-wal", "-shm"):
        Path(server.store.removeprefix("sqlite:///") + suffix).write_bytes(b"not a database" * 1000)
    answer = post(server, make_bundle("pi5"), token)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_failed")
    assert "SELECT" not in answer.text and "Traceback" not in answer.text
    assert httpx.get(f"{server.url}/v1/health").status_code == 503


def test_health_names_the_limits(serve) -> None:
    answer = httpx.get(f"{serve(Limits(body_bytes=12345)).url}/v1/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    assert answer.json()["limits"]["body_bytes"] == 12345


def test_the_description_names_the_token_and_the_multipart_body(serve) -> None:
    document = httpx.get(f"{serve().url}/openapi.json").json()
    operation = document["paths"]["/v1/runs"]["post"]
    assert "multipart/form-data" in operation["requestBody"]["content"]
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert operation["security"] == [{"HTTPBearer": []}]


def test_a_name_that_two_devices_bear_needs_the_uuid(tmp_path: Path, make_bundle) -> None:
    from db.api.tokens import create_token
    from db.ingest import ingest
    from harness.errors import UsageError

    engine = open_store(f"sqlite:///{tmp_path / 'store.sqlite'}").engine
    one, two = str(uuid.uuid4()), str(uuid.uuid4())
    for device_uuid in (one, two):
        ingest(engine, make_bundle("pi5", device_uuid))
    with pytest.raises(UsageError, match="2 devices"):
        create_token(engine, "pi5")
    assert create_token(engine, two)[0].device_uuid == two
