"""The calibration data as they really are: the pinned ones, and nothing of what accuracy is measured on."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from harness.datasets import DatasetSpec, open_calibration, open_dataset
from harness.datasets.catalogue import CALIBRATION, DATASETS
from harness.datasets.definition import contents_of
from harness.folders import cache_dir
from harness.models.catalog import catalogue
from harness.tasks import create
from harness.workloads.definition import load_workloads


@pytest.mark.slow
def test_they_are_the_pinned_ones_and_share_nothing_with_evaluation_data() -> None:
    evaluated = {
        content
        for name in DATASETS
        if name != "imagenet-val"
        for content in contents_of(open_dataset(DatasetSpec(name), cache=cache_dir()))
    }
    found = {name: open_calibration(name, cache=cache_dir()) for name in CALIBRATION}
    for name, dataset in found.items():
        assert len(dataset.samples) >= 500, name
        assert not evaluated & set(contents_of(dataset)), name
    for entry in catalogue().values():
        assert entry.calibration is not None
        dataset = found[entry.calibration.dataset]
        assert dataset.identity == f"{entry.calibration.dataset}@{entry.calibration.digest}"


@pytest.mark.parametrize("name", ["more-faces", "more-notes"])
def test_what_is_made_when_read_fits_its_task_and_is_the_same_each_time(name: str) -> None:
    dataset = open_calibration(name, cache=cache_dir())
    entry = next(e.calibration for e in catalogue().values() if e.calibration and e.calibration.dataset == name)
    workload = load_workloads()[entry.workload]
    task = create(workload.task, workload.parameters)
    assert dataset.decode is not None
    first, again, other = (
        task.preprocess(dataset.decode(sample)) for sample in (*dataset.samples[:1] * 2, dataset.samples[1])
    )
    for role, array in first.items():
        assert (array == again[role]).all() and (array != other[role]).any()
        assert np.isfinite(array).all() and array.std() > 0


def test_a_composed_scene_is_a_picture_of_the_networks_size() -> None:
    dataset = open_calibration("more-faces", cache=cache_dir())
    assert dataset.decode is not None
    picture = dataset.decode(dataset.samples[7])
    assert isinstance(picture, Image.Image) and (picture.size, picture.mode) == ((640, 480), "RGB")
