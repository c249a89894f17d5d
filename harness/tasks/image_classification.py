"""Image classification: JPEG or PNG -> image[N,3,S,S] float32 -> logits[N,C] -> the five best classes.

Parameters: `size` (224), `resize` (256: shorter side before the centre crop), `mean` and `std` (in units of 0..255, one
number or three; the input is (pixel - mean) / std), `channels` ("rgb" or "bgr"), `interpolation` ("bilinear", ...),
`padding` (0.15: by how much the white square of a cut-out exceeds its longer side), `first_class` (0; 1 for networks with a
background class before the labelled ones).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from harness.errors import UsageError
from harness.tasks.base import Array, Sample
from harness.tasks.parameters import check_names, choice, real, triple, whole
from harness.tasks.pictures import FILTERS, decode_picture, on_white, resize_and_crop

NAMES = ("size", "resize", "mean", "std", "channels", "interpolation", "padding", "first_class")


class ImageClassification:
    """See the module. Predictions are {"classes": [best first], "scores": [their logits]}."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        task = "image_classification"
        check_names(task, parameters, NAMES)
        self.carry: Mapping[str, str] = {}
        self.size = whole(task, parameters, "size", 224)
        self.resize = whole(task, parameters, "resize", 256)
        if self.resize < self.size:
            raise UsageError(f"The parameter resize of {task} ({self.resize}) must not be below size ({self.size}).")
        mean, std = triple(task, parameters, "mean", 0.0), triple(task, parameters, "std", 1.0)
        if 0.0 in std:
            raise UsageError(f"The parameter std of {task} must not be zero.")
        self.reverse = choice(task, parameters, "channels", "rgb", ("rgb", "bgr")) == "bgr"
        self.interpolation = choice(task, parameters, "interpolation", "bilinear", FILTERS)
        self.padding = real(task, parameters, "padding", 0.15, 0.0, 2.0)
        self.first_class = whole(task, parameters, "first_class", 0, minimum=0)
        # (pixel - mean) / std as one multiplication and one addition over the picture
        self.factor = (1.0 / np.array(std, dtype=np.float64)).astype(np.float32).reshape(3, 1, 1)
        self.offset = (-np.array(mean, dtype=np.float64) / np.array(std)).astype(np.float32).reshape(3, 1, 1)

    def decode(self, sample: Sample) -> Image.Image:
        """Read and decode the sample's one file. Raises ModelError."""
        return decode_picture(sample.files[0])

    def preprocess(self, decoded: Image.Image) -> dict[str, Array]:
        """Return image[1,3,size,size] float32."""
        picture = resize_and_crop(on_white(decoded, self.padding), self.resize, self.size, self.interpolation)
        planes = np.asarray(picture, dtype=np.uint8).transpose(2, 0, 1)
        if self.reverse:
            planes = planes[::-1]
        image = planes.astype(np.float32, order="C")
        image *= self.factor
        image += self.offset
        return {"image": image[np.newaxis]}

    def postprocess(self, outputs: Mapping[str, Array]) -> list[Any]:
        """Return the five best classes of logits[N,C]. Equal logits keep the order of their classes."""
        logits = np.asarray(outputs["logits"], dtype=np.float32)
        logits = logits.reshape(logits.shape[0], -1)[:, self.first_class :]
        best = np.argsort(-logits, axis=1, kind="stable")[:, :5]
        scores = np.take_along_axis(logits, best, axis=1)
        return [
            {"classes": classes, "scores": values}
            for classes, values in zip(best.tolist(), scores.tolist(), strict=True)
        ]
