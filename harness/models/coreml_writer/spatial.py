"""Convolutions, pools and resizing. MIL takes ONNX's paddings and layouts as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.models.coreml_writer.program import WRITER, Handler, ProgramWriter
from harness.models.onnx_graph.graph import Node
from harness.models.onnx_graph.parameters import text, transposed_begin


def _pads(writer: ProgramWriter, node: Node, kernel: tuple[int, ...]) -> list[int]:
    """Paddings of a Conv or pool as MIL wants them: before and after, axis by axis.

    What lies behind is what the windows really touch: that is ONNX's value, or more where a pool rounds its size up.
    """
    source, output = writer.shape(node.inputs[0])[2:], writer.shape(node.output)[2:]
    rank = len(kernel)
    strides = node.attributes.get("strides", [1] * rank)
    dilations = node.attributes.get("dilations", [1] * rank)
    given = node.attributes.get("pads", [0] * 2 * rank)
    auto = text(node, "auto_pad", "NOTSET")
    pads: list[int] = []
    for axis in range(rank):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        total = max(0, (output[axis] - 1) * strides[axis] + extent - source[axis])
        before = {"NOTSET": given[axis], "VALID": 0, "SAME_UPPER": total // 2, "SAME_LOWER": total - total // 2}[auto]
        touched = (output[axis] - 1) * strides[axis] + extent - source[axis] - before
        pads += [before, max(0, touched)]
    return pads


def _constants(writer: ProgramWriter, node: Node) -> tuple[Any, Any]:
    weights, bias = writer.graph.constant(node.inputs[1]), writer.graph.constant(node.input(2))
    if weights is None or (node.input(2) and bias is None):
        raise node.refuse("its weights are not constants", WRITER)
    return weights, bias


def conv(writer: ProgramWriter, node: Node) -> Any:
    """A convolution of one to three spatial dimensions, grouped or not."""
    weights, bias = _constants(writer, node)
    rank = weights.ndim - 2
    optional = {} if bias is None else {"bias": bias}
    return writer.mb.conv(
        x=writer.value(node.inputs[0]),
        weight=weights,
        strides=list(node.attributes.get("strides", [1] * rank)),
        pad_type="custom",
        pad=_pads(writer, node, weights.shape[2:]),
        dilations=list(node.attributes.get("dilations", [1] * rank)),
        groups=int(node.attributes.get("group", 1)),
        name=writer.name(node.output),
        **optional,
    )


def conv_transpose(writer: ProgramWriter, node: Node) -> Any:
    """A transposed convolution; what ONNX cuts before and behind is MIL's padding."""
    weights, bias = _constants(writer, node)
    rank = weights.ndim - 2
    source, output = writer.shape(node.inputs[0])[2:], writer.shape(node.output)[2:]
    strides = list(node.attributes.get("strides", [1] * rank))
    dilations = list(node.attributes.get("dilations", [1] * rank))
    extra = node.attributes.get("output_padding", [0] * rank)
    if any(extra):
        raise node.refuse("its output padding has no counterpart", WRITER)
    pads: list[int] = []
    for axis in range(rank):
        full = (source[axis] - 1) * strides[axis] + (weights.shape[axis + 2] - 1) * dilations[axis] + 1
        total = full - output[axis]
        before = transposed_begin(node, axis, full, output[axis])
        pads += [before, total - before]
    if min(pads) < 0:
        raise node.refuse("its output is larger than its windows", WRITER)
    optional = {} if bias is None else {"bias": bias}
    return writer.mb.conv_transpose(
        x=writer.value(node.inputs[0]),
        weight=weights,
        pad=pads,
        pad_type="custom",
        strides=strides,
        dilations=dilations,
        groups=int(node.attributes.get("group", 1)),
        name=writer.name(node.output),
        **optional,
    )


def pool(writer: ProgramWriter, node: Node) -> Any:
    """Maximum or average over windows; padded cells never count, or do where ONNX says so."""
    if len([name for name in node.outputs if name]) > 1:
        raise node.refuse("its indices are asked for", WRITER)
    kernel = tuple(node.attributes["kernel_shape"])
    if any(d != 1 for d in node.attributes.get("dilations", [1])):
        raise node.refuse("a dilated pool has no counterpart", WRITER)
    include = bool(node.attributes.get("count_include_pad", 0))
    if include and node.attributes.get("ceil_mode", 0):
        raise node.refuse("counting padded cells together with ceil_mode is not written", WRITER)
    options: dict[str, Any] = {
        "x": writer.value(node.inputs[0]),
        "kernel_sizes": list(kernel),
        "strides": list(node.attributes.get("strides", [1] * len(kernel))),
        "pad_type": "custom",
        "pad": _pads(writer, node, kernel),
        "name": writer.name(node.output),
    }
    if node.op == "MaxPool":
        return writer.mb.max_pool(**options)
    return writer.mb.avg_pool(exclude_padding_from_average=not include, **options)


def global_max_pool(writer: ProgramWriter, node: Node) -> Any:
    """The maximum over all spatial axes."""
    axes = np.arange(2, len(writer.shape(node.inputs[0])), dtype=np.int32)
    x = writer.value(node.inputs[0])
    return writer.mb.reduce_max(x=x, axes=axes, keep_dims=True, name=writer.name(node.output))


def resize(writer: ProgramWriter, node: Node) -> Any:
    """Enlarging by whole factors (nearest) or to any size (linear), where MIL places its samples as ONNX does."""
    source, output = writer.shape(node.inputs[0]), writer.shape(node.output)
    if len(source) != 4 or source[:2] != output[:2]:
        raise node.refuse("only the two spatial axes of a feature map are resized", WRITER)
    mode = text(node, "mode", "nearest")
    placing = text(node, "coordinate_transformation_mode", "half_pixel" if node.opset >= 11 else "asymmetric")
    rounding = text(node, "nearest_mode", "round_prefer_floor" if node.opset >= 11 else "floor")
    whole = all(output[axis] % source[axis] == 0 for axis in (2, 3))
    x, name = writer.value(node.inputs[0]), writer.name(node.output)
    # By whole factors, flooring at the corner and rounding at the centre choose the same cells.
    corner = placing == "asymmetric" and rounding == "floor"
    centre = placing in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round")
    if mode == "nearest" and whole and (corner or centre):
        factors = {
            "scale_factor_height": np.int32(output[2] // source[2]),
            "scale_factor_width": np.int32(output[3] // source[3]),
        }
        return writer.mb.upsample_nearest_neighbor(x=x, name=name, **factors)
    if mode == "linear" and placing in ("half_pixel", "align_corners") and min(output[2:]) > 1:
        scales = {
            "scale_factor_height": np.float32(output[2] / source[2]),
            "scale_factor_width": np.float32(output[3] / source[3]),
        }
        return writer.mb.upsample_bilinear(x=x, align_corners=placing == "align_corners", name=name, **scales)
    raise node.refuse(f"the mode {mode} with {placing} has no counterpart", WRITER)


def depth_to_space(writer: ProgramWriter, node: Node) -> Any:
    """Channels to cells: DCR is MIL's depth_to_space, CRD its pixel_shuffle."""
    x, name = writer.value(node.inputs[0]), writer.name(node.output)
    block = np.int32(node.attributes["blocksize"])
    if text(node, "mode", "DCR") == "CRD":
        return writer.mb.pixel_shuffle(x=x, upscale_factor=block, name=name)
    return writer.mb.depth_to_space(x=x, block_size=block, name=name)


def space_to_depth(writer: ProgramWriter, node: Node) -> Any:
    """Cells to channels."""
    block = np.int32(node.attributes["blocksize"])
    return writer.mb.space_to_depth(x=writer.value(node.inputs[0]), block_size=block, name=writer.name(node.output))


HANDLERS: dict[str, Handler] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxPool": pool,
    "AveragePool": pool,
    "GlobalMaxPool": global_max_pool,
    "Resize": resize,
    "Upsample": resize,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
}
