"""In which precision a compiled model's kernels compute, from the runtime model that OpenVINO gives after compiling.

Of each layer it tells `runtimePrecision`, the type of its first operand as the file has it, and `primitiveType`, the kernel
that was chosen, whose name ends with the type that it computes in. The two differ: a convolution whose weights the file
keeps in fp16 has the precision f16 and the kernel brgconv_avx512_f32. The kernel is what runs, with one exception: where
weights are kept in integers and the activations are floats, the CPU makes the activations int8 as they come, in groups of
DYNAMIC_QUANTIZATION_GROUP_SIZE (32 unless told), also where fp32 is asked for, and the kernel's name still ends with f32.
A test compares the error with numpy's. Such layers are called "mixed".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

KERNELS = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "i8": "int8", "u8": "int8"}  # by the end of a kernel's name
FLOATS = ("fp32", "fp16", "bf16")
WHOLE = ("i4", "u4", "i8", "u8")  # weights in integers, as `runtimePrecision` names them
MIXED = "mixed"
# Layers that multiply and add: what a network's precision is said of. The rest (additions, activations, pools) follows them,
# and among it, single bytes may be booleans.
MULTIPLYING = {
    "Convolution",
    "Deconvolution",
    "FullyConnected",
    "MatMul",
    "RNNCell",
    "RNNSeq",
    "MHA",
    "ScaledDotProductAttention",
}
# Layers that only hold or move data.
MOVING = {
    "Input",
    "Output",
    "Const",
    "Reorder",
    "Reshape",
    "Transpose",
    "Concatenation",
    "Split",
    "Convert",
    "Parameter",
}


@dataclass(frozen=True)
class LayerPrecisions:
    """How many layers compute in which precision: those that multiply, and the others."""

    multiplying: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    told: bool = False  # whether the compiled model named any layer

    @property
    def counts(self) -> dict[str, int]:
        """Layers by precision, without those whose bytes may be booleans."""
        floats = {name: count for name, count in self.others.items() if name in FLOATS}
        names = sorted({*self.multiplying, *floats})
        return {name: self.multiplying.get(name, 0) + floats.get(name, 0) for name in names}


def layer_precisions(layers: Iterable[tuple[str, str, str]], dynamic: bool = False) -> LayerPrecisions:
    """Count layers given as (layerType, primitiveType, runtimePrecision).

    `dynamic`: whether activations are made int8 as they come where the weights are integers.
    """
    multiplying: Counter[str] = Counter()
    others: Counter[str] = Counter()
    told = False
    for kind, kernel, operand in layers:
        told = True
        if kind in MOVING:
            continue
        end = kernel.rpartition("_")[2].lower()
        precision = KERNELS.get(end) or KERNELS.get(operand.lower())
        if dynamic and kind in MULTIPLYING and precision in FLOATS and operand.lower() in WHOLE:
            precision = MIXED
        if precision is not None:
            (multiplying if kind in MULTIPLYING else others)[precision] += 1
    return LayerPrecisions(dict(sorted(multiplying.items())), dict(sorted(others.items())), told)


def layers_of(runtime_model: Any) -> list[tuple[str, str, str]]:
    """Read a compiled model's `get_runtime_model()`. Empty where it does not tell."""
    found = []
    for node in runtime_model.get_ops():
        info = node.get_rt_info()
        try:
            found.append((_text(info, "layerType"), _text(info, "primitiveType"), _text(info, "runtimePrecision")))
        except KeyError:
            return []
    return found


def effective_precision(hint: str | None, layers: LayerPrecisions) -> str | None:
    """What the arithmetic runs in: the hint, unless the compiled layers say otherwise ("mixed" where they differ).

    None for a network that was seen to compute with neither floating-point nor quantised numbers, such as one of booleans: a
    hint is no evidence for it.
    """
    if not layers.told:
        return hint
    found = layers.multiplying or layers.counts
    if not found:
        return None
    if len(found) == 1:
        return next(iter(found))
    return hint if hint in found and hint != "fp32" and "int8" not in found else "mixed"


def _text(info: Any, name: str) -> str:
    value = info[name]
    return str(getattr(value, "value", value))
