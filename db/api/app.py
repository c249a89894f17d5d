"""The FastAPI application behind `weigh serve`: store a run, give its receipt, say how it goes. Errors are JSON."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from db.api.limits import BodyLimit, Limits, check_inflated
from db.api.tokens import TokenRow, authenticate, authorize_run
from db.ingest import ingest
from db.schema import Device, Run, Token
from db.store import open_store
from db.transactions import reading
from harness.canonical import sha256_hex
from harness.documents import Bundle, Receipt, read_run
from harness.errors import RecordError, StoreError, WeighbridgeError

log = logging.getLogger(__name__)

_DIGEST = re.compile(r"[0-9a-f]{64}")
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
_BODY = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["run"],
                "properties": {"run": {"type": "string", "format": "binary", "description": "The run record's bytes."}},
                "additionalProperties": {
                    "type": "string",
                    "format": "binary",
                    "description": "A blob; the part is named by the SHA-256 of its bytes.",
                },
            }
        }
    },
}
_ERROR = {
    "description": "A sentence for a person.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["error"],
                "properties": {
                    "error": {
                        "type": "object",
                        "required": ["code", "message", "fix"],
                        "properties": {name: {"type": "string"} for name in ("code", "message", "fix")},
                    }
                },
            }
        }
    },
}
_ERRORS: dict[int | str, dict[str, Any]] = dict.fromkeys((400, 401, 403, 404, 408, 409, 413, 422, 503), _ERROR)


class Refused(Exception):
    """An answer that ends the request."""

    def __init__(self, status: int, code: str, message: str, fix: str = "") -> None:
        self.status, self.code, self.message, self.fix = status, code, message, fix
        super().__init__(message)


_bearer = HTTPBearer(auto_error=False, description="A token from `weigh serve token create DEVICE`.")


async def token_holder(
    request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> TokenRow:
    """Return the row of the request's token. Raises Refused (401) before anything of the body is read."""
    token = await run_in_threadpool(authenticate, request.app.state.engine, given.credentials) if given else None
    if token is None:
        what = "The token is not known or was revoked." if given else "A token is needed: Authorization: Bearer."
        raise Refused(401, "unauthorized", what, "Make one with `weigh serve token create DEVICE`.")
    return token


Holder = Annotated[TokenRow, Depends(token_holder)]


def create_app(store: str | Engine, limits: Limits | None = None) -> FastAPI:
    """Make the application over a store's address (opened, and migrated if needed) or an engine that is open already."""
    limits = limits or Limits()
    engine = _engine(store)
    # The pages that FastAPI would serve for its documentation load scripts from elsewhere; /openapi.json stays.
    app = FastAPI(title="Weighbridge ingest API", version=_version(), docs_url=None, redoc_url=None)
    app.add_middleware(BodyLimit, body_bytes=limits.body_bytes)
    _answer_errors_as_json(app)
    places = asyncio.Semaphore(limits.at_once)
    app.state.engine = engine

    @app.get("/v1/health", responses={503: _ERROR})
    def health() -> dict[str, Any]:
        """Say that the service and its store work, and what it accepts at most."""
        _ping(engine)
        return {
            "service": "weighbridge",
            "status": "ok",
            "version": _version(),
            "limits": {
                "body_bytes": limits.body_bytes,
                "record_bytes": limits.record_bytes,
                "blobs": limits.blobs,
                "inflated_bytes": limits.inflated_bytes,
            },
        }

    @app.get("/v1/runs/{run_id}", responses=_ERRORS)
    def receipt(run_id: str, token: Holder) -> dict[str, Any]:
        """Give the receipt of a run of the token's device that the store holds."""
        held = _held(engine, run_id, token)
        if held is None:
            raise Refused(404, "not_found", f"The store has no run {run_id!r} of this token's device.")
        return _as_json(held)

    @app.post(
        "/v1/runs", responses={201: {"description": "Stored now."}, **_ERRORS}, openapi_extra={"requestBody": _BODY}
    )
    async def store_run(request: Request, token: Holder) -> JSONResponse:
        """Store a run: one transaction, and the same run again changes nothing (200 instead of 201)."""
        async with places:
            bundle = await _read_bundle(request, limits)
            kept = await run_in_threadpool(_store, engine, bundle, token, limits)
        return JSONResponse(_as_json(kept), 201 if kept.new else 200)

    return app


def _store(engine: Engine, bundle: Bundle, token: TokenRow, limits: Limits) -> Receipt:
    """Check and ingest, in a thread: parsing megabytes must not stop the server from answering others."""
    run = read_run(bundle.record)
    if run.source.kind != "measured":
        raise Refused(
            403, "forbidden", "A device pushes only what it measured; imported results are for `weigh import`."
        )
    check_inflated(bundle.blobs, limits)
    try:
        authorize_run(engine, token, run.device)
    except StoreError as error:
        raise Refused(403, "forbidden", error.what, error.fix) from error
    held = _held(engine, run.run_id)
    if held is not None and held.sha256 != bundle.sha256:
        raise Refused(409, "conflict", f"The store holds another record under the run id {run.run_id}.")
    return ingest(engine, bundle)


async def _read_bundle(request: Request, limits: Limits) -> Bundle:
    """Read the multipart body under all limits. Large parts go through temporary files, not through memory."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise Refused(
            400, "bad_request", "The body must be multipart/form-data with a part 'run' and one part per blob."
        )
    try:
        async with (
            asyncio.timeout(limits.read_s),
            request.form(max_files=limits.blobs + 1, max_fields=0) as form,
        ):
            record: bytes | None = None
            blobs: dict[str, bytes] = {}
            for name, part in form.multi_items():
                if not isinstance(part, UploadFile) or name in blobs or (name == "run" and record is not None):
                    raise Refused(400, "bad_request", f"The part {name[:100]!r} is no file, or comes twice.")
                if name == "run" and (part.size or 0) > limits.record_bytes:
                    raise Refused(413, "too_large", f"The run record is larger than {limits.record_bytes} bytes.")
                data = await part.read()
                if name == "run":
                    record = data
                elif not _DIGEST.fullmatch(name) or sha256_hex(data) != name:
                    raise Refused(422, "damaged", f"The part {name[:100]!r} does not have the SHA-256 that names it.")
                else:
                    blobs[name] = data
    except TimeoutError as error:
        raise Refused(408, "too_slow", f"The body did not arrive within {limits.read_s:.0f} s.") from error
    if record is None:
        raise Refused(400, "bad_request", "There is no part 'run'.")
    return Bundle(record, blobs)


def _held(engine: Engine, run_id: str, token: TokenRow | None = None) -> Receipt | None:
    """Return the receipt of a stored run; with a token, only when the run is of the token's device."""
    query = select(Run.record_sha256).join(Device, Run.device_id == Device.id).where(Run.run_id == run_id)
    if token is not None:
        mine = Device.uuid == token.device_uuid if token.device_uuid else Device.name == token.device
        query = query.where(mine)
    with reading(engine) as connection:
        digest = connection.scalar(query)
    return Receipt(run_id, digest, False) if digest is not None else None


def _ping(engine: Engine) -> None:
    with reading(engine) as connection:
        # A table of ours: SQLite answers "SELECT 1" without ever looking into its file.
        connection.execute(select(Token.id).limit(1))


def _answer_errors_as_json(app: FastAPI) -> None:
    """Every way out is the same small document; what a person cannot use (tracebacks, SQL) stays in the server's log."""

    @app.exception_handler(Refused)
    def refused(_: Request, error: Refused) -> JSONResponse:
        return _error(error.status, error.code, error.message, error.fix)

    @app.exception_handler(HTTPException)
    def http(_: Request, error: HTTPException) -> JSONResponse:
        code = _CODES.get(error.status_code, "bad_request")
        return _error(error.status_code, code, str(error.detail), headers=error.headers)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return _error(422, "invalid", "The request is not valid.")

    @app.exception_handler(RecordError)
    def record(_: Request, error: RecordError) -> JSONResponse:
        return _error(422, "invalid_record", error.what, error.fix)

    @app.exception_handler(WeighbridgeError)
    def store(_: Request, error: WeighbridgeError) -> JSONResponse:
        log.error("%s", error)
        return _error(503, "store_failed", error.what, error.fix)

    @app.exception_handler(SQLAlchemyError)
    def database(_: Request, error: SQLAlchemyError) -> JSONResponse:
        log.error("The database failed: %s", error)
        return _error(503, "store_failed", "The database failed; nothing was stored.", "See the server's log.")

    @app.exception_handler(Exception)
    def unexpected(_: Request, error: Exception) -> JSONResponse:
        return _error(500, "internal", "The server failed; nothing was stored.", "See the server's log.")


def _error(
    status: int, code: str, message: str, fix: str = "", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    answer = JSONResponse({"error": {"code": code, "message": message, "fix": fix}}, status, headers=headers)
    if status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


def _as_json(receipt: Receipt) -> dict[str, Any]:
    return {"run_id": receipt.run_id, "sha256": receipt.sha256, "new": receipt.new}


def _engine(store: str | Engine) -> Engine:
    if isinstance(store, str):
        return open_store(store).engine
    return store


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("weighbridge")
    except PackageNotFoundError:
        return "unknown"
