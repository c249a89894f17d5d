"""What can be bought, the machines that exist, and the environments that they were in."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from db.schema.base import BIG_ID, Base


class HardwareModel(Base):
    """What can be bought: a whole machine, or a processor. Vendor is empty where the record does not tell it."""

    __tablename__ = "hardware_models"
    __table_args__ = (UniqueConstraint("vendor", "name", "kind"), Index(None, "name"))

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    vendor: Mapped[str]
    name: Mapped[str]
    kind: Mapped[str]  # "machine", or the kind of a compute unit: cpu, gpu, npu, ane, other


class Device(Base):
    """One physical machine, known by UUID. Two machines may bear one name; they stay two."""

    __tablename__ = "devices"
    __table_args__ = (UniqueConstraint("uuid"), Index(None, "name"))

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    uuid: Mapped[str]
    name: Mapped[str]  # as the newest run says
    hardware_model_id: Mapped[int] = mapped_column(ForeignKey("hardware_models.id"))
    form: Mapped[str | None]
    last_started_at: Mapped[datetime]  # start of the newest run


class ComputeUnit(Base):
    """A part of a device that does the work. Another board in the same slot is another row."""

    __tablename__ = "compute_units"
    __table_args__ = (
        UniqueConstraint("device_id", "name", "hardware_model_id", "count"),
        Index(None, "hardware_model_id"),
    )

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    device_id: Mapped[int] = mapped_column(ForeignKey("devices.id"))
    name: Mapped[str]  # "cpu", "gpu0"
    hardware_model_id: Mapped[int] = mapped_column(ForeignKey("hardware_models.id"))
    count: Mapped[int]
    memory_bytes: Mapped[int | None] = mapped_column(BigInteger)


class Environment(Base):
    """Machine and configuration by their digest; conditions pass and stand in the run."""

    __tablename__ = "environments"
    __table_args__ = (UniqueConstraint("digest"),)

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    digest: Mapped[str]
    machine: Mapped[dict[str, Any]]
    configuration: Mapped[dict[str, Any]]
