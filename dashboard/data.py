"""What the pages read: the store's queries behind caches that end by themselves and know the store's version.

Every cached answer has the data version in its key, so that a finished ingest is on the page at the next click, a
time to live, and a bound on the number of entries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard.palette import Marker, markers

if TYPE_CHECKING:
    import numpy.typing as npt

    from db.queries import Facets, Filter, ResultRow, RunDetail, RunRow
    from db.store import Store

TTL_SECONDS = 600
ROW_LIMIT = 1000
COMPARE_LIMIT = 5000
RUN_LIMIT = 300


@dataclass(frozen=True)
class View:
    """One state of one store: what all reads of one page go through."""

    key: str  # digest of the store's address, so that no password becomes part of a cache key
    version: int
    place: str  # for people, without a password
    read_at: datetime


def open_view() -> View:
    """Open the store named by the environment and note its version. Raises StoreError or UsageError."""
    from db.queries import data_version

    store = _store()
    return View(_key(), data_version(store.engine), store.place, datetime.now(UTC))


@st.cache_data(ttl=TTL_SECONDS, max_entries=16, show_spinner=False)
def facets(view_key: str, version: int) -> Facets:
    """The values that can be filtered by."""
    from db import queries

    return queries.facets(_store().engine)


@st.cache_data(ttl=TTL_SECONDS, max_entries=32, show_spinner="Reading results")
def results(view_key: str, version: int, wanted: Filter) -> list[ResultRow]:
    """The rows that pass a filter, newest first."""
    from db import queries

    return queries.results(_store().engine, wanted)


@st.cache_data(ttl=TTL_SECONDS, max_entries=64, show_spinner=False)
def count(view_key: str, version: int, wanted: Filter) -> int:
    """How many rows pass a filter, whatever its limit."""
    from db import queries

    return queries.count(_store().engine, wanted)


@st.cache_data(ttl=TTL_SECONDS, max_entries=8, show_spinner=False)
def runs(view_key: str, version: int) -> list[RunRow]:
    """The newest runs."""
    from db import queries

    return queries.run_list(_store().engine, RUN_LIMIT)


@st.cache_data(ttl=TTL_SECONDS, max_entries=16, show_spinner="Reading the run")
def run_detail(view_key: str, version: int, run_id: str) -> RunDetail:
    """Everything about one run. Raises StoreError where there is no such run."""
    from db import queries

    return queries.run_detail(_store().engine, run_id)


@st.cache_data(ttl=TTL_SECONDS, max_entries=16, show_spinner=False)
def artifacts(view_key: str, version: int, run_id: str) -> dict[str, dict[str, Any]]:
    """The model file of each measurement of a run, with its lineage."""
    from db.lineage import lineage

    return lineage(_store().engine, run_id)


@st.cache_data(ttl=TTL_SECONDS, max_entries=16, show_spinner=False)
def samples(view_key: str, version: int, measurement_id: str, what: str = "latency_ns") -> npt.NDArray[Any]:
    """A measurement's raw samples in nanoseconds. They stay here: the browser gets counts."""
    from db import queries

    return queries.trial_samples(_store().engine, measurement_id, what)


@st.cache_data(ttl=TTL_SECONDS, max_entries=16, show_spinner=False)
def environments(view_key: str, version: int, digests: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Machine and configuration by digest."""
    from db import queries

    return queries.environments(_store().engine, digests)


def hardware_markers(view: View) -> Mapping[str, Marker]:
    """The marker of each hardware model of the whole store: a filter changes no colour."""
    return markers(facets(view.key, view.version).hardware)


def _key() -> str:
    from harness.folders import default_store

    return hashlib.sha256(default_store().encode()).hexdigest()


def _store() -> Store:
    return _opened(_key())


@st.cache_resource(ttl=3600, max_entries=4, show_spinner=False)
def _opened(key: str) -> Store:
    from db.store import open_store
    from harness.folders import default_store

    return open_store(default_store(), create=False)
