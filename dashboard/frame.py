"""What every page has around its own content: errors as sentences, empty states, the state of the data."""

from __future__ import annotations

import logging
from collections.abc import Callable

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
        st.code("\n".join(commands), language=None)


def _footer(view: View) -> None:
    st.divider()
    st.caption(
        f"Data as of {plain(when(view.read_at))}, version {view.version} of {plain(view.place)}. "
        "Percentiles are the sample at index floor(n p) of the sorted latencies, as LoadGen takes them."
    )
