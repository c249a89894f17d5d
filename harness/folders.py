"""Where this product keeps things on a machine; each place can be moved by an environment variable.

Folders are named here and made by whoever writes into them, so that asking for a path never touches the disk.
"""

from __future__ import annotations

import os
from pathlib import Path

APPLICATION = "weighbridge"
STORE_VARIABLE = "WEIGHBRIDGE_STORE"


def data_dir() -> Path:
    """Return the folder of what must not be lost: database, device identity. WEIGHBRIDGE_DATA moves it."""
    import platformdirs

    return _chosen("WEIGHBRIDGE_DATA") or platformdirs.user_data_path(APPLICATION, appauthor=False)


def cache_dir() -> Path:
    """Return the folder of what can be made again: models, datasets, workers. WEIGHBRIDGE_CACHE moves it."""
    import platformdirs

    return _chosen("WEIGHBRIDGE_CACHE") or platformdirs.user_cache_path(APPLICATION, appauthor=False)


def config_dir() -> Path:
    """Return the folder of what a person writes: config.toml. WEIGHBRIDGE_CONFIG moves it."""
    import platformdirs

    return _chosen("WEIGHBRIDGE_CONFIG") or platformdirs.user_config_path(APPLICATION, appauthor=False)


def state_dir() -> Path:
    """Return the folder of work in progress: unfinished runs, the spool, locks. WEIGHBRIDGE_STATE moves it."""
    import platformdirs

    return _chosen("WEIGHBRIDGE_STATE") or platformdirs.user_state_path(APPLICATION, appauthor=False)


def spool_dir() -> Path:
    """Return the folder of finished runs that no store has acknowledged yet."""
    return state_dir() / "spool"


def runs_dir() -> Path:
    """Return the folder where a run keeps its finished trials until its record is written."""
    return state_dir() / "runs"


def default_store() -> str:
    """Return the store's address: WEIGHBRIDGE_STORE, else an SQLite file in the data folder."""
    return os.environ.get(STORE_VARIABLE) or f"sqlite:///{data_dir() / 'weighbridge.sqlite'}"


def _chosen(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).expanduser().absolute() if value else None
