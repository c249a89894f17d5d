"""Decoding pictures with Pillow, and the geometry that networks want: cut-outs on white, resize, centre crop."""

from __future__ import annotations

from PIL import Image, UnidentifiedImageError

from harness.errors import ModelError

FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
FORMATS = ("JPEG", "PNG", "BMP", "WEBP", "TIFF")


def decode_picture(path: str) -> Image.Image:
    """Decode a picture file completely, to RGB, or to RGBA where it has transparency. Raises ModelError.

    The EXIF orientation is left alone, as the reference preprocessing of ImageNet does.
    """
    try:
        with Image.open(path, formats=FORMATS) as picture:
            transparent = picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info
            return picture.convert("RGBA" if transparent else "RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError) as error:
        raise ModelError(f"The picture {path} cannot be decoded: {error}.", "Remove it from the dataset.") from error


def on_white(picture: Image.Image, padding: float) -> Image.Image:
    """Return an RGB picture. A cut-out (any transparent pixel) is cropped to its visible box and set on a white square.

    `padding` says by which share the square's side exceeds the longer side of the box.
    """
    if picture.mode != "RGBA":
        return picture
    alpha = picture.getchannel("A")
    box = alpha.getbbox()
    if alpha.getextrema() == (255, 255) or box is None:
        return picture.convert("RGB")
    cut = picture.crop(box)
    side = round((1.0 + padding) * max(cut.size))
    canvas = Image.new("RGB", (side, side), (255, 255, 255))
    canvas.paste(cut, ((side - cut.width) // 2, (side - cut.height) // 2), cut)
    return canvas


def resize_and_crop(picture: Image.Image, shorter: int, size: int, interpolation: str) -> Image.Image:
    """Resize so that the shorter side has `shorter` pixels, then cut the centre of `size` by `size` pixels.

    This is the usual ImageNet evaluation (256 and 224). The longer side is rounded down, as torchvision does it.
    """
    width, height = picture.size
    if width <= height:
        scaled = (shorter, max(1, int(shorter * height / width)))
    else:
        scaled = (max(1, int(shorter * width / height)), shorter)
    if scaled != picture.size:
        picture = picture.resize(scaled, FILTERS[interpolation])
    left, top = round((picture.width - size) / 2), round((picture.height - size) / 2)
    return picture.crop((left, top, left + size, top + size))
