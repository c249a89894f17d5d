"""What MLPerf's benchmark folders are in our words. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Benchmark:
    """A benchmark folder: our workload, its family, dataset and metric (None where this importer does not know them)."""

    workload: str
    family: str
    title: str
    dataset: str | None
    metric: str | None
    precision: str = "unknown"  # of the artifact, where the folder's name states it
    stated: str | None = None  # the words that state it


# Precisions as folder and system names write them. TFLite's "float" is 32 bits wide.
_PRECISIONS = {"float": "fp32", "fp32": "fp32", "fp16": "fp16", "int8": "int8", "uint8": "uint8"}
_DATASETS = {"resnet50": ("imagenet-val", "top1"), "bert": ("squad-1.1", "f1"), "mobilenet": ("imagenet-val", "top1")}
_TITLES = {
    "resnet50": "ResNet-50 v1.5 (MLPerf)",
    "bert-99": "BERT-Large, 99 % accuracy target (MLPerf)",
    "bert-99.9": "BERT-Large, 99.9 % accuracy target (MLPerf)",
    "mobilenet-v2": "MobileNet v2 (MLPerf, open division)",
}


def benchmark_of(folder: str) -> Benchmark:
    """ "bert-99" -> family "bert"; "mobilenet-v2-precision_float-1.0-224" -> MobileNet v2 of a stated precision."""
    folder = folder.lower()
    stated = re.search(r"-precision_(?P<precision>[a-z0-9]+)", folder)
    name = folder[: stated.start()] if stated else folder
    dataset, metric = next((_DATASETS[key] for key in _DATASETS if name.startswith(key)), (None, None))
    return Benchmark(
        workload=f"mlperf-{name}",
        family=re.sub(r"-99(\.9)?$", "", name),
        title=_TITLES.get(name, f"{name} (MLPerf)"),
        dataset=dataset,
        metric=metric,
        precision=_PRECISIONS.get(stated["precision"], "unknown") if stated else "unknown",
        stated=stated.group().lstrip("-") if stated else None,
    )


def precision_in_name(system: str) -> str | None:
    """The precision that a submitter put into the system's name ("1-node-2S-SPR-PyTorch-INT8"); None where there is none."""
    words = re.split(r"[^a-z0-9]+", system.lower())
    found = {_PRECISIONS[word] for word in words if word in _PRECISIONS}
    return found.pop() if len(found) == 1 else None
