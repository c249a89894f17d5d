"""Datasets of the user's own, the cache's folders, and the pool of the timed loop. Nothing is fetched here."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from harness.datasets import DatasetSpec, latency_samples, open_dataset
from harness.datasets.composed_faces import enlarged
from harness.datasets.definition import Dataset, subset
from harness.datasets.files import kept_folder
from harness.datasets.rated_texts import parse_ratings
from harness.datasets.voices import doubled, noise
from harness.errors import ModelError
from harness.tasks.base import Sample


@dataclass
class Configured:
    datasets: dict[str, Path] = field(default_factory=dict)


def fill(folder: Path, names: list[str]) -> Path:
    for shade, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 20), (shade, 0, 0)).save(folder / name)
    return folder


def opened(tmp_path: Path, spec: DatasetSpec, **configured: Path) -> Dataset:
    return open_dataset(spec, cache=tmp_path / "cache", offline=True, configuration=Configured(configured))


def test_sub_folders_are_classes_in_sorted_order(tmp_path: Path) -> None:
    fill(tmp_path / "own", ["dog/1.jpg", "cat/2.png", "cat/1.png"])
    (tmp_path / "own" / "cat" / "notes.txt").write_text("not a picture")
    dataset = opened(tmp_path, DatasetSpec("pets", folder=tmp_path / "own"))
    assert [(s.id, s.label) for s in dataset.samples] == [("cat/1.png", 0), ("cat/2.png", 0), ("dog/1.jpg", 1)]
    assert all(Path(s.files[0]).is_absolute() and Path(s.files[0]).is_file() for s in dataset.samples)


def test_numbered_sub_folders_are_those_classes(tmp_path: Path) -> None:
    fill(tmp_path / "own", ["207/a.jpg", "9/b.jpg"])
    dataset = opened(tmp_path, DatasetSpec("dogs", folder=tmp_path / "own"))
    assert [(s.id, s.label) for s in dataset.samples] == [("207/a.jpg", 207), ("9/b.jpg", 9)]


def test_a_table_may_allow_several_classes(tmp_path: Path) -> None:
    fill(tmp_path / "own", ["a.jpg", "sub/b c.jpg"])
    table = tmp_path / "labels.tsv"
    table.write_text("file\tclass\n# mine\na.jpg\t3,4\n\nsub/b c.jpg\t7\n", encoding="utf-8")
    dataset = opened(tmp_path, DatasetSpec("mine", folder=tmp_path / "own", labels=table))
    assert [(s.id, s.label) for s in dataset.samples] == [("a.jpg", [3, 4]), ("sub/b c.jpg", 7)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a.jpg\tdog", "line 2: 'dog' is no class number"),
        ("b.jpg\t1", r"line 2: there is no file 'b\.jpg'"),
        ("../secret.jpg\t1", "line 2: .* lies outside"),
        ("/etc/passwd\t1", "line 2: .* lies outside"),
    ],
)
def test_a_wrong_line_of_labels_is_named(tmp_path: Path, line: str, said: str) -> None:
    fill(tmp_path / "own", ["a.jpg"])
    (tmp_path / "secret.jpg").write_bytes(b"x")
    (tmp_path / "labels.tsv").write_text(f"a.jpg\t1\n{line}\n", encoding="utf-8")
    with pytest.raises(ModelError, match=said):
        opened(tmp_path, DatasetSpec("mine", folder=tmp_path / "own", labels=tmp_path / "labels.tsv"))


def test_a_folder_that_is_not_there_or_empty_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        opened(tmp_path, DatasetSpec("mine", folder=tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="holds no pictures"):
        opened(tmp_path, DatasetSpec("mine", folder=tmp_path / "empty"))


def test_the_digest_follows_contents_and_labels_not_the_place(tmp_path: Path) -> None:
    names = ["a/1.jpg", "b/2.jpg"]
    first = opened(tmp_path, DatasetSpec("mine", folder=fill(tmp_path / "one", names)))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert opened(tmp_path, DatasetSpec("mine", folder=tmp_path / "two")).digest == first.digest
    Image.new("RGB", (20, 20), (99, 0, 0)).save(tmp_path / "two" / "a" / "1.jpg")
    assert opened(tmp_path, DatasetSpec("mine", folder=tmp_path / "two")).digest != first.digest
    (tmp_path / "one" / "b").rename(tmp_path / "one" / "c")
    (tmp_path / "one" / "aa").mkdir()
    assert opened(tmp_path, DatasetSpec("mine", folder=tmp_path / "one")).digest != first.digest


def test_a_changed_picture_is_hashed_again_and_a_damaged_memory_ignored(tmp_path: Path) -> None:
    spec = DatasetSpec("mine", folder=fill(tmp_path / "own", ["a/1.jpg"]))
    first = opened(tmp_path, spec)
    (memory,) = (tmp_path / "cache" / "datasets" / "hashes").glob("*.json")
    memory.write_text('{"broken"', encoding="utf-8")
    assert opened(tmp_path, spec).digest == first.digest
    Image.new("RGB", (21, 20)).save(tmp_path / "own" / "a" / "1.jpg")
    assert opened(tmp_path, spec).digest != first.digest


def test_a_limit_takes_a_fixed_part_and_says_so(tmp_path: Path) -> None:
    spec = DatasetSpec("mine", folder=fill(tmp_path / "own", [f"a/{n:02}.jpg" for n in range(20)]), limit=5)
    one, again = opened(tmp_path, spec), opened(tmp_path, spec)
    assert one == again and len(one.samples) == 5 and one.name == "mine-5"
    assert one.note is not None and "5 of 20 samples" in one.note
    assert one.files is not None and set(one.files) == {s.files[0] for s in one.samples}
    assert subset(one, 10) is one


def test_imagenet_is_read_as_mlperf_lays_it_out(tmp_path: Path) -> None:
    names = [f"ILSVRC2012_val_{n:08}.JPEG" for n in range(1, 7)]
    folder = fill(tmp_path / "imagenet", names)
    (folder / "val_map.txt").write_text("".join(f"{name} {n}\n" for n, name in enumerate(names)), encoding="utf-8")
    spec = DatasetSpec("stamps-imagenet", prefer="imagenet-val")
    dataset = opened(tmp_path, spec, imagenet=folder)
    assert dataset.name == "imagenet-val-6" and [s.label for s in dataset.samples] == list(range(6))
    assert dataset.note is not None and "holds 6 pictures; the complete set has 50000" in dataset.note
    limited = opened(tmp_path, DatasetSpec("imagenet-val", limit=2), imagenet=folder)
    assert limited.name == "imagenet-val-2" and len(limited.samples) == 2


def test_imagenet_pictures_may_lie_in_val(tmp_path: Path) -> None:
    folder = fill(tmp_path / "imagenet", ["val/a.JPEG"])
    (folder / "val_map.txt").write_text("a.JPEG 65\n", encoding="utf-8")
    assert opened(tmp_path, DatasetSpec("imagenet-val"), imagenet=folder).samples[0].label == 65


def test_imagenet_that_is_not_configured_says_how(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r'imagenet = "/that/folder" under \[datasets\] in config\.toml'):
        opened(tmp_path, DatasetSpec("imagenet-val"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"has no val_map\.txt"):
        opened(tmp_path, DatasetSpec("imagenet-val"), imagenet=tmp_path / "empty")


@pytest.mark.parametrize("name", ["stamps-imagenet", "prompts-and-music", "photos", "rated-tweets"])
def test_offline_and_not_cached_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError) as caught:
        opened(tmp_path, DatasetSpec(name))
    assert caught.value.fix and not (tmp_path / "cache" / "datasets" / name).exists()
    assert "offline" in str(caught.value) or "ruled out" in str(caught.value)


def test_a_debian_dataset_elsewhere_says_what_else_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelError, match=r"not available here.*tuxpaint-stamps-default.*labelled folder of your own"):
        open_dataset(DatasetSpec("stamps-imagenet"), cache=tmp_path / "cache")
    assert list((tmp_path / "cache" / "datasets").iterdir()) == []


def test_an_unknown_dataset_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no dataset 'stamps'.*stamps-imagenet"):
        opened(tmp_path, DatasetSpec("stamps"))


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(ModelError, match=r"cannot be used: .*WEIGHBRIDGE_CACHE"):
        opened(tmp_path, DatasetSpec("synthesised-notes"))


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def half(folder: Path) -> None:
        (folder / "a").write_text("1")
        raise ModelError("the network went away")

    with pytest.raises(ModelError, match="network"):
        kept_folder(tmp_path, "set", half)
    assert list((tmp_path / "datasets").iterdir()) == []


def test_a_folder_is_made_once_and_again_when_damaged(tmp_path: Path) -> None:
    made = []

    def make(folder: Path) -> None:
        made.append(1)
        (folder / "a").write_text("content")

    for _ in range(2):
        folder, hashes = kept_folder(tmp_path, "set", make)
    assert len(made) == 1 and set(hashes) == {"a"}
    (folder / "a").write_text("consent")
    assert kept_folder(tmp_path, "set", make)[1] == hashes and len(made) == 2
    (folder / "a").unlink()
    assert kept_folder(tmp_path, "set", make)[1] == hashes and (folder / "a").read_text() == "content"


def test_processes_at_the_same_time_make_a_folder_once(tmp_path: Path) -> None:
    """Three processes ask at once; each appends to a log outside when it makes the folder."""
    code = (
        "import sys, time, pathlib\n"
        "from harness.datasets.files import kept_folder\n"
        "def make(folder):\n"
        "    open(sys.argv[2], 'a').write('made\\n')\n"
        "    time.sleep(0.2)\n"
        "    (folder / 'a').write_text('content')\n"
        "print(kept_folder(pathlib.Path(sys.argv[1]), 'set', make)[1]['a'])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "cache"), str(tmp_path / "log")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {process.communicate(timeout=60)[0].strip() for process in started}
    assert all(process.returncode == 0 for process in started)
    assert said == {hashlib.sha256(b"content").hexdigest()}
    assert (tmp_path / "log").read_text() == "made\n"


def test_a_file_that_is_not_the_pinned_one_is_refused(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "a").write_text("other")

    with pytest.raises(ModelError, match=f"a of the dataset set is not the expected one.*{'0' * 64}"):
        kept_folder(tmp_path, "set", make, {"a": "0" * 64})
    with pytest.raises(ModelError, match="none, the file is not there"):
        kept_folder(tmp_path, "set", make, {"b": "0" * 64})


def test_synthesised_notes_are_the_same_bytes_everywhere(tmp_path: Path) -> None:
    """The digest is part of every case's key: if this fails, results of two machines or months no longer meet."""
    dataset = opened(tmp_path, DatasetSpec("synthesised-notes"))
    assert len(dataset.samples) == 48
    assert dataset.identity == "synthesised-notes@881bf201e04d5326"


@dataclass
class Asked:
    dataset: DatasetSpec | None
    latency_samples: str


def test_the_pool_holds_at_most_32_real_samples(tmp_path: Path) -> None:
    asked = Asked(DatasetSpec("synthesised-notes"), "dataset")
    pool = latency_samples(asked, cache=tmp_path, offline=True)
    assert len(pool.samples) == 32 and not pool.random
    assert pool.dataset == "synthesised-notes@881bf201e04d5326"
    assert pool.files is not None and set(pool.files) == {s.files[0] for s in pool.samples}


def test_random_inputs_stand_in_and_the_pool_says_why(tmp_path: Path) -> None:
    pool = latency_samples(Asked(None, "photos"), cache=tmp_path, offline=True)
    assert pool.random and pool.dataset is None and len(pool.samples) == 32
    assert pool.note is not None and "Inputs are random" in pool.note and "china.jpg" in pool.note
    assert len({s.data["seed"] for s in pool.samples}) == 32


def test_random_inputs_that_were_asked_for_need_no_excuse(tmp_path: Path) -> None:
    pool = latency_samples(Asked(None, "random"), cache=tmp_path)
    assert pool.random and pool.note is None


def test_ratings_become_labels_by_their_sign() -> None:
    text = "1\t2.5\tso happy\n2\t-1.1\tso\tsad\n3\t0.45\tso so\n4\t-0.5\tmeh\n"
    assert [(s.id, s.label, s.data["text"]) for s in parse_ratings(text)] == [
        ("1", True, "so happy"),
        ("2", False, "so\tsad"),
        ("4", False, "meh"),
    ]
    with pytest.raises(ModelError, match="Line 2"):
        parse_ratings("1\t2\tx\nbroken\n")


def test_doubling_the_rate_keeps_a_tone_where_it_is() -> None:
    """A 1 kHz tone at 8 kHz stays 1 kHz at 16 kHz, and its image at 7 kHz is 60 dB down."""
    tone = np.rint(12000 * np.sin(2 * np.pi * 1000 * np.arange(8000) / 8000)).astype(np.int16)
    twice = doubled(tone)
    spectrum = np.abs(np.fft.rfft(twice[1000:-1000].astype(float) * np.hanning(14000)))
    frequencies = np.fft.rfftfreq(14000, 1 / 16000)
    assert twice.size == 16000 and (twice[0::2] == tone).all()
    assert frequencies[spectrum.argmax()] == pytest.approx(1000, abs=2)
    assert spectrum[np.abs(frequencies - 7000) < 50].max() < spectrum.max() / 1000


def test_noises_differ_and_come_again() -> None:
    assert (noise(1) == noise(1)).all() and (noise(1) != noise(3)).any()
    assert all(noise(n).size == 48000 and 50 < noise(n).astype(float).std() < 8000 for n in range(6))


def test_a_subset_keeps_what_is_known_of_the_whole() -> None:
    whole = Dataset(
        "x", "X", "d" * 64, tuple(Sample(str(n)) for n in range(4)), licence="MIT", note="Careful.", files={}
    )
    part = subset(whole, 2)
    assert part.licence == "MIT" and part.note == "Careful. 2 of 4 samples, chosen by a fixed seed."
    assert part.digest != whole.digest and subset(whole, 3).digest != part.digest


def test_patches_are_enlarged_linearly() -> None:
    """Between 0 and 30 with factor 3: 10 and 20; the corner points stay."""
    found = enlarged(np.array([[0, 30], [60, 90]]), 3)
    assert found.tolist() == [[0, 10, 20, 30], [20, 30, 40, 50], [40, 50, 60, 70], [60, 70, 80, 90]]
    assert enlarged(np.array([[1, 2], [3, 4]]), 1).tolist() == [[1, 2], [3, 4]]
