"""fp16 ONNX files, by the float16 converter that onnxruntime ships and maintains (onnxruntime.transformers.float16).

Inputs and outputs stay float32, so that the same samples go in and the same comparison comes out. Operators that have no
float16 form stay in float32 between casts. On a CPU a runtime mostly computes such a file in float32 all the same; what
really ran is in the measurement.

Parameters: `keep` (operators that stay in float32, besides those that must).
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
    """Convert an fp32 ONNX file. Raises ModelError where the converter cannot."""
    import onnx
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    settings.check_names("keep")
    keep = settings.parameters.get("keep", [])
    if not isinstance(keep, list) or not all(isinstance(word, str) for word in keep):
        raise ModelError(f"The parameter keep must be a list of operators, not {keep!r}.")
    model = parse_model(source.path.read_bytes())
    try:
        with silenced():
            converted = convert_float_to_float16(
                model, keep_io_types=True, op_block_list=sorted({*DEFAULT_OP_BLOCK_LIST, *keep})
            )
            OnnxModel.graph_topological_sort(converted.graph, is_deterministic=True)  # the casts stand at the end
        onnx.checker.check_model(converted)
    except (ValueError, RuntimeError, TypeError, onnx.checker.ValidationError) as error:
        raise refused(source.artifact.name, settings.precision, error) from error
    return Built(serialised(converted), ".onnx", source.inputs, source.outputs)
