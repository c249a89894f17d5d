"""What a device answers is believed only where it has the form that our own program gives it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from agents.fleet import remote
from harness.errors import TransportError

PLACE = {"backend": "tflite", "target": "cpu", "works": True}
ANSWER = {"cache": "/home/pi/.cache/weighbridge", "processors": 4, "places": [PLACE]}


def asked(answer: Any) -> dict[str, Any]:
    device = SimpleNamespace(name="pi")
    connection: Any = SimpleNamespace(device=device, check=lambda *arguments: json.dumps(answer).encode())
    return remote.needs(connection, "python", "folder")


def test_an_answer_of_the_right_form_is_taken() -> None:
    assert asked(ANSWER) == ANSWER


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {**ANSWER, "cache": "relative"},
        {**ANSWER, "processors": "four"},
        {**ANSWER, "processors": 0},
        {**ANSWER, "places": [7]},
        {**ANSWER, "places": [{"backend": "tflite"}]},
        {"cache": "/cache", "places": []},
    ],
)
def test_any_other_answer_is_one_sentence(answer: Any) -> None:
    with pytest.raises(TransportError, match="pi does not answer like weighbridge"):
        asked(answer)


def test_a_status_that_is_no_table_is_none() -> None:
    output = json.dumps({"status": "running", "done": 7, "alive": True, "claimed": True, "boot_id": 1}).encode()
    connection: Any = SimpleNamespace(
        device=SimpleNamespace(name="pi", environment="/bin/python", folder=".weighbridge"),
        exists=lambda path: True,
        absolute=lambda path: path,
        check=lambda *arguments: output,
    )
    look = remote.examine(connection, "folder")
    assert (look.status, look.done, look.alive, look.boot_id) == (None, None, True, "1")
