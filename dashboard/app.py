"""The dashboard's entry point for Streamlit. Start it with `weigh dashboard`."""

from __future__ import annotations

import streamlit as st

st.set_page_config(page_title="Weighbridge", page_icon=":material/balance:", layout="wide")
st.navigation(
    [
        st.Page("pages/results.py", title="Results", icon=":material/table_rows:", default=True),
        st.Page("pages/compare.py", title="Compare", icon=":material/balance:", url_path="compare"),
        st.Page("pages/run.py", title="Run", icon=":material/fact_check:", url_path="run"),
    ],
    position="top",
).run()
