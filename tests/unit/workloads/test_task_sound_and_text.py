"""Voice activity, note transcription, sentence embedding, random inputs."""

from __future__ import annotations

import json
import wave
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.artifacts import Port
from harness.datasets.synthesised_notes import compose, frequency_hz, render, sine
from harness.errors import ModelError, UsageError
from harness.tasks import Sample, carried, create
from harness.tasks.note_transcription import sounding_runs
from harness.tasks.sentence_embedding import unpack_embedding


def record(path: Path, pcm: np.ndarray, rate: int, channels: int = 1) -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm.astype("<i2").tobytes())
    return str(path)


def test_a_voice_frame_is_512_new_samples_after_64_old_ones(tmp_path: Path) -> None:
    path = record(tmp_path / "a.wav", np.arange(2000), 16000)
    task = create("voice_activity", {})
    first = task.preprocess(task.decode(Sample("0", (path,), data={"start": 0})))["input"][0] * 32768
    second = task.preprocess(task.decode(Sample("1", (path,), data={"start": 512})))["input"][0] * 32768
    assert first[:64].tolist() == [0.0] * 64 and first[64:].tolist() == list(range(512))
    assert second.tolist() == list(range(448, 1024))


def test_a_voice_frame_beyond_the_end_is_filled_with_silence(tmp_path: Path) -> None:
    path = record(tmp_path / "a.wav", np.full(600, 7), 16000)
    task = create("voice_activity", {})
    frame = task.decode(Sample("1", (path,), data={"start": 512}))
    assert (frame[: 64 + 88] == np.float32(7 / 32768)).all() and not frame[64 + 88 :].any()


def test_state_goes_on_within_a_stream_and_begins_anew_with_the_next() -> None:
    task = create("voice_activity", {})
    inputs = task.preprocess(np.zeros(576, np.float32))
    previous = {"output": np.zeros((1, 1)), "stateN": np.full((2, 1, 128), 3.0, np.float32)}
    going_on = carried(task, Sample("1", data={"first": False}), inputs, previous)
    previous["stateN"][:] = 9.0  # a runtime writes its next outputs over its buffers
    assert (going_on["state"] == 3.0).all()
    assert not carried(task, Sample("0", data={"first": True}), inputs, previous)["state"].any()
    assert not carried(task, Sample("0"), inputs, None)["state"].any()


@pytest.mark.parametrize(("rate", "channels"), [(8000, 1), (16000, 2)])
def test_a_recording_of_another_kind_is_refused(tmp_path: Path, rate: int, channels: int) -> None:
    path = record(tmp_path / "a.wav", np.zeros(400), rate, channels)
    with pytest.raises(ModelError, match=f"has {channels} channels, {rate} Hz and 16 bit"):
        create("voice_activity", {}).decode(Sample("a", (path,)))


def test_a_file_that_is_no_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF....")
    with pytest.raises(ModelError, match=r"a\.wav cannot be read"):
        create("note_transcription", {}).decode(Sample("a", (str(tmp_path / "a.wav"),)))


def test_a_short_recording_is_followed_by_silence(tmp_path: Path) -> None:
    path = record(tmp_path / "a.wav", np.full(1000, 16384), 22050)
    task = create("note_transcription", {})
    audio = task.preprocess(task.decode(Sample("a", (path,))))["audio"]
    assert audio.shape == (1, 43844, 1)
    assert (audio[0, :1000, 0] == 0.5).all() and not audio[0, 1000:].any()


def test_notes_are_the_runs_above_the_threshold() -> None:
    note = np.zeros((2, 172, 88), np.float32)
    note[0, 10:15, 40] = 0.3
    note[0, 20:22, 40] = 0.9
    note[0, 0:172, 3] = 0.31
    note[0, 50, 7] = 0.29
    first, second = create("note_transcription", {}).postprocess({"note": note})
    assert first == {"notes": [[3, 0, 172], [40, 10, 15], [40, 20, 22]]} and second == {"notes": []}
    longer = create("note_transcription", {"minimum_frames": 3}).postprocess({"note": note})[0]
    assert longer == {"notes": [[3, 0, 172], [40, 10, 15]]}


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=20))
def test_runs_say_exactly_what_sounded(rows: list[list[bool]]) -> None:
    active = np.array(rows)
    drawn = np.zeros_like(active)
    runs = sounding_runs(active, 1)
    for key, first, end in runs:
        assert not drawn[first:end, key].any() and (end == len(rows) or not active[end, key])
        drawn[first:end, key] = True
    assert (drawn == active).all() and runs == sorted(runs)


@pytest.mark.parametrize("midi", [21, 36, 57, 60, 69, 84, 108])
def test_frequencies_are_those_of_equal_temperament(midi: int) -> None:
    assert frequency_hz(midi) == pytest.approx(440.0 * 2.0 ** ((midi - 69) / 12), rel=1e-12)


def test_the_exactly_rounded_sine_is_a_sine() -> None:
    turns = np.linspace(-3, 40, 50001)
    assert np.abs(sine(turns) - np.sin(2 * np.pi * turns)).max() < 1e-7


def test_the_synthesised_window_sounds_its_notes() -> None:
    """The spectrum of the middle of each lowest note has its peak at that note's frequency."""
    pcm = render(0).astype(float)
    notes = compose(0)
    alone = [n for n in notes if not any(o is not n and o.first < n.end and n.first < o.end for o in notes)]
    for note in alone or notes[:1]:
        part = pcm[note.first + 500 : note.end - 700]
        spectrum = np.abs(np.fft.rfft(part * np.hanning(part.size), 1 << 17))
        peak = spectrum.argmax() * 22050 / (1 << 17)
        assert peak == pytest.approx(440.0 * 2.0 ** ((note.midi - 69) / 12), rel=0.03)


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    made = Tokenizer(WordLevel({"[PAD]": 0, "[UNK]": 1, "good": 2, "bad": 3}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    return str(tmp_path / "tokenizer.json")


def test_texts_are_filled_and_cut_to_one_length(tokenizer: str) -> None:
    task = create("sentence_embedding", {"tokenizer": tokenizer, "length": 4})
    short = task.preprocess(task.decode(Sample("a", data={"text": "good bad"})))
    long = task.preprocess("good good bad bad good")
    assert short["input_ids"].tolist() == [[2, 3, 0, 0]] and short["attention_mask"].tolist() == [[1, 1, 0, 0]]
    assert long["input_ids"].tolist() == [[2, 2, 3, 3]] and long["attention_mask"].tolist() == [[1, 1, 1, 1]]
    assert {array.dtype for array in short.values()} == {np.dtype(np.int64)}


def test_an_embedding_survives_its_packing() -> None:
    vectors = np.random.RandomState(0).randn(2, 384).astype(np.float32)
    packed = json.loads(json.dumps(create("sentence_embedding", {}).postprocess({"embedding": vectors})))
    assert (unpack_embedding(packed[1]) == vectors[1]).all()


def test_a_missing_or_broken_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match=r"t\.json cannot be read"):
        create("sentence_embedding", {"tokenizer": str(tmp_path / "t.json")}).preprocess("x")
    with pytest.raises(UsageError, match="needs the parameter tokenizer"):
        create("sentence_embedding", {}).preprocess("x")


PORTS = (
    Port("x", "x", "float32", (0, 3, 8, 8), "nhwc"),
    Port("ids", "ids", "int32", (0, 16)),
    Port("mask", "mask", "bool", (0, 16)),
    Port("half", "half", "float16", (2,)),
)


def test_random_inputs_have_the_ports_shapes_and_types_and_come_again() -> None:
    parameters = {"ports": [asdict(port) for port in PORTS], "ranges": {"ids": [5, 9]}}
    task = create("random_inputs", json.loads(json.dumps(parameters)))
    one, again, other = (task.preprocess(task.decode(Sample("a", data={"seed": seed}))) for seed in (1, 1, 2))
    assert [(array.shape, array.dtype.name) for array in one.values()] == [
        ((1, 3, 8, 8), "float32"),
        ((1, 16), "int32"),
        ((1, 16), "bool"),
        ((2,), "float16"),
    ]
    assert one["ids"].min() >= 5 and one["ids"].max() <= 8 and one["mask"].all()
    assert all((one[name] == again[name]).all() for name in one) and (one["x"] != other["x"]).any()


def test_random_integers_are_safe_as_indices_of_the_smallest_embedding() -> None:
    task = create("random_inputs", {"ports": [asdict(PORTS[1])]})
    assert set(task.preprocess(task.decode(Sample("a", data={"seed": 3})))["ids"].ravel()) <= {0, 1}


def test_outputs_that_are_not_finite_are_said_and_still_json() -> None:
    task = create("random_inputs", {"ports": [asdict(PORTS[0])]})
    (found, _) = task.postprocess({"y": np.array([[1.0], [np.nan]]), "n": np.array([[2], [4]])})
    assert json.loads(json.dumps(found, allow_nan=False)) == {
        "y": {"mean": None, "finite": False},
        "n": {"mean": 3.0, "finite": True},
    }


def test_a_sample_travels_as_json() -> None:
    sample = Sample("a", ("/x.jpg",), label=[1, 2], data={"start": 5})
    assert Sample.from_json(json.loads(json.dumps(asdict(sample)))) == sample
