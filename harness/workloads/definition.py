"""What a workload is, and the strict reader of its table: the catalogue's files and users' [[workload]] tables are alike.

name = "my-classifier"                        # in the catalogue or a suite file
title = "Our product classifier"              # for people; the name, if left out
family = "efficientnet-lite0"                 # what it may be compared with; the name, if left out
task = "image_classification"
model = "efficientnet-lite0"                  # of the catalogue, or { path = "model.onnx", format = "onnx",
                                                  #      precision = "fp32", tensors = { image = "x", logits = "y" } }
dataset = { name = "products", folder = "photos", labels = "labels.tsv", limit = 1000 }
latency_samples = "photos"                    # "dataset", "random", or a dataset's name
scenarios = ["single_stream", "offline"]
metric = "top1"
quality_target = 0.99                         # share of the fp32 reference that must be kept
latency_limit_ms = 15.0                       # what p99 must keep under load, for the server scenario
parameters = { size = 224, resize = 256, mean = 127.0, std = 128.0 }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.datasets.catalogue import DATASETS, OWN_FOLDER_TASKS, PREFERABLE, TASKS_OF, UNLABELLED
from harness.datasets.specification import DatasetSpec
from harness.errors import UsageError
from harness.tasks import TASKS, create
from harness.tasks.metrics import METRICS
from harness.toml_files import TomlFile, read_toml

if TYPE_CHECKING:
    from harness.models.user_model import UserModel

SCENARIOS = ("single_stream", "offline", "multi_stream", "server", "duty_cycle", "sustained", "cold_start")
# One request after another, so that a state can go on from call to call.
STREAM_SCENARIOS = ("single_stream", "duty_cycle", "sustained", "cold_start")
LATENCY_LIMITS_MS = (0.001, 3_600_000.0)
FORMATS = ("onnx", "openvino", "tflite", "coreml")
KEYS = (
    "name", "title", "family", "task", "model", "dataset", "latency_samples", "scenarios", "metric", "quality_target",
    "latency_limit_ms", "parameters", "energy", "note", "accuracy_reason",
)  # fmt: skip
LATENCY_SOURCES = ("dataset", "random")

Key = tuple[str | int, ...]


@dataclass(frozen=True)
class Workload:
    """A task with its model family, data, metric, quality target, and the scenarios it allows."""

    name: str
    title: str
    family: str  # only workloads of one family stand beside each other
    task: str
    model: str | UserModel
    dataset: DatasetSpec | None = None  # labelled data for accuracy
    latency_samples: str = "dataset"  # where the timed loop's samples come from: "dataset", "random", a dataset's name
    scenarios: tuple[str, ...] = SCENARIOS
    metric: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the task
    quality_target: float | None = None  # share of the fp32 reference's accuracy that must be kept
    energy: bool = True  # False: the network's data are not natural, and its power not to be compared
    note: str | None = None
    accuracy_reason: str | None = None  # why accuracy is not measured, where it is not
    latency_limit_ms: float | None = None  # what p99 must keep under the server's load; None: no limit is known
    tensors: Mapping[str, str] = field(default_factory=dict)  # role -> tensor of the user's own model file


def workload_from_table(
    table: Any, document: TomlFile, key: Key = (), known_models: tuple[str, ...] | None = None, check: bool = True
) -> Workload:
    """Read one workload from a parsed table that stands at `key` of `document`.

    Relative paths are taken from the document's folder. `known_models` are the catalogue's names, where the caller has them;
    `check` tries the parameters on the task itself. Raises SuiteError that names file, line, key and what is allowed.
    """
    document.check_keys(key, table, KEYS)
    name = _text(table, "name", document, key)
    if not all(letter.isalnum() or letter in "-_." for letter in name):
        raise document.error((*key, "name"), f"the name {name!r} may hold letters, digits, '-', '_' and '.' only.")
    task = _text(table, "task", document, key)
    if task not in TASKS:
        raise document.error((*key, "task"), f"there is no task {task!r}.", TASKS)
    metric = table.get("metric")
    if metric is not None and metric not in METRICS.get(task, ()):
        raise document.error((*key, "metric"), f"the task {task} has no metric {metric!r}.", METRICS.get(task, ()))
    dataset = _dataset(table["dataset"], task, document, (*key, "dataset")) if "dataset" in table else None
    if metric is not None and dataset is None:
        raise document.error((*key, "metric"), f"the metric {metric} needs a dataset.")
    if metric is not None and dataset is not None and dataset.name in UNLABELLED:
        raise document.error((*key, "dataset"), f"{dataset.name} has no labels, which the metric {metric} needs.")
    parameters = table.get("parameters", {})
    document.check_keys((*key, "parameters"), parameters, parameters if isinstance(parameters, dict) else ())
    stream = False
    if check and task != "random_inputs":
        try:
            stream = bool(create(task, parameters).carry)
        except UsageError as error:
            raise document.error((*key, "parameters"), str(error)) from error
    return Workload(
        name=name,
        title=_text(table, "title", document, key, name),
        family=_text(table, "family", document, key, name),
        task=task,
        model=_model(table.get("model"), document, (*key, "model"), known_models),
        tensors=_tensors(table.get("model"), document, (*key, "model")),
        dataset=dataset,
        latency_samples=_latency_samples(table, task, dataset, document, key),
        scenarios=_scenarios(table.get("scenarios"), stream, document, (*key, "scenarios")),
        metric=metric,
        parameters=parameters,
        quality_target=_share(table.get("quality_target"), document, (*key, "quality_target")),
        latency_limit_ms=_limit(table.get("latency_limit_ms"), document, (*key, "latency_limit_ms")),
        energy=_flag(table, "energy", document, key),
        note=_optional_text(table, "note", document, key),
        accuracy_reason=_optional_text(table, "accuracy_reason", document, key),
    )


@cache
def load_workloads() -> Mapping[str, Workload]:
    """Return the catalogue's workloads by name, in the order of their files' names."""
    found: dict[str, Workload] = {}
    with as_file(files("harness.workloads") / "catalog") as folder:
        for path in sorted(folder.glob("*.toml")):
            document = read_toml(path)
            workload = workload_from_table(document.data, document, check=False)
            found[workload.name] = workload
    return found


def _dataset(value: Any, task: str, document: TomlFile, key: Key) -> DatasetSpec:
    table = {"name": value} if isinstance(value, str) else value
    document.check_keys(key, table, ("name", "folder", "labels", "limit", "prefer"))
    name = _text(table, "name", document, key)
    folder = _path(table, "folder", document, key)
    labels = _path(table, "labels", document, key)
    if folder is None:
        if name not in DATASETS:
            fix = (*DATASETS, 'or a folder of your own: { name = "...", folder = "..." }')
            raise document.error((*key, "name"), f"there is no dataset {name!r}.", fix)
        if labels is not None:
            raise document.error((*key, "labels"), "labels stand beside a folder only.")
        if task not in TASKS_OF[name]:
            fitting = [other for other, tasks in TASKS_OF.items() if task in tasks]
            raise document.error((*key, "name"), f"the dataset {name} is not for the task {task}.", fitting)
    elif name in DATASETS:
        raise document.error((*key, "name"), f"{name!r} is a dataset of the catalogue; give your folder another name.")
    elif task not in OWN_FOLDER_TASKS:
        what = f"a folder of your own cannot hold the labels of the task {task}."
        raise document.error((*key, "folder"), what, [other for other, tasks in TASKS_OF.items() if task in tasks])
    prefer = table.get("prefer")
    if prefer is not None and prefer not in PREFERABLE:
        raise document.error((*key, "prefer"), f"{prefer!r} cannot be preferred.", PREFERABLE)
    limit = table.get("limit")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise document.error((*key, "limit"), f"limit must be a whole number of at least 1, not {limit!r}.")
    return DatasetSpec(name, folder, labels, limit, prefer)


def _model(value: Any, document: TomlFile, key: Key, known: tuple[str, ...] | None) -> str | UserModel:
    if isinstance(value, str):
        if known is not None and value not in known:
            raise document.error(key, f"there is no model {value!r}.", (*known, 'or { path = "...", format = "..." }'))
        return value
    if not isinstance(value, dict):
        what = "the model must be a name of the catalogue"
        raise document.error(key, f'{what}, or {{ path = "...", format = "..." }}.', known)
    document.check_keys(key, value, ("path", "format", "precision", "tensors"))
    path = _path(value, "path", document, key)
    if path is None:
        raise document.error(key, "the model needs a path.")
    model_format = value.get("format")
    if model_format not in FORMATS:
        raise document.error((*key, "format"), f"there is no model format {model_format!r}.", FORMATS)
    from harness.models.user_model import UserModel

    return UserModel(path=path, format=model_format, precision=_text(value, "precision", document, key, "fp32"))


def _tensors(value: Any, document: TomlFile, key: Key) -> dict[str, str]:
    table = value.get("tensors", {}) if isinstance(value, dict) else {}
    document.check_keys((*key, "tensors"), table, table if isinstance(table, dict) else ())
    return {role: _text(table, role, document, (*key, "tensors")) for role in table}


def _latency_samples(
    table: Mapping[str, Any], task: str, dataset: DatasetSpec | None, document: TomlFile, key: Key
) -> str:
    value = table.get("latency_samples", "random" if dataset is None else "dataset")
    fitting = [name for name, tasks in TASKS_OF.items() if task in tasks]
    if value not in LATENCY_SOURCES and value not in fitting:
        what = f"there are no latency samples {value!r} for the task {task}."
        raise document.error((*key, "latency_samples"), what, (*LATENCY_SOURCES, *fitting))
    if value == "dataset" and dataset is None:
        raise document.error((*key, "latency_samples"), "there is no dataset to take latency samples from.")
    return str(value)


def _scenarios(value: Any, stream: bool, document: TomlFile, key: Key) -> tuple[str, ...]:
    """A stream, whose state goes on from call to call, has no several requests at once."""
    allowed = STREAM_SCENARIOS if stream else SCENARIOS
    value = list(allowed) if value is None else value
    if not isinstance(value, list) or not value:
        raise document.error(key, "scenarios must be a list that is not empty.", allowed)
    for name in value:
        if name not in allowed:
            what = "this task has no scenario" if name in SCENARIOS else "there is no scenario"
            raise document.error(key, f"{what} {name!r}.", allowed)
    return tuple(dict.fromkeys(value))


def _share(value: Any, document: TomlFile, key: Key) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value <= 1.0:
        raise document.error(key, f"must be a number above 0 and at most 1, such as 0.99, not {value!r}.")
    return float(value)


def _limit(value: Any, document: TomlFile, key: Key) -> float | None:
    if value is None:
        return None
    low, high = LATENCY_LIMITS_MS
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise document.error(key, f"latency_limit_ms must be a number from {low:g} to {high:g}, not {value!r}.")
    return float(value)


def _flag(table: Mapping[str, Any], name: str, document: TomlFile, key: Key) -> bool:
    value = table.get(name, True)
    if not isinstance(value, bool):
        raise document.error((*key, name), f"{name} must be true or false, not {value!r}.", ("true", "false"))
    return value


def _text(table: Mapping[str, Any], name: str, document: TomlFile, key: Key, default: str | None = None) -> str:
    value = table.get(name, default)
    if value is None:
        raise document.error(key, f"the key {name!r} is missing.")
    if not isinstance(value, str) or not value.strip():
        raise document.error((*key, name), f"{name} must be a text that is not empty, not {value!r}.")
    return value


def _optional_text(table: Mapping[str, Any], name: str, document: TomlFile, key: Key) -> str | None:
    return _text(table, name, document, key) if name in table else None


def _path(table: Mapping[str, Any], name: str, document: TomlFile, key: Key) -> Path | None:
    if name not in table:
        return None
    return document.path.parent.absolute() / Path(_text(table, name, document, key)).expanduser()
