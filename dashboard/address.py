"""Widgets whose values stand in the page's address, so that a link shows the same selection to whoever opens it.

Streamlit's own binding writes what a choice looks like, not what it is: a run would stand in the address by its label, which
changes as data come in. Here ids stand there. What is at its default is left out of the browser's address (writing it
unasked would trap the reader's "back"); the link that is offered names it, because next month the default may be another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import streamlit as st


def choice(
    label: str,
    options: Sequence[str],
    key: str,
    default: str,
    shown: Callable[[str], str] = str,
    **more: Any,
) -> str:
    """One of `options`; what the address names and the options do not have is the default."""
    _read(key, lambda asked: asked[-1] if asked and asked[-1] in options else default)
    if st.session_state[key] not in options:
        st.session_state[key] = default
    chosen: str = st.selectbox(label, list(options), key=key, format_func=shown, **more)
    _write(key, [chosen] if chosen != default else [], same=[chosen])
    return chosen


def choices(
    label: str,
    options: Sequence[str],
    key: str,
    shown: Callable[[str], str] = str,
    placeholder: str = "all",
    **more: Any,
) -> tuple[str, ...]:
    """Any of `options`; none means all, and is left out of the address."""
    _read(key, lambda asked: list(dict.fromkeys(asked)))
    known = [value for value in st.session_state[key] if value in options]
    if known != st.session_state[key]:  # a needless assignment would overrule what the reader chooses at this moment
        st.session_state[key] = known
    chosen = st.multiselect(label, list(options), key=key, format_func=shown, placeholder=placeholder, **more)
    _write(key, list(chosen))
    return tuple(chosen)


def text(label: str, key: str, **more: Any) -> str:
    """A line of text; empty is left out of the address."""
    _read(key, lambda asked: asked[-1][:200] if asked else "")
    typed = (st.text_input(label, key=key, max_chars=200, **more) or "").strip()
    _write(key, [typed] if typed else [])
    return typed


def switch(label: str, key: str, default: bool, **more: Any) -> bool:
    """Yes or no; the default is left out of the address."""
    _read(key, lambda asked: asked[-1].lower() in {"true", "1", "yes"} if asked else default)
    chosen = bool(st.toggle(label, key=key, **more))
    _write(key, [] if chosen == default else [str(chosen).lower()])
    return chosen


def link_to_view(**explicit: str) -> None:
    """A button that opens the address of this view, to be copied; `explicit` are values that may be at their defaults."""
    with st.popover("Link to this view", icon=":material/link:"):
        st.caption("Whoever opens this address on this dashboard sees the same selection.")
        st.code(_current(explicit), language=None, wrap_lines=True)


def _current(explicit: Mapping[str, str]) -> str:
    asked = {name: st.query_params.get_all(name) for name in st.query_params}
    known = {name: [value] for name, value in explicit.items()} | asked
    base = (st.context.url or "").partition("?")[0]
    return base + (f"?{urlencode(known, doseq=True)}" if known else "")


def _seen(key: str) -> str:
    return f"address of {key}"


def _read(key: str, parse: Callable[[list[str]], Any]) -> None:
    """Take the value from the address when the page is new, or when the address was changed by another than `_write`."""
    asked = st.query_params.get_all(key)
    if key not in st.session_state or asked != st.session_state.get(_seen(key)):
        st.session_state[key] = parse(asked)


def _write(key: str, values: list[str], same: list[str] | None = None) -> None:
    """Put the values into the address, unless it says `same`, which means the same."""
    asked = st.query_params.get_all(key)
    if asked and asked == same:
        values = asked
    if values != asked:
        if values:
            st.query_params[key] = values
        else:
            del st.query_params[key]
    st.session_state[_seen(key)] = values
