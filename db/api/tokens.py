"""Tokens of devices: made once, shown once, kept as a hash, good for the runs of one device only.

A token is `wb_<id>_<secret>` with a secret of 256 random bits. Its SHA-256 is kept: a slow password hash defends secrets
that can be guessed, and 2^256 possibilities cannot, while a slow hash per request would be a way to wear the server out.
"""

from __future__ import annotations

import hmac
import re
import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Engine, select, update

from db.schema import Device, Token
from db.transactions import reading, writing
from harness.canonical import sha256_hex
from harness.errors import StoreError, UsageError
from harness.records import Device as DeviceRecord

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_TOKEN = re.compile(r"wb_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_NO_HASH = "0" * 64


@dataclass(frozen=True)
class TokenRow:
    """What is kept of a token."""

    token_id: str
    device: str
    device_uuid: str | None
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None


def create_token(engine: Engine, device: str) -> tuple[TokenRow, str]:
    """Make a token for a device, given by name or UUID. Returns its row and the token itself, which is kept nowhere.

    A device that the store knows is bound at once by its UUID; a new one is bound by its first push.
    Raises UsageError for a name that no device can have, or that several devices bear.
    """
    device_uuid = device if _is_uuid(device) else None
    if device_uuid is None and not _NAME.fullmatch(device):
        what = f"{device!r} is not a device's name or UUID."
        raise UsageError(what, "Names have up to 63 letters, digits, '.', '_', '-'.")
    token_id = secrets.token_hex(6)
    token = f"wb_{token_id}_{secrets.token_urlsafe(32)}"
    with writing(engine) as session:
        if device_uuid is None:
            known = session.scalars(select(Device.uuid).where(Device.name == device)).all()
            if len(known) > 1:
                raise UsageError(f"{len(known)} devices are named {device!r}.", f"Give one UUID: {', '.join(known)}.")
            device_uuid = known[0] if known else None
        row = Token(
            token_id=token_id,
            hash=sha256_hex(token.encode()),
            device=device,
            device_uuid=device_uuid,
            created_at=datetime.now(UTC),
        )
        session.add(row)
        session.flush()
        return _row(row), token


def list_tokens(engine: Engine) -> list[TokenRow]:
    """Return all tokens, oldest first, revoked ones too."""
    with reading(engine) as connection:
        return [_row(row) for row in connection.execute(select(Token.__table__).order_by(Token.id))]


def revoke_token(engine: Engine, token_id: str) -> TokenRow:
    """Take a token's right away, from now on. Raises UsageError when there is no such token."""
    with writing(engine) as session:
        row = session.scalar(select(Token).where(Token.token_id == token_id))
        if row is None:
            raise UsageError(f"There is no token {token_id!r}.", "See `weigh serve token list`.")
        row.revoked_at = row.revoked_at or datetime.now(UTC)
        session.flush()
        return _row(row)


def authenticate(engine: Engine, token: str) -> TokenRow | None:
    """Return the token's row when it is valid and not revoked. The comparison takes the same time for any wrong token."""
    shape = _TOKEN.fullmatch(token)
    if shape is None:
        return None
    with reading(engine) as connection:
        row = connection.execute(select(Token.__table__).where(Token.token_id == shape.group(1))).one_or_none()
    kept = row.hash if row is not None else _NO_HASH
    right = hmac.compare_digest(kept, sha256_hex(token.encode()))
    return _row(row) if row is not None and right and row.revoked_at is None else None


def authorize_run(engine: Engine, token: TokenRow, device: DeviceRecord) -> None:
    """Let the token push a run of `device`, or raise StoreError. The first push binds the token to the device's UUID.

    A bound token goes by the UUID alone, so that a device may be renamed. An unbound one goes by the name, and may not
    claim a UUID that the store knows under another name.
    """
    with writing(engine) as session:
        if token.device_uuid is None and device.name == token.device:
            other = session.scalar(select(Device.name).where(Device.uuid == device.uuid, Device.name != token.device))
            claimed = select(Token.device).where(Token.device_uuid == device.uuid, Token.device != token.device)
            if other is None:
                other = session.scalar(claimed)
            if other is not None:
                raise StoreError(
                    f"The device {device.uuid} is known as {other!r}, and this token is for {token.device!r}."
                )
            unbound = update(Token).where(Token.token_id == token.token_id, Token.device_uuid.is_(None))
            session.execute(unbound.values(device_uuid=device.uuid))
        bound = session.scalar(select(Token.device_uuid).where(Token.token_id == token.token_id))
        if bound != device.uuid:
            raise StoreError(
                f"This token may push runs of the device {token.device!r} only, not of {device.name!r} ({device.uuid}).",
                "Make a token for it with `weigh serve token create`.",
            )
        used = update(Token).where(Token.token_id == token.token_id)
        session.execute(used.values(last_used_at=datetime.now(UTC)))


def _row(row: object) -> TokenRow:
    return TokenRow(*(getattr(row, name) for name in TokenRow.__dataclass_fields__))


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
