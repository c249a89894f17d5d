"""Sentence embedding: text -> input_ids and attention_mask [N,length] int64 -> embedding[N,D] float32.

Parameters: `tokenizer`, the path of a tokenizer.json (filled in from the model's catalogue entry), and `length` (128): every
text is cut or filled up to so many tokens, so that each inference does the same work.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.errors import ModelError, UsageError
from harness.tasks.base import Array, Sample
from harness.tasks.parameters import check_names, whole


class SentenceEmbedding:
    """See the module. Predictions are {"embedding": base64 of little-endian float32}: 2 kB instead of 8 kB of digits."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        task = "sentence_embedding"
        check_names(task, parameters, ("tokenizer", "length"))
        self.carry: Mapping[str, str] = {}
        self.length = whole(task, parameters, "length", 128)
        path = parameters.get("tokenizer")
        if path is not None and not isinstance(path, str):
            raise UsageError(f"The parameter tokenizer of {task} must be the path of a tokenizer.json, not {path!r}.")
        self.path = path
        self._tokenizer: Any = None

    def decode(self, sample: Sample) -> str:
        """Return the text: the data's `text`, or the content of the sample's file in UTF-8. Raises ModelError."""
        if "text" in sample.data:
            return str(sample.data["text"])
        try:
            with open(sample.files[0], encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"The text {sample.files[0]} cannot be read: {error}.") from error

    def preprocess(self, decoded: str) -> dict[str, Array]:
        """Return the tokens' numbers and the mask of those that are no filling; token_type_ids are zero."""
        encoded = self._load().encode(decoded)
        ids = np.array([encoded.ids], dtype=np.int64)
        mask = np.array([encoded.attention_mask], dtype=np.int64)
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}

    def postprocess(self, outputs: Mapping[str, Array]) -> list[Any]:
        """Return each embedding, packed."""
        rows = np.asarray(outputs["embedding"]).astype("<f4")
        return [{"embedding": base64.b64encode(row.tobytes()).decode("ascii")} for row in rows]

    def _load(self) -> Any:
        if self._tokenizer is None:
            if self.path is None:
                raise UsageError(
                    "The task sentence_embedding needs the parameter tokenizer: the path of a tokenizer.json."
                )
            try:
                from tokenizers import Tokenizer
            except ImportError as error:
                raise ModelError(
                    "Text needs the package tokenizers, which is not installed where this backend runs.",
                    "Install it there with `pip install tokenizers`.",
                ) from error
            try:
                tokenizer = Tokenizer.from_file(self.path)
            except Exception as error:  # the package raises nothing more precise
                raise ModelError(f"The tokenizer {self.path} cannot be read: {error}.") from error
            tokenizer.enable_truncation(self.length)
            padding = tokenizer.padding or {}
            tokenizer.enable_padding(
                length=self.length, pad_id=padding.get("pad_id", 0), pad_token=padding.get("pad_token", "[PAD]")
            )
            self._tokenizer = tokenizer
        return self._tokenizer


def unpack_embedding(prediction: Mapping[str, Any]) -> Array:
    """Return a prediction's vector."""
    return np.frombuffer(base64.b64decode(prediction["embedding"]), dtype="<f4")
