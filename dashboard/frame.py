"""What every page has around its own content: errors as sentences, the link to this view, the state of the data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlencode

import streamlit as st

from dashboard.data import View, open_view
from dashboard.wording import plain, when
from harness.errors import WeighbridgeError

log = logging.getLogger(__name__)


def show(title: str, body: Callable[[View], None]) -> None:
    """Draw one page. A known error is a sentence with its way out; an unknown one goes to the log, not to the reader."""
    st.title(title, anchor=False)
    try:
        view = open_view()
        body(view)
        _footer(view)
    except WeighbridgeError as error:
        st.error(plain(error.what), icon=":material/error:")
        if error.fix:
            st.markdown(f"**What to do:** {plain(error.fix)}")
    except Exception:
        log.exception("The page %r failed", title)
        st.error(
            "This page could not be drawn. The terminal that runs the dashboard shows why.", icon=":material/error:"
        )
        st.markdown(
            "**What to do:** reload the page; if it stays, start again with `weigh dashboard` and report what it says."
        )


def empty(what: str, *commands: str) -> None:
    """An empty state: what is missing, and what to type next."""
    st.info(what, icon=":material/inbox:")
    if commands:
        st.markdown("Type this in a terminal, then reload the page:")
        st.code("\n".join(commands), language="bash")


def address(page: str, parameters: Mapping[str, str | bool | Iterable[str] | None]) -> str:
    """The address of a view: what is at its default is left out, a list repeats its name, as bound widgets write it."""
    pairs: list[tuple[str, str]] = []
    for name, value in parameters.items():
        if value in (None, "", False):
            continue
        if isinstance(value, bool):
            pairs.append((name, "true"))
        elif isinstance(value, str):
            pairs.append((name, value))
        else:
            pairs += [(name, item) for item in value or ()]
    base = (st.context.url or "").split("?")[0].rstrip("/")
    own = base.rsplit("/", 1)[-1]
    root = base[: -len(own) - 1] if own in {"results", "compare", "run"} else base
    place = root if page == "results" else f"{root}/{page}"
    return place + (f"?{urlencode(pairs)}" if pairs else "")


def link_to_view(page: str, parameters: Mapping[str, str | bool | Iterable[str] | None]) -> None:
    """A button that opens the address of this view, to be copied."""
    with st.popover("Link to this view", icon=":material/link:"):
        st.caption("Whoever opens this address on this dashboard sees the same selection.")
        st.code(address(page, parameters), language=None, wrap_lines=True)


def _footer(view: View) -> None:
    st.divider()
    st.caption(
        f"Data as of {plain(when(view.read_at))}, version {view.version} of {plain(view.place)}. "
        "Percentiles are the sample at index floor(n p) of the sorted latencies, as LoadGen takes them."
    )
