"""Image classification and face detection: pixels by hand, geometry, and files that are not pictures."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from harness.errors import ModelError, UsageError
from harness.tasks import Sample, create
from harness.tasks.pictures import decode_picture, on_white, resize_and_crop


def picture(path: Path, size: tuple[int, int], colour: tuple[int, ...], mode: str = "RGB") -> Sample:
    Image.new(mode, size, colour).save(path)
    return Sample("a", (str(path),))


def test_pixels_are_normalised_as_efficientnet_wants_them(tmp_path: Path) -> None:
    task = create("image_classification", {"mean": 127.0, "std": 128.0})
    image = task.preprocess(task.decode(picture(tmp_path / "a.png", (300, 260), (255, 127, 0))))["image"]
    assert image.shape == (1, 3, 224, 224) and image.dtype == np.float32 and image.flags.c_contiguous
    assert np.allclose(image[0, :, 100, 100], [128 / 128, 0.0, -127 / 128], atol=1e-6)


def test_pixels_are_normalised_as_torchvision_does_it(tmp_path: Path) -> None:
    """(x / 255 - mean) / std with mean 0.485, 0.456, 0.406 and std 0.229, 0.224, 0.225, given here in units of 0..255."""
    parameters = {"mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}
    task = create("image_classification", parameters)
    image = task.preprocess(task.decode(picture(tmp_path / "a.png", (256, 256), (10, 200, 77))))["image"]
    expected = [(10 / 255 - 0.485) / 0.229, (200 / 255 - 0.456) / 0.224, (77 / 255 - 0.406) / 0.225]
    assert np.allclose(image[0, :, 0, 0], expected, atol=1e-5)


def test_channels_can_be_blue_first(tmp_path: Path) -> None:
    task = create("image_classification", {"channels": "bgr"})
    image = task.preprocess(task.decode(picture(tmp_path / "a.png", (256, 256), (1, 2, 3))))["image"]
    assert image[0, :, 5, 5].tolist() == [3.0, 2.0, 1.0]


def test_the_crop_is_the_centre(tmp_path: Path) -> None:
    """Of 400x200, scaled to 512x256, columns 144..367 of 512 remain: 112.5..287.5 of 400."""
    ramp = np.tile(np.arange(400) // 2, (200, 1)).astype(np.uint8)
    crop = resize_and_crop(Image.fromarray(np.stack([ramp] * 3, axis=2)), 256, 224, "bilinear")
    columns = np.asarray(crop)[112, :, 0].astype(float)
    assert crop.size == (224, 224)
    assert columns[0] == pytest.approx(112.5 / 2, abs=1.0) and columns[-1] == pytest.approx(287.5 / 2, abs=1.0)


def test_a_jpeg_is_decoded_to_the_pixels_that_it_shows(tmp_path: Path) -> None:
    sample = picture(tmp_path / "a.jpg", (64, 48), (200, 30, 90))
    decoded = decode_picture(sample.files[0])
    assert decoded.mode == "RGB" and decoded.size == (64, 48)
    assert np.abs(np.asarray(decoded).reshape(-1, 3).mean(axis=0) - [200, 30, 90]).max() < 3


def test_a_cut_out_lies_in_the_middle_of_a_white_square() -> None:
    """A visible box of 40x20: the square's side is 1.15 times 40, 46; the box begins 3 to the right and 13 down."""
    cut = Image.new("RGBA", (100, 80), (0, 0, 0, 0))
    cut.paste((255, 0, 0, 255), (30, 10, 70, 30))
    white = on_white(cut, 0.15)
    pixels = np.asarray(white)
    red = np.argwhere((pixels == [255, 0, 0]).all(axis=2))
    assert white.size == (46, 46) and white.mode == "RGB"
    assert red.min(axis=0).tolist() == [13, 3] and red.max(axis=0).tolist() == [32, 42]
    assert (pixels[0, 0] == 255).all() and (pixels[45, 45] == 255).all()


def test_half_transparent_edges_fade_to_white() -> None:
    cut = Image.new("RGBA", (10, 10), (0, 0, 0, 128))
    assert np.asarray(on_white(cut, 0.0))[5, 5, 0] == pytest.approx(127, abs=1)


def test_an_opaque_picture_is_left_as_it_is() -> None:
    assert on_white(Image.new("RGBA", (30, 20), (9, 8, 7, 255)), 0.15).size == (30, 20)
    assert on_white(Image.new("RGB", (30, 20)), 0.15).size == (30, 20)


@pytest.mark.parametrize("mode", ["L", "P", "CMYK", "1", "LA"])
def test_other_colour_modes_become_rgb(tmp_path: Path, mode: str) -> None:
    task = create("image_classification", {})
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    Image.new(mode, (260, 260)).save(path)
    assert task.preprocess(task.decode(Sample("a", (str(path),))))["image"].shape == (1, 3, 224, 224)


@pytest.mark.parametrize("content", [b"", b"not a picture", b"\xff\xd8\xff\xe0 broken", b"\x89PNG\r\n\x1a\n"])
def test_a_file_that_is_no_picture_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"a\.jpg cannot be decoded"):
        decode_picture(str(path))


def test_a_cut_off_jpeg_is_an_error_not_a_grey_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    Image.effect_noise((200, 200), 80).convert("RGB").save(path)
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(ModelError, match="cannot be decoded"):
        decode_picture(str(path))


def test_a_picture_too_large_to_be_meant_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("1", (400, 400)).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(ModelError, match="cannot be decoded"):
        decode_picture(str(tmp_path / "a.png"))


def test_classes_are_ranked_by_logit_with_ties_in_order() -> None:
    logits = np.array([[0.0, 3.0, 1.0, 3.0, 2.0, -1.0], [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]], np.float32)
    first, second = create("image_classification", {}).postprocess({"logits": logits})
    assert first == {"classes": [1, 3, 4, 2, 0], "scores": [3.0, 3.0, 2.0, 1.0, 0.0]}
    assert second["classes"] == [0, 1, 2, 3, 4]


def test_int8_logits_are_ranked_right_at_their_lowest_value() -> None:
    """-128 has no negation in int8: ranking by it would put the worst class first."""
    logits = np.array([[-128, 5, 100]], np.int8)
    assert create("image_classification", {}).postprocess({"logits": logits})[0]["classes"] == [2, 1, 0]


def test_a_background_class_can_be_left_out() -> None:
    logits = np.array([[9.0, 0.0, 5.0]], np.float32)
    assert create("image_classification", {"first_class": 1}).postprocess({"logits": logits})[0]["classes"] == [1, 0]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"sise": 224}, "no parameter 'sise'.*Allowed: size"),
        ({"size": "224"}, "size .* must be a whole number"),
        ({"size": 300}, r"resize .* \(256\) must not be below size \(300\)"),
        ({"mean": [1, 2]}, "mean .* must be one number or three"),
        ({"std": 0.0}, "std .* must not be zero"),
        ({"channels": "rbg"}, "cannot be 'rbg'. Allowed: rgb, bgr"),
        ({"interpolation": "cubic"}, "cannot be 'cubic'. Allowed: bilinear"),
        ({"padding": True}, "padding .* must be a number"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        create("image_classification", parameters)


def test_an_unknown_task_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no task 'classify'.*image_classification"):
        create("classify", {})


def test_a_face_is_decoded_where_the_maps_say() -> None:
    """Row 10, column 20, offsets 0.25 down and -0.5 right: centre y 4 * 10.75 = 43, x 4 * 20 = 80; 24 high, 16 wide."""
    heat = np.zeros((1, 1, 120, 160), np.float32)
    scale, offset = np.zeros((1, 2, 120, 160), np.float32), np.zeros((1, 2, 120, 160), np.float32)
    heat[0, 0, 10, 20] = 0.9
    scale[0, :, 10, 20] = [math.log(24 / 4), math.log(16 / 4)]
    offset[0, :, 10, 20] = [0.25, -0.5]
    (found,) = create("face_detection", {}).postprocess({"heatmap": heat, "scale": scale, "offset": offset})
    assert np.allclose(found["boxes"], [[72, 31, 88, 55]], atol=1e-4)
    assert found["scores"] == pytest.approx([0.9])


def test_faces_stay_inside_the_picture_and_neighbours_are_suppressed() -> None:
    heat = np.zeros((1, 1, 120, 160), np.float32)
    maps = {"heatmap": heat, "scale": np.full((1, 2, 120, 160), math.log(10.0), np.float32)}
    maps["offset"] = np.zeros((1, 2, 120, 160), np.float32)
    heat[0, 0, 0, 0], heat[0, 0, 0, 1], heat[0, 0, 60, 80], heat[0, 0, 90, 90] = 0.7, 0.8, 0.6, 0.1
    (found,) = create("face_detection", {}).postprocess(maps)
    assert found["scores"] == pytest.approx([0.8, 0.6])  # 0.7 is its neighbour's shadow, 0.1 below the threshold
    assert found["boxes"][0] == pytest.approx([0.0, 0.0, 26.0, 22.0])


def test_no_face_is_an_empty_answer() -> None:
    maps = {"heatmap": np.zeros((2, 1, 8, 8)), "scale": np.zeros((2, 2, 8, 8)), "offset": np.zeros((2, 2, 8, 8))}
    assert create("face_detection", {}).postprocess(maps) == [{"boxes": [], "scores": []}] * 2


def test_a_tall_picture_keeps_its_proportions(tmp_path: Path) -> None:
    """500x1000 into 640x480: scaled by 0.48 to 240x480, black to the right."""
    task = create("face_detection", {})
    image = task.preprocess(task.decode(picture(tmp_path / "a.png", (500, 1000), (50, 60, 70))))["image"]
    assert image.shape == (1, 3, 480, 640)
    assert image[0, :, 479, 239].tolist() == [50.0, 60.0, 70.0] and not image[0, :, :, 240:].any()
