"""What was asked for: suites, workloads, datasets, model files, and the cases that join them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from db.schema.base import BIG_ID, Base


class Suite(Base):
    __tablename__ = "suites"
    __table_args__ = (UniqueConstraint("name", "version", "digest"),)

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    name: Mapped[str]
    version: Mapped[str]
    digest: Mapped[str]


class Workload(Base):
    """A workload by name. The family joins what may be compared; it is the name itself until a record tells it."""

    __tablename__ = "workloads"
    __table_args__ = (UniqueConstraint("name"), Index(None, "family"))

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    name: Mapped[str]
    family: Mapped[str]
    title: Mapped[str | None]


class Dataset(Base):
    """Labelled inputs, known by name and digest; the digest is empty where the source does not tell it."""

    __tablename__ = "datasets"
    __table_args__ = (UniqueConstraint("name", "digest"),)

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    name: Mapped[str]
    digest: Mapped[str]


class Artifact(Base):
    """One model file with its lineage, as the first record that named it said."""

    __tablename__ = "artifacts"
    __table_args__ = (UniqueConstraint("sha256", "format", "precision"),)

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    sha256: Mapped[str]
    format: Mapped[str]
    precision: Mapped[str]
    bytes: Mapped[int] = mapped_column(BigInteger)
    name: Mapped[str]
    source: Mapped[str | None]
    source_sha256: Mapped[str | None]
    recipe: Mapped[str | None]
    recipe_sha256: Mapped[str | None]
    tools: Mapped[dict[str, Any]]
    licence: Mapped[str | None]
    calibration: Mapped[str | None]  # name@digest of the data behind a quantised file's scales


class Case(Base):
    """What was asked, by the SHA-256 of its canonical JSON. Series over months hang on it."""

    __tablename__ = "cases"
    __table_args__ = (
        UniqueConstraint("key"),
        Index(None, "workload_id"),
        Index(None, "scenario"),
        Index(None, "backend"),
    )

    id: Mapped[int] = mapped_column(BIG_ID, primary_key=True)
    key: Mapped[str]
    workload_id: Mapped[int] = mapped_column(ForeignKey("workloads.id"))
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("datasets.id"))
    source_weights: Mapped[str | None]
    artifact_precision: Mapped[str]
    requested_precision: Mapped[str]
    backend: Mapped[str]
    target: Mapped[str]
    compute_unit: Mapped[str | None]
    scenario: Mapped[str]
    scenario_parameters: Mapped[dict[str, Any]]
    batch: Mapped[int]
    streams: Mapped[int | None]
    threads: Mapped[int | None]
    input_size: Mapped[str | None]
    boundary: Mapped[str]
