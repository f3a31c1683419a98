"""From the bytes of an image file to an array of pixels, or an error that names the file."""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

from chimap._validation import DataError, format_bytes
from chimap.data.io.files import needed

if TYPE_CHECKING:
    from PIL.Image import Image


# What is opened at all: formats of one picture that Pillow decodes by itself, without calling other programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
MAX_PIXELS = 80_000_000
MAX_FILE_BYTES = 2**29
# What decoders raise on damaged content.
_BROKEN = (
    OSError, SyntaxError, ValueError, TypeError, EOFError, LookupError, OverflowError, ArithmeticError, struct.error,
    zlib.error, MemoryError,
)  # fmt: skip
_DEEP = ("I;16", "I;16B", "I;16L", "I;16N", "I")
_PAPER = (255, 255, 255)  # what shows through transparent pixels


class ImageError(DataError):
    """An image file that cannot be read; the message names it."""


def open_picture(content: bytes, name: str) -> Image:
    """The file opened by Pillow, header read and size checked, pixels not decoded yet.

    Raises ImageError, naming the file, for bytes of no known format and for more than ``MAX_PIXELS`` pixels, before any
    memory is taken for them.
    """
    pillow = needed("PIL.Image", "images", extra="vision")
    if len(content) > MAX_FILE_BYTES:
        raise ImageError(
            f"{name}: a file of {format_bytes(len(content))}, above the limit of {format_bytes(MAX_FILE_BYTES)} an "
            "image. Scale the image down."
        )
    try:
        pillow.init()  # AVIF is not in every build of Pillow
        picture = pillow.open(io.BytesIO(content), formats=[f for f in FORMATS if f in pillow.OPEN])
    except pillow.UnidentifiedImageError as error:
        raise ImageError(
            f"{name}: not an image, or its first bytes are damaged; expected one of {', '.join(FORMATS)}. "
            "Copy it again or remove it."
        ) from error
    except pillow.DecompressionBombError as error:
        raise ImageError(
            f"{name}: far more pixels than the limit of {MAX_PIXELS / 1e6:.0f} megapixels; opening it could fill the "
            "memory (a decompression bomb?). Scale the image down or remove it."
        ) from error
    except _BROKEN as error:
        raise ImageError(f"{name}: cannot be opened ({error}). Copy it again or remove it.") from error
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise ImageError(
            f"{name}: {width} x {height} = {width * height / 1e6:.0f} megapixels, above the limit of "
            f"{MAX_PIXELS / 1e6:.0f} (a decompression bomb?). Scale the image down or remove it."
        )
    return picture


def decode_image(content: bytes, name: str = "image") -> np.ndarray:
    """Pixels of an image file, (height, width, 3) uint8, red, green, blue.

    Turned as its EXIF data say; palettes, gray and CMYK become RGB; transparent parts show white paper; 16 bits become
    8; of a film the first picture. Raises ImageError, naming the file, for whatever cannot be read to its end.

    >>> decode_image(b"P6 2 1 255 " + bytes([255, 0, 0, 0, 0, 255]))
    array([[[255,   0,   0],
            [  0,   0, 255]]], dtype=uint8)
    """
    return picture_pixels(open_picture(content, name), name)


def picture_pixels(picture: Image, name: str) -> np.ndarray:
    """``decode_image`` of an opened picture."""
    turned = _loaded(picture, name)
    if turned.mode in _DEEP:
        return np.repeat(_from_16_bits(np.asarray(turned), name)[:, :, None], 3, axis=2)
    if turned.mode == "F":
        raise ImageError(
            f"{name}: pixels are floating-point numbers, whose range is not known. Save it with 8 or 16 bits."
        )
    return np.array(_on_paper(turned))


def decode_mask(content: bytes, name: str = "mask") -> np.ndarray:
    """Indices of the regions of a mask, (height, width) int64: the palette indices or gray values of its pixels.

    Raises ImageError for colours without a palette, which say no index.
    """
    picture = _loaded(open_picture(content, name), name)
    if picture.mode not in ("P", "L", "1", *_DEEP):
        raise ImageError(
            f"{name}: a mask needs one index a pixel (palette or gray); its mode is {picture.mode}. Save it so."
        )
    return np.asarray(picture).astype(np.int64)


def _loaded(picture: Image, name: str) -> Image:
    """All pixels read, and turned upright."""
    turn = needed("PIL.ImageOps", "images", extra="vision").exif_transpose
    try:
        picture.load()
        return turn(picture)
    except _BROKEN as error:
        raise ImageError(f"{name}: damaged or cut off ({error}). Copy it again or remove it.") from error


def _on_paper(picture: Image) -> Image:
    """RGB, transparent parts over white."""
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layers = picture.convert("RGBA")
    paper = needed("PIL.Image", "images", extra="vision").new("RGBA", layers.size, (*_PAPER, 255))
    paper.alpha_composite(layers)
    return paper.convert("RGB")


def _from_16_bits(values: np.ndarray, name: str) -> np.ndarray:
    """uint8 of values from 0 to 65535."""
    if values.min() < 0 or values.max() > 65535:
        raise ImageError(
            f"{name}: gray values from {values.min()} to {values.max()}; expected 16 bits, 0 to 65535. "
            "Save it with 8 or 16 bits."
        )
    return ((values.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)
