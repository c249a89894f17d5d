"""ONNX files with int4 weights: matrix products with constant weights become onnxruntime's MatMulNBits.

Blocks of weights share a scale; activations stay float32. The rest of the network (embedding tables, convolutions, biases)
is untouched, so that only networks of large matrices get small.

Parameters: `block_size` (32), `symmetric` (1), `gather` (0: embedding tables stay float32; 1: they get int4 as well).
"""

from __future__ import annotations

from harness.artifacts import ModelFile
from harness.errors import ModelError
from harness.models.converted import Built
from harness.models.onnx_graph.read import parse_model
from harness.models.progress import Progress
from harness.models.quantisation.contract import Calibration, Settings
from harness.models.quantisation.onnx_graph_preparation import refused, serialised, silenced


def build(source: ModelFile, calibration: Calibration | None, settings: Settings, progress: Progress) -> Built:
    """Write the matrices of an fp32 ONNX file in 4 bits. Raises ModelError where there are none."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
    from onnxruntime.quantization.quant_utils import QuantFormat

    settings.check_names("block_size", "symmetric", "gather")
    operators = ("MatMul", "Gather") if settings.whole("gather", 0, 0) else ("MatMul",)
    configuration = DefaultWeightOnlyQuantConfig(
        block_size=settings.whole("block_size", 32, 16),
        is_symmetric=bool(settings.whole("symmetric", 1, 0)),
        accuracy_level=0,  # the kernel's own choice: nothing that a runtime must obey is written into the file
        quant_format=QuantFormat.QOperator,
        op_types_to_quantize=operators,
    )
    try:
        with silenced():
            quantiser = MatMulNBitsQuantizer(parse_model(source.path.read_bytes()), algo_config=configuration)
            quantiser.process()
            model = quantiser.model.model
        onnx.checker.check_model(model)
    except (ValueError, RuntimeError, TypeError, onnx.checker.ValidationError) as error:
        raise refused(source.artifact.name, settings.precision, error) from error
    if not any(node.op_type == "MatMulNBits" for node in model.graph.node):
        raise ModelError(
            f"{source.artifact.name} has no matrix product with constant weights, and onnxruntime knows int4 for those only."
        )
    return Built(serialised(model), ".onnx", source.inputs, source.outputs)
