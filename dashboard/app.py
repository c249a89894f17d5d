"""The dashboard's entry point for Streamlit. Start it with `weigh dashboard`."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

# The folder is not named "pages": Streamlit would serve such a folder by itself and leave this file out.
st.set_page_config(page_title="Weighbridge", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")
st.navigation(
    [
        st.Page("views/results.py", title="Results", icon=":material/table_rows:", default=True),
        st.Page("views/compare.py", title="Compare", icon=":material/balance:", url_path="compare"),
        st.Page("views/run.py", title="Run", icon=":material/fact_check:", url_path="run"),
    ],
    position="top",
).run()
