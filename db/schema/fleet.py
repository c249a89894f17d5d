"""What the control host keeps about devices it commands: their tokens, and runs dispatched to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from db.schema.base import BIG_ID, Base

# In these states an agent may be alive on the device, or the control host still reads from it: nobody else may measure.
LIVE_STATES = ("LEASED", "STAGED", "LAUNCHED", "RUNNING", "FINISHED")
END_STATES = ("INGESTED", "FAILED", "LOST", "CANCELLED")
DISPATCH_STATES = ("QUEUED", *LIVE_STATES, "FETCHED", *END_STATES)
_LIVE = text("state IN (" + ", ".join(f"'{state}'" for state in LIVE_STATES) + ")")


class Token(Base):
    """A device's right to push. Only the hash of the token is kept."""

    __tablename__ = "tokens"
    __table_args__ = (UniqueConstraint("hash"), UniqueConstraint("token_id"), Index(None, "device"))

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    token_id: Mapped[str]  # public, to name it in lists and to revoke it
    hash: Mapped[str]
    device: Mapped[str]  # the device's name; the token may be older than the device's first run
    device_uuid: Mapped[str | None]  # bound at first use
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class Dispatch(Base):
    """One attempt to run a suite on a device over SSH. The partial unique index gives each device one live lease.

    The fencing token grows with every lease of a device; the agent writes it into its folder, so that what an older lease
    left behind cannot be taken for the newer one's.
    """

    __tablename__ = "dispatches"
    __table_args__ = (
        UniqueConstraint("dispatch_id"),
        UniqueConstraint("device", "fencing_token"),
        CheckConstraint("state IN (" + ", ".join(f"'{state}'" for state in DISPATCH_STATES) + ")", name="state"),
        Index("ux_dispatches_live_device", "device", unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE),
        Index(None, "state"),
        Index(None, "run_id"),
    )

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    dispatch_id: Mapped[str]  # UUID, made before anything is sent
    run_id: Mapped[str]  # UUID of the run that this attempt will make; no foreign key: the run is not there yet
    attempt: Mapped[int]
    retry_of: Mapped[str | None]  # dispatch_id of the attempt before
    device: Mapped[str]  # name in the fleet file: what the lease is about
    host: Mapped[str]  # alias that was connected to
    suite: Mapped[str]
    request: Mapped[dict[str, Any]]  # arguments of the run, as they were asked
    requested_by: Mapped[str | None]
    state: Mapped[str]
    fencing_token: Mapped[int | None] = mapped_column(BigInteger)  # None until leased
    remote_folder: Mapped[str | None]
    remote_boot_id: Mapped[str | None]
    remote_pid: Mapped[int | None] = mapped_column(BigInteger)
    remote_status: Mapped[dict[str, Any] | None]  # the agent's status.json as last seen
    result_sha256: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    leased_at: Mapped[datetime | None]
    staged_at: Mapped[datetime | None]
    launched_at: Mapped[datetime | None]
    last_seen_at: Mapped[datetime | None]  # the device answered
    finished_at: Mapped[datetime | None]
    fetched_at: Mapped[datetime | None]
    ingested_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]  # FAILED, LOST or CANCELLED
    remote_removed_at: Mapped[datetime | None]
    deadline_at: Mapped[datetime | None]
    last_error: Mapped[str | None]
