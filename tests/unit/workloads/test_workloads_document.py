"""docs/workloads.md: its example is a suite that can be read, and its tables name everything that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.datasets.catalogue import DATASETS
from harness.suites.reader import suite_from
from harness.tasks import TASKS
from harness.tasks.metrics import METRICS
from harness.toml_files import read_toml
from harness.workloads.definition import KEYS, load_workloads

DOCUMENT = Path(__file__).parents[3] / "docs" / "workloads.md"


def blocks() -> list[str]:
    return re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_example_is_a_suite(tmp_path: Path) -> None:
    path = tmp_path / "shelf.toml"
    path.write_text(next(block for block in blocks() if "[[workload]]" in block), encoding="utf-8")
    suite = suite_from(read_toml(path))
    assert suite.name == "shelf" and "products" in suite.accuracy


def test_the_configuration_is_one(tmp_path: Path) -> None:
    from harness.configuration import load_configuration

    path = tmp_path / "config.toml"
    path.write_text(next(block for block in blocks() if "[datasets]" in block), encoding="utf-8")
    assert load_configuration(path).datasets == {"imagenet": Path("/data/imagenet")}


NAMES = {
    *load_workloads(),
    *DATASETS,
    *(task for task in TASKS if task != "random_inputs"),
    *(metric for metrics in METRICS.values() for metric in metrics),
    *KEYS,
}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_everything_has_its_place_in_the_document(name: str) -> None:
    assert f"`{name}`" in DOCUMENT.read_text(encoding="utf-8")
