"""The datasets as a new machine fetches them: real packages, through apt and pip, into an empty cache."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from harness.datasets import DatasetSpec, latency_samples, open_dataset
from harness.errors import ModelError
from harness.tasks import create
from harness.workloads.definition import load_workloads

pytestmark = pytest.mark.slow


def test_stamps_are_fetched_once_and_then_need_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_dataset(DatasetSpec("stamps-imagenet"), cache=tmp_path)
    assert len(first.samples) == 113 and first.identity == "stamps-imagenet@8587d3537f3e12b1"
    with Image.open(first.samples[0].files[0]) as picture:
        assert picture.format == "PNG"
    monkeypatch.setenv("PATH", "/nowhere")
    assert open_dataset(DatasetSpec("stamps-imagenet"), cache=tmp_path, offline=True) == first
    assert [path.name for path in (tmp_path / "datasets").iterdir()] == ["stamps-imagenet"]  # no scratch is left


def test_stamps_come_without_apts_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a fresh container: apt's own lists are empty, private ones are fetched."""
    configuration = tmp_path / "apt.conf"
    (tmp_path / "empty" / "partial").mkdir(parents=True)
    configuration.write_text(f'Dir::State::Lists "{tmp_path / "empty"}";\n', encoding="utf-8")
    monkeypatch.setenv("APT_CONFIG", str(configuration))
    assert len(open_dataset(DatasetSpec("stamps-imagenet"), cache=tmp_path / "cache").samples) == 113


def test_a_debian_package_without_network_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = tmp_path / "apt.conf"
    configuration.write_text(
        'Acquire::http::Proxy "http://127.0.0.1:9";\nAcquire::https::Proxy "http://127.0.0.1:9";\n'
        'Acquire::Retries "0";\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("APT_CONFIG", str(configuration))
    with pytest.raises(ModelError, match=r"tuxpaint-stamps-default for the dataset stamps-imagenet cannot be fetched"):
        open_dataset(DatasetSpec("stamps-imagenet"), cache=tmp_path / "cache")


def test_voices_are_fetched_and_doubled_to_16_khz(tmp_path: Path) -> None:
    dataset = open_dataset(DatasetSpec("prompts-and-music"), cache=tmp_path)
    assert dataset.identity == "prompts-and-music@1e5fdadce1e085d7"
    clips = {sample.data["clip"]: sample.label for sample in dataset.samples}
    assert (sum(clips.values()), len(clips)) == (20, 36)
    with wave.open(dataset.samples[0].files[0]) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
    assert sum(bool(sample.data["first"]) for sample in dataset.samples) == 36


def test_faces_are_composed_at_the_places_that_the_labels_say(tmp_path: Path) -> None:
    """Grey patches in coloured photographs: inside a label the picture has no colour but the noise's."""
    dataset = open_dataset(DatasetSpec("composed-faces"), cache=tmp_path)
    assert dataset.identity == "composed-faces@e549039cb61e33fa"
    assert sum(len(sample.label) for sample in dataset.samples) == 96
    with Image.open(dataset.samples[0].files[0]) as picture:
        pixels = np.asarray(picture, dtype=float)
    for left, top, right, bottom in dataset.samples[0].label:
        inside = pixels[top:bottom, left:right].reshape(-1, 3).mean(axis=0)
        assert inside.max() - inside.min() < 6
        assert right - left in (25, 49, 73) and bottom - top == right - left


def test_tweets_are_fetched_and_nearly_balanced(tmp_path: Path) -> None:
    dataset = open_dataset(DatasetSpec("rated-tweets", limit=1000), cache=tmp_path)
    assert dataset.name == "rated-tweets-1000" and len(dataset.samples) == 1000
    assert 0.6 < sum(sample.label for sample in dataset.samples) / 1000 < 0.75


def test_photos_are_real_jpegs_that_the_timed_loop_decodes(tmp_path: Path) -> None:
    workload = load_workloads()["efficientnet-lite0"]
    pool = latency_samples(workload, cache=tmp_path)
    assert pool.dataset is not None and pool.dataset.startswith("photos@") and len(pool.samples) == 8
    task = create(workload.task, workload.parameters)
    for sample in pool.samples:
        with Image.open(sample.files[0]) as picture:
            assert picture.format == "JPEG"
        assert task.preprocess(task.decode(sample))["image"].shape == (1, 3, 224, 224)
