"""MiniLM-L6 sentence encoder from safetensors: input_ids, attention_mask [N, L] -> embedding [N, 384].

A BERT of six layers, twelve heads and width 384 (Wang et al. 2020; weights of sentence-transformers). Mean pooling over the
tokens of the mask and scaling to length 1 are part of the graph, as the model's authors define the sentence vector. The
length is fixed when the file is written, because TFLite and CoreML need it; the batch is free. Queries are scaled by
1 / sqrt(32) in their weights, which saves a multiplication per layer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import ModelError
from harness.models.recipes.graph import Array, GraphWriter

VERSION = "1"
TOOLS = ("onnx", "numpy")

LAYERS, HEADS, WIDTH = 6, 12, 384
HEAD = WIDTH // HEADS
EPSILON = 1e-12  # of the layer norms, BERT's own
MASKED = -10000.0  # added to the score of a padded token; exp of it is 0 in float32, and it is a number in float16
MAX_HEADER_BYTES = 1 << 20


def build(sources: Mapping[str, Path], parameters: Mapping[str, Any]) -> bytes:
    """Write the ONNX file from `sources["weights"]` for `parameters["length"]` tokens. Raises ModelError."""
    return write(read_safetensors(sources["weights"]), int(parameters["length"]))


def read_safetensors(path: Path) -> dict[str, Array]:
    """Return the tensors of a safetensors file: 8 bytes of header length, a JSON header, raw little-endian data.

    Raises ModelError when the header does not fit the data.
    """
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    dtypes = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}
    try:
        if length > MAX_HEADER_BYTES:
            raise ValueError("its header is too long")
        header = json.loads(data[8 : 8 + length])
        body = memoryview(data)[8 + length :]
        tensors = {}
        for name, entry in header.items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                tensors[name] = np.frombuffer(body[begin:end], dtypes[entry["dtype"]]).reshape(entry["shape"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path.name} is not a safetensors file that can be read: {error}.") from error
    return tensors


def write(weights: Mapping[str, Array], length: int) -> bytes:
    """Write the ONNX file from weights by their published names."""
    net = _Network(weights, length)
    graph = net.graph
    mask = graph.node("Cast", "mask.cast", ["attention_mask"], to=1)  # to float
    x = net.embeddings()
    bias = net.attention_bias(mask)
    for layer in range(LAYERS):
        x = net.layer(f"encoder.layer.{layer}", x, bias)
    net.pool(x, mask)
    port = ("int64", ("batch", length))
    return graph.model({"input_ids": port, "attention_mask": port}, {"embedding": ("float32", ("batch", WIDTH))})


class _Network:
    def __init__(self, weights: Mapping[str, Array], length: int) -> None:
        self.graph = GraphWriter("minilm-l6")
        self._weights = weights
        self._length = length

    def get(self, name: str) -> Array:
        try:
            return self._weights[name]
        except KeyError:
            raise ModelError(f"The file has no weight {name!r}; it is not MiniLM-L6's.") from None

    def constant(self, name: str, value: Any, dtype: Any = np.float32) -> str:
        return self.graph.weight(name, np.array(value, dtype))

    def embeddings(self) -> str:
        """Add word, position and type vectors; every token is of type 0, so that both are one constant."""
        words = self.graph.weight("embeddings.words", self.get("embeddings.word_embeddings.weight"))
        positions = self.get("embeddings.position_embeddings.weight")[: self._length]
        constant = self.graph.weight(
            "embeddings.places", positions + self.get("embeddings.token_type_embeddings.weight")[0]
        )
        x = self.graph.node("Gather", "embeddings.gather", [words, "input_ids"], axis=0)
        x = self.graph.node("Add", "embeddings.add", [x, constant])
        return self.normalised("embeddings.LayerNorm", x)

    def attention_bias(self, mask: str) -> str:
        """Return [N, 1, 1, L]: 0 for a token, MASKED for padding."""
        graph = self.graph
        absent = graph.node("Sub", "mask.absent", [self.constant("one", 1.0), mask])
        scaled = graph.node("Mul", "mask.scaled", [absent, self.constant("mask.value", MASKED)])
        return graph.node("Unsqueeze", "mask.bias", [scaled, self.constant("mask.axes", [1, 2], np.int64)])

    def layer(self, name: str, x: str, bias: str) -> str:
        """Add one encoder layer: attention and a feed-forward network, each with its sum and norm."""
        graph = self.graph
        attention = f"{name}.attention.self"
        q = self.heads(f"{attention}.query", x, (0, 2, 1, 3), scale=HEAD**-0.5)
        k = self.heads(f"{attention}.key", x, (0, 2, 3, 1))
        v = self.heads(f"{attention}.value", x, (0, 2, 1, 3))
        scores = graph.node("Add", f"{attention}.masked", [graph.node("MatMul", f"{attention}.scores", [q, k]), bias])
        shares = graph.node("Softmax", f"{attention}.softmax", [scores], axis=-1)
        mixed = graph.node("MatMul", f"{attention}.mix", [shares, v])
        mixed = graph.node("Transpose", f"{attention}.merge", [mixed], perm=[0, 2, 1, 3])
        joined = self.constant("shape.joined", [0, self._length, WIDTH], np.int64)
        mixed = graph.node("Reshape", f"{attention}.join", [mixed, joined])
        y = self.dense(f"{name}.attention.output.dense", mixed)
        x = self.normalised(f"{name}.attention.output.LayerNorm", graph.node("Add", f"{name}.attention.sum", [y, x]))
        y = self.gelu(f"{name}.intermediate.gelu", self.dense(f"{name}.intermediate.dense", x))
        y = self.dense(f"{name}.output.dense", y)
        return self.normalised(f"{name}.output.LayerNorm", graph.node("Add", f"{name}.output.sum", [y, x]))

    def heads(self, name: str, x: str, order: tuple[int, ...], scale: float = 1.0) -> str:
        """Project to all heads and bring them to the front: [N, L, 384] -> [N, 12, ...]."""
        split = self.constant("shape.split", [0, self._length, HEADS, HEAD], np.int64)
        x = self.graph.node("Reshape", f"{name}.split", [self.dense(name, x, scale), split])
        return self.graph.node("Transpose", f"{name}.order", [x], perm=list(order))

    def dense(self, name: str, x: str, scale: float = 1.0) -> str:
        weight, bias = self.get(f"{name}.weight"), self.get(f"{name}.bias")
        if scale != 1.0:
            weight, bias = weight.astype(np.float64) * scale, bias.astype(np.float64) * scale
        x = self.graph.node("MatMul", f"{name}.matmul", [x, self.graph.weight(f"{name}.weight", weight.T)])
        return self.graph.node("Add", f"{name}.add", [x, self.graph.weight(f"{name}.bias", bias)])

    def gelu(self, name: str, x: str) -> str:
        """Add x / 2 * (1 + erf(x / sqrt(2))), the exact form that BERT uses."""
        graph = self.graph
        erf = graph.node("Erf", f"{name}.erf", [graph.node("Div", f"{name}.div", [x, self.constant("root2", 2**0.5)])])
        one_more = graph.node("Add", f"{name}.one", [erf, self.constant("one", 1.0)])
        product = graph.node("Mul", f"{name}.product", [x, one_more])
        return graph.node("Mul", f"{name}.half", [product, self.constant("half", 0.5)])

    def normalised(self, name: str, x: str) -> str:
        gamma = self.graph.weight(f"{name}.weight", self.get(f"{name}.weight"))
        beta = self.graph.weight(f"{name}.bias", self.get(f"{name}.bias"))
        return self.graph.node("LayerNormalization", name, [x, gamma, beta], axis=-1, epsilon=EPSILON)

    def pool(self, x: str, mask: str) -> None:
        """Average the vectors of the mask's tokens, and scale the result to length 1."""
        graph = self.graph
        tokens = self.constant("axis.tokens", [1], np.int64)
        weights = graph.node("Unsqueeze", "pool.mask", [mask, self.constant("axis.last", [-1], np.int64)])
        total = graph.node("ReduceSum", "pool.sum", [graph.node("Mul", "pool.kept", [x, weights]), tokens], keepdims=0)
        count = graph.node("ReduceSum", "pool.count", [mask, tokens], keepdims=1)
        count = graph.node("Max", "pool.least", [count, self.constant("pool.floor", 1e-9)])
        mean = graph.node("Div", "pool.mean", [total, count])
        square = graph.node("Mul", "unit.square", [mean, mean])
        norm = graph.node("ReduceSum", "unit.sum", [square, tokens], keepdims=1)
        norm = graph.node("Sqrt", "unit.norm", [norm])
        norm = graph.node("Max", "unit.least", [norm, self.constant("unit.floor", 1e-12)])
        graph.node("Div", "unit.scale", [mean, norm], output="embedding")
