"""Operators on feature maps, all in NHWC: convolutions, pools, resizing, and the paddings around them.

ONNX says how many cells to pad on each side; TFLite knows only VALID and SAME, whose split between the sides is fixed. Where
SAME gives the very same windows it is used; otherwise an explicit PAD stands before a VALID operator, which XNNPACK
fuses into the convolution again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.models.onnx_graph.graph import Node
from harness.models.onnx_graph.parameters import text, transposed_begin
from harness.models.tflite_writer.flatbuffer import ACTIVATIONS, SAME, VALID, Tensor
from harness.models.tflite_writer.writer import Handler, Writer

_LOWEST = float(np.finfo(np.float32).min)
_NON_NEGATIVE = frozenset({"Relu", "Relu6", "Sigmoid", "Softmax", "HardSigmoid"})


@dataclass(frozen=True)
class Window:
    """One spatial axis of a sliding window: sizes in cells."""

    size: int  # of the input
    out: int
    kernel: int
    stride: int
    dilation: int
    before: int  # padding as ONNX has it

    @property
    def extent(self) -> int:
        """Cells that one dilated window spans."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def after(self) -> int:
        """Padding behind the input that the windows really touch (never more than ONNX pads)."""
        return max(0, (self.out - 1) * self.stride + self.extent - self.size - self.before)

    @property
    def is_valid(self) -> bool:
        return self.before == 0 and self.after == 0

    @property
    def is_same(self) -> bool:
        """TFLite's SAME: ceil(size / stride) windows, the odd cell of padding behind."""
        total = max(0, (self.out - 1) * self.stride + self.extent - self.size)
        return self.out == -(-self.size // self.stride) and self.before == total // 2


def windows(writer: Writer, node: Node, kernel: tuple[int, ...]) -> list[Window]:
    """The two windows of a Conv or pool, with auto_pad worked out as the ONNX specification says."""
    source, output = writer.shape(node.inputs[0]), writer.shape(node.output)
    if len(source) != 4:
        raise node.refuse(
            f"its input has {len(source) - 2} spatial dimensions, only 2 are written", "The TFLite writer"
        )
    strides = node.attributes.get("strides", [1, 1])
    dilations = node.attributes.get("dilations", [1, 1])
    pads = list(node.attributes.get("pads", [0, 0, 0, 0]))
    auto = text(node, "auto_pad", "NOTSET")
    found = []
    for axis in range(2):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        total = max(0, (output[axis + 2] - 1) * strides[axis] + extent - source[axis + 2])
        before = {"NOTSET": pads[axis], "VALID": 0, "SAME_UPPER": total // 2, "SAME_LOWER": total - total // 2}[auto]
        found.append(Window(source[axis + 2], output[axis + 2], kernel[axis], strides[axis], dilations[axis], before))
    return found


def pad_spatial(writer: Writer, source: Tensor, axes: list[Window], value: float, name: str) -> Tensor:
    """An explicit PAD around an NHWC tensor; PADV2 where the fill is not zero."""
    widths = np.array([[0, 0], *[[w.before, w.after] for w in axes], [0, 0]], dtype=np.int32)
    n, h, w, c = source.shape
    shape = (n, h + int(widths[1].sum()), w + int(widths[2].sum()), c)
    padded = writer.temporary(f"{name}_padded", source.dtype, shape)
    paddings = writer.model.constant(widths, "paddings")
    if value == 0:
        writer.emit("PAD", [source, paddings], [padded], ("PadOptions", {}))
    else:
        writer.emit("PADV2", [source, paddings, writer.number(value)], [padded], ("PadV2Options", {}))
    return padded


def place(writer: Writer, node: Node, axes: list[Window], fill: float = 0.0) -> tuple[Tensor, int]:
    """The NHWC input, padded where that is needed, and the padding scheme to write."""
    source = writer.want(node.inputs[0], "nhwc")
    if all(w.is_valid for w in axes):
        return source, VALID
    if all(w.is_same for w in axes):
        return source, SAME
    return pad_spatial(writer, source, axes, fill, node.output), VALID


def conv(writer: Writer, node: Node) -> None:
    """CONV_2D (also grouped) or DEPTHWISE_CONV_2D."""
    weights = writer.graph.constant(node.inputs[1])
    if weights is None or (node.input(2) and writer.graph.constant(node.inputs[2]) is None):
        raise node.refuse("its weights are not constants", "The TFLite writer")
    axes = windows(writer, node, weights.shape[2:])
    source, padding = place(writer, node, axes)
    group = node.attributes.get("group", 1)
    channels_in, channels_out = writer.shape(node.inputs[0])[1], weights.shape[0]
    bias = np.zeros(channels_out, dtype=np.float32)
    if node.input(2):
        bias = writer.graph.constants[node.inputs[2]].reshape(-1)
    biases = writer.model.constant(bias, f"{node.output}_bias")
    output = writer.make(node.output, "nhwc")
    options = {
        "padding": padding,
        "strideH": axes[0].stride,
        "strideW": axes[1].stride,
        "dilationHFactor": axes[0].dilation,
        "dilationWFactor": axes[1].dilation,
        "fusedActivationFunction": ACTIVATIONS[node.attributes.get("activation", "")],
    }
    if group == channels_in and group > 1:
        filters = writer.model.constant(weights.transpose(1, 2, 3, 0), node.inputs[1])
        options["depthMultiplier"] = channels_out // group
        dilated = any(w.dilation > 1 for w in axes)
        writer.emit(
            "DEPTHWISE_CONV_2D",
            [source, filters, biases],
            [output],
            ("DepthwiseConv2DOptions", options),
            2 if dilated else 1,
        )
        return
    filters = writer.model.constant(weights.transpose(0, 2, 3, 1), node.inputs[1])
    version = 6 if group > 1 else 1  # grouped convolution came with version 6
    writer.emit("CONV_2D", [source, filters, biases], [output], ("Conv2DOptions", options), version)


def conv_transpose(writer: Writer, node: Node) -> None:
    """TRANSPOSE_CONV; crops by SLICE where ONNX's padding is not what SAME would cut."""
    weights = writer.graph.constant(node.inputs[1])
    if weights is None or weights.ndim != 4 or (node.input(2) and writer.graph.constant(node.inputs[2]) is None):
        raise node.refuse("its weights are not constants of a 2-D convolution", "The TFLite writer")
    if node.attributes.get("group", 1) != 1 or any(d != 1 for d in node.attributes.get("dilations", [1, 1])):
        raise node.refuse("groups or dilations of a transposed convolution have no counterpart", "The TFLite writer")
    source_shape, out_shape = writer.shape(node.inputs[0]), writer.shape(node.output)
    strides = node.attributes.get("strides", [1, 1])
    begins, fulls = [], []
    for axis in range(2):
        full = (source_shape[axis + 2] - 1) * strides[axis] + weights.shape[axis + 2]
        begins.append(transposed_begin(node, axis, full, out_shape[axis + 2]))
        fulls.append(full)
    if any(begin < 0 or begin + out_shape[axis + 2] > fulls[axis] for axis, begin in enumerate(begins)):
        raise node.refuse("its output padding exceeds its padding", "The TFLite writer")
    exact = all(full == out_shape[axis + 2] for axis, full in enumerate(fulls))
    same = all(
        begins[axis] == (fulls[axis] - out_shape[axis + 2]) // 2
        and source_shape[axis + 2] == -(-out_shape[axis + 2] // strides[axis])
        for axis in range(2)
    )
    source = writer.want(node.inputs[0], "nhwc")
    filters = writer.model.constant(weights.transpose(1, 2, 3, 0), node.inputs[1])
    batch, channels = out_shape[:2]
    bias = writer.graph.constants[node.inputs[2]] if node.input(2) else np.zeros(channels, dtype=np.float32)
    biases = writer.model.constant(bias.reshape(-1), f"{node.output}_bias")
    output = writer.make(node.output, "nhwc")
    cropped = not exact and not same
    target = writer.temporary(f"{node.output}_full", "float32", (batch, *fulls, channels)) if cropped else output
    activation = ACTIVATIONS[node.attributes.get("activation", "")]
    options = {
        "padding": SAME if same and not exact else VALID,
        "strideH": strides[0],
        "strideW": strides[1],
        "fusedActivationFunction": activation,
    }
    inputs = [writer.integers(target.shape), filters, source, biases]
    writer.emit("TRANSPOSE_CONV", inputs, [target], ("TransposeConvOptions", options), 4 if activation else 3)
    if cropped:
        begin = writer.integers([0, *begins, 0])
        writer.emit("SLICE", [target, begin, writer.integers(output.shape)], [output], ("SliceOptions", {}))


def max_pool(writer: Writer, node: Node) -> None:
    """MAX_POOL_2D. Cells outside must never win: zeros do after a ReLU (and stay with XNNPACK), else the lowest float."""
    if len([name for name in node.outputs if name]) > 1:
        raise node.refuse("its indices are asked for", "The TFLite writer")
    axes = windows(writer, node, tuple(node.attributes["kernel_shape"]))
    if any(w.dilation != 1 for w in axes):
        raise node.refuse("a dilated pool has no counterpart", "The TFLite writer")
    producer = writer.graph.producers().get(node.inputs[0])
    non_negative = producer is not None and (
        producer.op in _NON_NEGATIVE or producer.attributes.get("activation") in ("RELU", "RELU6")
    )
    source, padding = place(writer, node, axes, 0.0 if non_negative else _LOWEST)
    _pool(writer, node, "MAX_POOL_2D", source, axes, padding, writer.make(node.output, "nhwc"))


def average_pool(writer: Writer, node: Node) -> None:
    """AVERAGE_POOL_2D, which leaves padded cells out; where ONNX's windows differ, a factor per cell corrects."""
    axes = windows(writer, node, tuple(node.attributes["kernel_shape"]))
    if any(w.dilation != 1 for w in axes):
        raise node.refuse("a dilated pool has no counterpart", "The TFLite writer")
    include = bool(node.attributes.get("count_include_pad", 0))
    padded = not all(w.is_valid for w in axes)
    if padded and include and node.attributes.get("ceil_mode", 0):
        raise node.refuse("counting padded cells together with ceil_mode is not written", "The TFLite writer")
    if not padded or (not include and all(w.is_same for w in axes)):
        source, padding = place(writer, node, axes)
        _pool(writer, node, "AVERAGE_POOL_2D", source, axes, padding, writer.make(node.output, "nhwc"))
        return
    source = pad_spatial(writer, writer.want(node.inputs[0], "nhwc"), axes, 0.0, node.output)
    if include:
        _pool(writer, node, "AVERAGE_POOL_2D", source, axes, VALID, writer.make(node.output, "nhwc"))
        return
    counts = [
        np.array(
            [min(i * w.stride - w.before + w.kernel, w.size) - max(i * w.stride - w.before, 0) for i in range(w.out)]
        )
        for w in axes
    ]
    factor = axes[0].kernel * axes[1].kernel / (counts[0][:, None] * counts[1][None, :])
    output = writer.make(node.output, "nhwc")
    raw = writer.temporary(f"{node.output}_sum", output.dtype, output.shape)
    _pool(writer, node, "AVERAGE_POOL_2D", source, axes, VALID, raw, "")
    correction = writer.model.constant(factor.astype(np.float32)[None, :, :, None], f"{node.output}_cells")
    activation = ACTIVATIONS[node.attributes.get("activation", "")]
    writer.emit("MUL", [raw, correction], [output], ("MulOptions", {"fusedActivationFunction": activation}))


def _pool(
    writer: Writer,
    node: Node,
    code: str,
    source: Tensor,
    axes: list[Window],
    padding: int,
    output: Tensor,
    activation: str | None = None,
) -> None:
    options = {
        "padding": padding,
        "strideH": axes[0].stride,
        "strideW": axes[1].stride,
        "filterHeight": axes[0].kernel,
        "filterWidth": axes[1].kernel,
        "fusedActivationFunction": ACTIVATIONS[
            node.attributes.get("activation", "") if activation is None else activation
        ],
    }
    writer.emit(code, [source], [output], ("Pool2DOptions", options))


def resize(writer: Writer, node: Node) -> None:
    """RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR, where ONNX's way to place the samples is one that TFLite has."""
    source_shape, out_shape = writer.shape(node.inputs[0]), writer.shape(node.output)
    if len(source_shape) != 4 or source_shape[:2] != out_shape[:2]:
        raise node.refuse("only the two spatial axes of a feature map are resized", "The TFLite writer")
    mode = text(node, "mode", "nearest")
    place_by = text(node, "coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")
    rounding = text(node, "nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor")
    whole = all(out_shape[a] % source_shape[a] == 0 for a in (2, 3))
    if mode == "nearest":
        floors = place_by == "asymmetric" and rounding == "floor"
        halves = place_by in ("half_pixel", "pytorch_half_pixel") and whole and rounding.startswith("round")
        if not floors and not halves:
            raise node.refuse(f"nearest with {place_by} and {rounding} has no counterpart", "The TFLite writer")
        code, options = "RESIZE_NEAREST_NEIGHBOR", ("ResizeNearestNeighborOptions", {"alignCorners": False})
        version = 1
    elif mode == "linear" and place_by in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        half = place_by.endswith("half_pixel")
        if place_by == "pytorch_half_pixel" and 1 in out_shape[2:]:
            raise node.refuse("pytorch_half_pixel to a size of 1 has no counterpart", "The TFLite writer")
        code = "RESIZE_BILINEAR"
        options = ("ResizeBilinearOptions", {"alignCorners": place_by == "align_corners", "halfPixelCenters": half})
        version = 3 if half else 1
    else:
        raise node.refuse(f"the mode {mode} with {place_by} has no counterpart", "The TFLite writer")
    source = writer.want(node.inputs[0], "nhwc")
    writer.emit(code, [source, writer.integers(out_shape[2:])], [writer.make(node.output, "nhwc")], options, version)


def depth_to_space(writer: Writer, node: Node) -> None:
    """DEPTH_TO_SPACE; TFLite's order of channels is ONNX's DCR."""
    if text(node, "mode", "DCR") != "DCR":
        raise node.refuse("the mode CRD has no counterpart", "The TFLite writer")
    options = ("DepthToSpaceOptions", {"blockSize": node.attributes["blocksize"]})
    writer.emit("DEPTH_TO_SPACE", [writer.want(node.inputs[0], "nhwc")], [writer.make(node.output, "nhwc")], options)


def space_to_depth(writer: Writer, node: Node) -> None:
    """SPACE_TO_DEPTH."""
    options = ("SpaceToDepthOptions", {"blockSize": node.attributes["blocksize"]})
    writer.emit("SPACE_TO_DEPTH", [writer.want(node.inputs[0], "nhwc")], [writer.make(node.output, "nhwc")], options)


HANDLERS: dict[str, Handler] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "Resize": resize,
    "Upsample": resize,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
}
