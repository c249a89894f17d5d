"""Face detection (CenterFace): picture -> image[N,3,H,W] float32, RGB in 0..255 -> four maps -> boxes.

The picture keeps its proportions: it is scaled to fit into `width` by `height` and lies in the upper left corner, black
beside it. The maps have a quarter of that size. Parameters: `width` (640), `height` (480), `score` (0.2: least heat of a
face), `overlap` (0.3: of two faces that overlap more, the weaker is dropped), `most` (750: boxes to suppress among).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from harness.tasks.base import Array, Sample
from harness.tasks.detections import suppress
from harness.tasks.parameters import check_names, real, whole
from harness.tasks.pictures import decode_picture, on_white

STRIDE = 4  # pixels of the input per cell of the maps


class FaceDetection:
    """See the module. Predictions are {"boxes": [[x1, y1, x2, y2], ...], "scores": [...]}, in pixels of the input."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        task = "face_detection"
        check_names(task, parameters, ("width", "height", "score", "overlap", "most"))
        self.carry: Mapping[str, str] = {}
        self.width = whole(task, parameters, "width", 640, minimum=32)
        self.height = whole(task, parameters, "height", 480, minimum=32)
        self.score = real(task, parameters, "score", 0.2, 0.0, 1.0)
        self.overlap = real(task, parameters, "overlap", 0.3, 0.0, 1.0)
        self.most = whole(task, parameters, "most", 750)

    def decode(self, sample: Sample) -> Image.Image:
        """Read and decode the sample's one file. Raises ModelError."""
        return on_white(decode_picture(sample.files[0]), 0.0)

    def preprocess(self, decoded: Image.Image) -> dict[str, Array]:
        """Return image[1,3,height,width] float32."""
        scale = fit_scale(decoded.width, decoded.height, self.width, self.height)
        size = (max(1, round(decoded.width * scale)), max(1, round(decoded.height * scale)))
        pixels = np.asarray(decoded.resize(size, Image.Resampling.BILINEAR), dtype=np.uint8)
        image = np.zeros((1, 3, self.height, self.width), dtype=np.float32)
        image[0, :, : size[1], : size[0]] = pixels.transpose(2, 0, 1)
        return {"image": image}

    def postprocess(self, outputs: Mapping[str, Array]) -> list[Any]:
        """Decode heatmap[N,1,h,w], scale[N,2,h,w] and offset[N,2,h,w] (height before width); the best boxes first."""
        maps = [np.asarray(outputs[role], dtype=np.float32) for role in ("heatmap", "scale", "offset")]
        return [self._faces(heat[0], scale, offset) for heat, scale, offset in zip(*maps, strict=True)]

    def _faces(self, heat: Array, scale: Array, offset: Array) -> dict[str, Any]:
        """Turn one picture's maps into boxes.

        As CenterFace defines them: a face's height and width are 4 exp(scale), its centre is 4 (cell + offset + 0.5).
        """
        rows, columns = np.nonzero(heat > self.score)
        scores = heat[rows, columns]
        if scores.size > self.most:
            best = np.sort(np.argsort(-scores, kind="stable")[: self.most])
            rows, columns, scores = rows[best], columns[best], scores[best]
        half_height, half_width = np.exp(scale[:, rows, columns]) * (STRIDE / 2)
        centre_y = (rows + offset[0, rows, columns] + 0.5) * STRIDE
        centre_x = (columns + offset[1, rows, columns] + 0.5) * STRIDE
        boxes = np.stack(
            [centre_x - half_width, centre_y - half_height, centre_x + half_width, centre_y + half_height], axis=1
        )
        boxes[:, 0::2] = boxes[:, 0::2].clip(0, self.width)
        boxes[:, 1::2] = boxes[:, 1::2].clip(0, self.height)
        kept = suppress(boxes, scores, self.overlap)
        return {"boxes": boxes[kept].tolist(), "scores": scores[kept].tolist()}


def fit_scale(width: int, height: int, into_width: int, into_height: int) -> float:
    """Return the factor by which a picture is scaled to fit; labels in its own pixels are scaled by the same."""
    return min(into_width / width, into_height / height)
