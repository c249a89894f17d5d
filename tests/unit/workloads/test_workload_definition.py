"""The catalogue's workloads, and how a wrong workload table is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.artifacts import ModelFile, Port
from harness.datasets.catalogue import DATASETS, TASKS_OF, UNLABELLED
from harness.errors import ModelError, SuiteError
from harness.models.user_model import UserModel
from harness.records import Artifact
from harness.tasks import create
from harness.tasks.metrics import METRICS
from harness.toml_files import read_toml
from harness.workloads.definition import SCENARIOS, Workload, load_workloads, workload_from_table
from harness.workloads.preparation import fit_ports, random_parameters, task_parameters


def read(tmp_path: Path, text: str, **options: object) -> Workload:
    path = tmp_path / "suite.toml"
    path.write_text(text, encoding="utf-8")
    document = read_toml(path)
    return workload_from_table(document.data["workload"][0], document, ("workload", 0), **options)  # type: ignore[arg-type]


def test_the_catalogue_has_the_suite() -> None:
    assert list(load_workloads()) == [
        "basic-pitch",
        "centerface",
        "efficientnet-lite0",
        "minilm-l6",
        "resnet50-seeded",
        "resnet50-zoo",
        "silero-vad",
    ]


@pytest.mark.parametrize("workload", load_workloads().values(), ids=lambda workload: workload.name)
def test_a_catalogue_entry_is_complete(workload: Workload) -> None:
    create(workload.task, workload.parameters)
    if workload.metric is None:
        assert workload.accuracy_reason is not None and workload.accuracy_reason.startswith("not measured: ")
    else:
        assert workload.dataset is not None and workload.metric in METRICS[workload.task]
        assert workload.quality_target == 0.99


def test_the_two_resnets_are_one_family_under_two_names() -> None:
    seeded, zoo = load_workloads()["resnet50-seeded"], load_workloads()["resnet50-zoo"]
    assert seeded.family == zoo.family == "resnet50"
    assert "seeded weights" in seeded.title and "seeded" not in zoo.title
    assert not seeded.energy and zoo.energy and seeded.metric is None


def test_a_stream_has_no_batch() -> None:
    assert load_workloads()["silero-vad"].scenarios == ("single_stream", "duty_cycle", "sustained", "cold_start")


OWN = """
[[workload]]
name = "products"
task = "image_classification"
model = { path = "models/mine.onnx", format = "onnx", precision = "int8", tensors = { image = "x", logits = "y" } }
dataset = { name = "shelf", folder = "pictures", labels = "/abs/labels.tsv", limit = 100 }
metric = "top1"
scenarios = ["offline"]
quality_target = 0.98
parameters = { size = 192, resize = 192, mean = [1, 2, 3], std = 4.5 }
"""


def test_a_users_own_workload_needs_no_code(tmp_path: Path) -> None:
    workload = read(tmp_path, OWN)
    assert workload.model == UserModel(tmp_path / "models/mine.onnx", "onnx", precision="int8")
    assert workload.tensors == {"image": "x", "logits": "y"}
    assert workload.dataset is not None and workload.dataset.folder == tmp_path / "pictures"
    assert workload.dataset.labels == Path("/abs/labels.tsv") and workload.dataset.limit == 100
    assert (workload.title, workload.family, workload.latency_samples) == ("products", "products", "dataset")
    assert workload.scenarios == ("offline",) and workload.quality_target == 0.98 and workload.energy


def test_the_least_that_is_needed(tmp_path: Path) -> None:
    workload = read(tmp_path, '[[workload]]\nname = "x"\ntask = "image_classification"\nmodel = "efficientnet-lite0"\n')
    assert workload.dataset is None and workload.latency_samples == "random"
    assert workload.scenarios == SCENARIOS and workload.latency_limit_ms is None


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('metric = "top1"', 'metrik = "top1"', 7, "'metrik' is not known in workload.*Allowed: .*metric"),
        ('metric = "top1"', 'metric = "map"', 7, "no metric 'map'.*Allowed: top1"),
        ('task = "image_classification"', 'task = "images"', 4, "no task 'images'.*Allowed: image_classification"),
        ('task = "image_classification"', "", 2, "'task' is missing"),
        ('name = "products"', 'name = "pro/ducts"', 3, "'pro/ducts' may hold letters"),
        ('name = "products"', "name = 7", 3, "name must be a text"),
        ('format = "onnx"', 'format = "pt"', 5, "no model format 'pt'.*Allowed: onnx, openvino, tflite, coreml"),
        ('path = "models/mine.onnx", ', "", 5, "the model needs a path"),
        ('tensors = { image = "x"', "tensors = { image = 3", 5, "image must be a text"),
        ('["offline"]', '["ofline"]', 8, "no scenario 'ofline'.*Allowed: single_stream, offline"),
        ('["offline"]', "[]", 8, "scenarios must be a list"),
        ("0.98", "98", 9, "above 0 and at most 1"),
        ("{ size = 192, ", "{ size = -1, ", 10, "size .* must be a whole number"),
        ("std = 4.5", "sdt = 4.5", 10, "no parameter 'sdt'.*Allowed: .*std"),
        ("limit = 100", "limit = 0", 6, "limit must be a whole number of at least 1"),
        ('folder = "pictures", labels = "/abs/labels.tsv", ', "", 6, "no dataset 'shelf'.*Allowed: stamps-imagenet"),
        ('name = "shelf"', 'name = "photos"', 6, "'photos' is a dataset of the catalogue"),
        ("limit = 100", 'prefer = "photos"', 6, "'photos' cannot be preferred.*Allowed: imagenet-val"),
        (
            'metric = "top1"',
            'latency_samples = "none"',
            7,
            "no latency samples 'none'.*Allowed: dataset, random, stamps",
        ),
        ('metric = "top1"', 'latency_samples = "rated-tweets"', 7, "'rated-tweets' for the task image_classification"),
        ('metric = "top1"', 'energy = "no"', 7, "energy must be true or false"),
    ],
)
def test_a_wrong_table_is_answered_with_line_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    assert OWN.count(old) == 1
    with pytest.raises(SuiteError, match=said) as caught:
        read(tmp_path, OWN.replace(old, new))
    assert str(caught.value).startswith(f"{tmp_path / 'suite.toml'}, line {line}: ")


def test_an_own_stream_has_no_offline_scenario(tmp_path: Path) -> None:
    stream = '[[workload]]\nname = "x"\ntask = "voice_activity"\nmodel = "silero-vad"\n'
    assert read(tmp_path, stream).scenarios == ("single_stream", "duty_cycle", "sustained", "cold_start")
    with pytest.raises(SuiteError, match=r"line 5: this task has no scenario 'offline'.*Allowed: single_stream"):
        read(tmp_path, stream + 'scenarios = ["single_stream", "offline"]\n')


def test_a_model_that_the_catalogue_lacks_is_named(tmp_path: Path) -> None:
    text = '[[workload]]\nname = "x"\ntask = "image_classification"\nmodel = "resnet"\n'
    with pytest.raises(SuiteError, match=r"line 4: there is no model 'resnet'.*Allowed: a, b, or"):
        read(tmp_path, text, known_models=("a", "b"))


@pytest.mark.parametrize(
    ("task", "dataset", "said"),
    [
        ("voice_activity", '"photos"', "photos is not for the task voice_activity.*Allowed: prompts-and-music"),
        ("face_detection", '{ name = "f", folder = "x" }', "cannot hold the labels .* face_detection.*composed-faces"),
        ("image_classification", '"photos"', "photos has no labels, which the metric top1 needs"),
    ],
)
def test_data_must_fit_the_task(tmp_path: Path, task: str, dataset: str, said: str) -> None:
    metric = METRICS[task][0]
    text = f'[[workload]]\nname = "x"\ntask = "{task}"\nmodel = "a"\ndataset = {dataset}\nmetric = "{metric}"\n'
    with pytest.raises(SuiteError, match=f"line 5: .*{said}"):
        read(tmp_path, text)


def test_every_dataset_of_the_catalogue_is_for_a_task() -> None:
    assert set(TASKS_OF) == set(DATASETS) and set(UNLABELLED) <= set(DATASETS)
    assert {task for tasks in TASKS_OF.values() for task in tasks} == set(METRICS)


def test_a_metric_needs_a_dataset(tmp_path: Path) -> None:
    text = '[[workload]]\nname = "x"\ntask = "image_classification"\nmodel = "a"\nmetric = "top1"\n'
    with pytest.raises(SuiteError, match="line 5: the metric top1 needs a dataset"):
        read(tmp_path, text)


def model(inputs: list[Port], outputs: list[Port]) -> ModelFile:
    artifact = Artifact("onnx", "fp32", "0" * 64, 1, "m.onnx")
    return ModelFile(artifact, Path("m.onnx"), tuple(inputs), tuple(outputs))


def workload(task: str, **tensors: str) -> Workload:
    return Workload("w", "W", "w", task, UserModel(Path("m.onnx"), "onnx"), tensors=tensors)


def port(tensor: str, *shape: int) -> Port:
    return Port(tensor, tensor, "float32", shape)


def test_the_only_input_and_output_take_the_tasks_roles() -> None:
    fitted = fit_ports(workload("image_classification"), model([port("data", 0, 3, 224, 224)], [port("prob", 0, 1000)]))
    assert (fitted.inputs[0].role, fitted.outputs[0].role) == ("image", "logits")
    assert (fitted.inputs[0].tensor, fitted.inputs[0].layout) == ("data", "as_is")


def test_a_picture_with_channels_last_is_recognised() -> None:
    fitted = fit_ports(workload("image_classification"), model([port("x", 1, 192, 160, 3)], [port("y", 1, 10)]))
    assert fitted.inputs[0].shape == (1, 3, 192, 160) and fitted.inputs[0].layout == "nhwc"


def test_named_tensors_decide() -> None:
    files = model([port("x", 0, 3, 8, 8)], [port("features", 0, 64), port("scores", 0, 10)])
    fitted = fit_ports(workload("image_classification", logits="scores"), files)
    assert [p.role for p in fitted.outputs] == ["features", "logits"]
    with pytest.raises(ModelError, match=r"no output logits.*its outputs are features, scores.*tensors = \{ logits"):
        fit_ports(workload("image_classification"), files)


def test_roles_that_are_already_right_stay() -> None:
    files = model([port("input_ids", 0, 8), port("attention_mask", 0, 8)], [port("embedding", 0, 4)])
    assert fit_ports(workload("sentence_embedding"), files) == files


def test_the_tokenizer_comes_with_the_model() -> None:
    class Store:
        def source_file(self, model: str, name: str) -> Path:
            return Path("/cache") / model / name

    found = task_parameters(load_workloads()["minilm-l6"], Store())
    assert found == {"length": 128, "tokenizer": "/cache/minilm-l6/tokenizer"}
    with pytest.raises(ModelError, match="no tokenizer"):
        task_parameters(workload("sentence_embedding"), Store())


def test_random_parameters_make_a_task_for_any_model() -> None:
    import json

    parameters = json.loads(json.dumps(random_parameters(model([port("x", 0, 3, 4, 4)], [port("y", 0, 2)]))))
    task = create("random_inputs", parameters)
    assert task.preprocess(task.decode(load_sample()))["x"].shape == (1, 3, 4, 4)


def load_sample() -> object:
    from harness.tasks import Sample

    return Sample("a", data={"seed": 1})
