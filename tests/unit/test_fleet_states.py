"""From a look at a device to the state of its dispatch: only proof moves it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.fleet.states import NEXT, Look, judge
from db.schema import DISPATCH_STATES, END_STATES, LIVE_STATES

STATUS = st.none() | st.fixed_dictionaries(
    {"state": st.sampled_from(["running", "finished", "failed"])},
    optional={"boot_id": st.sampled_from(["a", "b"]), "reason": st.text(max_size=20)},
)
LOOKS = st.builds(
    Look,
    status=STATUS,
    done=st.none() | st.just({"sha256": "0" * 64}),
    alive=st.none() | st.booleans(),
    claimed=st.none() | st.booleans(),
    boot_id=st.none() | st.sampled_from(["a", "b"]),
    log=st.text(max_size=40),
)


def test_the_machine_knows_every_state_of_the_table() -> None:
    assert set(NEXT) == set(DISPATCH_STATES)
    assert {state for state, following in NEXT.items() if not following} == set(END_STATES)


@given(st.sampled_from(DISPATCH_STATES), LOOKS)
def test_a_look_only_moves_along_the_machine(state: str, look: Look) -> None:
    following, reason = judge(state, look)
    assert following == state or following in NEXT[state]
    assert (reason is not None) == (following != state and following in ("FAILED", "LOST"))


@given(st.sampled_from(("STAGED", "LAUNCHED", "RUNNING")), LOOKS)
def test_lost_needs_proof_that_no_agent_lives_and_no_result_is_there(state: str, look: Look) -> None:
    if judge(state, look)[0] == "LOST":
        assert look.alive is False
        assert look.done is None


@given(st.sampled_from(("STAGED", "LAUNCHED", "RUNNING")), LOOKS)
def test_a_result_outranks_everything(state: str, look: Look) -> None:
    if look.done is not None:
        assert judge(state, look) == ("FINISHED", None)


@given(st.sampled_from((*END_STATES, "QUEUED", "LEASED", "FINISHED", "FETCHED")), LOOKS)
def test_a_look_never_moves_what_is_not_on_the_device(state: str, look: Look) -> None:
    assert judge(state, look) == (state, None)


@pytest.mark.parametrize(
    ("look", "state", "words"),
    [
        (Look({"state": "running", "boot_id": "a"}, None, False, True, "b"), "LOST", "restarted"),
        (Look({"state": "running", "boot_id": "a"}, None, False, True, "a", "Killed"), "LOST", "Killed"),
        (Look({"state": "failed", "reason": "no space"}, None, False, True, "a"), "FAILED", "no space"),
        (Look({"state": "failed", "reason": "\x1b[2Jno\nspace"}, None, False, True, "a"), "FAILED", ": [2Jno space"),
        (Look(None, None, False, False, "a"), "LOST", "never started"),
    ],
)
def test_each_bad_end_has_its_reason(look: Look, state: str, words: str) -> None:
    found, reason = judge("LAUNCHED", look)
    assert found == state
    assert words in (reason or "")


def test_a_staged_run_that_nobody_launched_stays_until_an_operator_speaks() -> None:
    assert judge("STAGED", Look(alive=False, claimed=False)) == ("STAGED", None)
    assert "STAGED" in LIVE_STATES
