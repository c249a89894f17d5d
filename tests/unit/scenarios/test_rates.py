"""Preferred numbers, and how a trial's time is shared out among them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scenarios.rates import Offer, first_offers, further_offers, preferred


def test_the_series_are_those_of_iso_3() -> None:
    r20 = [
        1.0,
        1.12,
        1.25,
        1.4,
        1.6,
        1.8,
        2.0,
        2.24,
        2.5,
        2.8,
        3.15,
        3.55,
        4.0,
        4.5,
        5.0,
        5.6,
        6.3,
        7.1,
        8.0,
        9.0,
        10.0,
    ]
    assert preferred(1, 10) == r20
    assert preferred(1, 10, 2) == [1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0, 10.0]  # R10
    assert preferred(1, 10, 4) == [1.0, 1.6, 2.5, 4.0, 6.3, 10.0]  # R5


@given(st.floats(1e-3, 1e6), st.floats(1.15, 50))
def test_any_two_devices_share_the_rates_of_their_common_range(low: float, ratio: float) -> None:
    found = preferred(low, low * ratio)
    assert found == sorted(found)
    assert all(low <= rate <= low * ratio for rate in found)
    assert found  # neighbours lie at most 1.13 apart
    assert set(found) <= set(preferred(low / 3, low * ratio * 2))
    coarse = preferred(low, low * ratio, 4)
    assert set(coarse) <= set(found)


@given(st.floats(0.05, 1e5), st.floats(1, 600))
def test_first_offers_span_the_capacity_and_take_the_time_that_is_there(capacity: float, seconds: float) -> None:
    offers = first_offers(capacity, seconds)
    rates = [offer.per_s for offer in offers]
    assert rates == sorted(rates)
    assert all(0.3 * capacity <= rate <= 1.1 * capacity for rate in rates)
    assert len(rates) >= 2
    assert len({offer.queries for offer in offers}) == 1
    if offers[0].queries > 10:  # else the model is slow, and ten queries are the least
        assert sum(offer.expected_s for offer in offers) <= seconds * 1.0001
    every = preferred(0.3 * capacity, 1.1 * capacity)
    if (
        seconds / sum(1 / rate for rate in every) >= 101
    ):  # time enough for a hundred queries at all numbers of the series
        assert rates == every


@pytest.mark.parametrize(
    ("values", "rates"),
    [
        ([5, 8, 20, 90], [125, 140, 160]),  # between the last below the limit and the first above
        ([5, 8, 9, 10], [200]),  # all keep it: the highest
        ([30, 40, 50, 90], [100]),  # none does: the lowest
        ([5, 20, 9, 90], [100, 112, 125]),  # the first miss counts
    ],
)
def test_more_is_offered_where_the_limit_lies(values: list[float], rates: list[float]) -> None:
    seen = list(zip([100.0, 125.0, 160.0, 200.0], values, strict=True))
    offers = further_offers(seen, 15.0, 10.0)
    assert [offer.per_s for offer in offers] == rates
    assert sum(offer.expected_s for offer in offers) == pytest.approx(10.0, rel=0.05)


def test_without_time_nothing_further_is_offered() -> None:
    assert further_offers([(100.0, 1.0)], 15.0, 0.05) == []
    assert Offer(50.0, 100).expected_s == 2.0
