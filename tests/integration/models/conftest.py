"""The real models, in the cache that all tests share because it is content-addressed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.folders import cache_dir
from harness.models.store import ModelStore


@pytest.fixture(scope="session")
def models() -> ModelStore:
    """A store on the shared cache; fetches what is not there yet."""
    return ModelStore(cache_dir())


@pytest.fixture
def with_sources(models: ModelStore, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Make a fresh cache that holds only the published files of these models; it is gone after the test."""
    made: list[Path] = []

    def make(*names: str, place: str = "fresh") -> Path:
        from harness.models.catalog import find_model

        root = tmp_path / place
        made.append(root)
        for name in names:
            for source in find_model(name).sources:
                path = models.source_file(name, source.name)
                target = root / path.relative_to(models.cache.root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
        return root

    yield make
    for root in made:
        shutil.rmtree(root, ignore_errors=True)
