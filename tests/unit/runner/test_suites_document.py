"""Every key, scenario and suite has its place in docs/suites.md, and its example is a suite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.suites import read_suite, suite_names
from harness.suites.reader import GROUP_KEYS, SUITE_KEYS
from harness.workloads.definition import SCENARIOS

DOCUMENT = Path(__file__).parents[3] / "docs" / "suites.md"


@pytest.mark.parametrize("name", sorted({*SUITE_KEYS, *GROUP_KEYS, *SCENARIOS, *suite_names()}))
def test_everything_has_its_place_in_the_document(name: str) -> None:
    assert f"`{name}`" in DOCUMENT.read_text(encoding="utf-8")


def test_the_document_s_example_is_a_suite(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "mine.toml").write_text(example)
    suite, _ = read_suite(str(tmp_path / "mine.toml"))
    assert [group.scenario for group in suite.groups] == ["single_stream", "offline", "server"]
    assert [group.most_trials for group in suite.groups] == [16, 3, 1]
