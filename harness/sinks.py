"""Which sink serves which store address: a registry that the front door fills, so that no room imports the database.

`weigh.py` registers a place "module:function" per scheme; the module is imported when a store of that scheme is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.documents import Sink

_places: dict[str, str] = {}


def register_sink(scheme: str, place: str) -> None:
    """Say that stores whose address begins with `scheme` are opened by `place`, written "module:function"."""
    _places[scheme] = place


def registered_schemes() -> tuple[str, ...]:
    """Return the schemes that can be opened, sorted."""
    return tuple(sorted(_places))


def check_address(url: str) -> str:
    """Return the place that serves the store at `url`, without opening it. Raises UsageError where nothing does."""
    scheme, separator, _ = url.partition("://")
    place = _places.get(scheme.partition("+")[0]) if separator else None
    if place is None:
        known = ", ".join(f"{name}://" for name in registered_schemes()) or "none"
        raise UsageError(
            f"{without_password(url)!r} is not the address of a store.", f"It must begin with one of: {known}."
        )
    return place


def open_sink(url: str) -> Sink:
    """Open the store at `url`. Raises UsageError for an address that nothing serves, StoreError where opening fails."""
    place = check_address(url)
    module_name, _, function_name = place.partition(":")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"Stores of the kind {url.partition('://')[0]}:// need the package {error.name!r}, which is not installed.",
            "Install it with: pip install 'weighbridge[database]'.",
        ) from error
    opener = cast("Callable[[str], Sink]", getattr(module, function_name))
    return opener(url)


def without_password(url: str) -> str:
    """Return `url` without what stands between "://" and "@", which may hold a password."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}://***@{rest.rpartition('@')[2]}" if separator and "@" in rest else url
