"""The idle penalty of a duty cycle as it is recorded; a record promises nothing about that part of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from db.queries import ResultRow

MakeRow = Callable[..., ResultRow]
RECORDED = {"value": 1.6, "low": 1.5, "high": 1.75, "method": "95 % interval of the median over 9 trials", "trials": 9}


def section(row: ResultRow) -> AppTest:
    def page(row):  # type: ignore[no-untyped-def]  # its text is run by itself, without this module's names
        from dashboard.run_sections import scenario_sections

        scenario_sections(row, [row])

    app = AppTest.from_function(page, kwargs={"row": row}, default_timeout=30).run()
    assert not app.exception
    return app


def duty(make_row: MakeRow, thermal: object, period: object = 1.0) -> ResultRow:
    return make_row(scenario="duty_cycle", p50_ms=16.0, scenario_parameters={"period_s": period}, thermal=thermal)


def test_it_stands_with_its_interval(make_row: MakeRow) -> None:
    app = section(duty(make_row, {"idle_penalty": {**RECORDED, "back_to_back_p50_ms": 10.0}}))
    shown = {item.label: (item.value, item.delta) for item in app.metric}
    assert shown["Idle penalty"] == ("1.60 ×", "95 % interval 1.50 to 1.75")
    assert shown["Median without a pause (ms)"][0] == "10.0"
    assert shown["p50, one request every 1.00 s (ms)"][0] == "16.0"


@pytest.mark.parametrize("thermal", [None, {}, {"idle_penalty": [1]}, {"idle_penalty": {"value": "much"}}])
def test_without_one_it_says_so(make_row: MakeRow, thermal: Any) -> None:
    app = section(duty(make_row, thermal))
    assert not app.metric
    assert any("cannot be told" in item.value for item in app.caption)


@pytest.mark.parametrize(
    "strange",
    [{"low": "x"}, {"high": 10**400}, {"method": ["a"]}, {"method": "**bold** <b>"}, {"back_to_back_p50_ms": {"a": 1}}],
)
def test_strange_keys_break_nothing(make_row: MakeRow, strange: dict[str, Any]) -> None:
    app = section(duty(make_row, {"idle_penalty": {**RECORDED, **strange}}, period={"x": []}))
    assert {item.label: item.value for item in app.metric}["Idle penalty"] == "1.60 ×"
    assert not any("**bold**" in item.value for item in app.caption)
