"""Decode the bytes of an image file to an array of pixels, or raise an error that names the file."""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

from chimap._memory import format_bytes
from chimap._validation import DataError
from chimap.readers.io.files import needed

if TYPE_CHECKING:
    from PIL.Image import Image


# Pictures are opened in these formats only: Pillow decodes them itself, without calling other programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
MAX_PIXELS = 80_000_000
MAX_FILE_BYTES = 2**29
# Exceptions that decoders raise for damaged content.
DECODER_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    EOFError,
    LookupError,
    OverflowError,
    ArithmeticError,
    struct.error,
    zlib.error,
    MemoryError,
)
MODES_OF_16_BITS = ("I;16", "I;16B", "I;16L", "I;16N", "I")
PAPER_COLOUR = (255, 255, 255)  # colour that shows through transparent pixels


class ImageError(DataError):
    """Raised for an image file that cannot be read; the message names the file."""


def open_picture(content: bytes, name: str) -> Image:
    """Open an image file with Pillow: read the header and check the size, without decoding pixels.

    Raises ImageError, naming the file, for bytes of no known format and for more than ``MAX_PIXELS`` pixels, before any
    memory is allocated for them.
    """
    pillow = needed("PIL.Image", "images", extra="vision")
    if len(content) > MAX_FILE_BYTES:
        raise ImageError(
            f"{name}: a file of {format_bytes(len(content))}, above the limit of {format_bytes(MAX_FILE_BYTES)} for an "
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
    except DECODER_ERRORS as error:
        raise ImageError(f"{name}: cannot be opened ({error}). Copy it again or remove it.") from error
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise ImageError(
            f"{name}: {width} x {height} = {width * height / 1e6:.0f} megapixels, above the limit of "
            f"{MAX_PIXELS / 1e6:.0f} (a decompression bomb?). Scale the image down or remove it."
        )
    return picture


def decode_image(content: bytes, name: str = "image") -> np.ndarray:
    """Return the pixels of an image file, (height, width, 3) uint8 in the order red, green, blue.

    The image is turned upright by its EXIF data. Palettes, gray and CMYK become RGB, transparent pixels show white
    paper, and 16 bits become 8. An animation gives its first picture. Raises ImageError, naming the file, for a file
    that cannot be read to its end.

    Examples
    --------
    >>> decode_image(b"P6 2 1 255 " + bytes([255, 0, 0, 0, 0, 255]))
    array([[[255,   0,   0],
            [  0,   0, 255]]], dtype=uint8)
    """
    return picture_pixels(open_picture(content, name), name)


def picture_pixels(picture: Image, name: str) -> np.ndarray:
    """Return the pixels of an opened picture, as ``decode_image`` does."""
    turned = _loaded(picture, name)
    if turned.mode in MODES_OF_16_BITS:
        return np.repeat(_from_16_bits(np.asarray(turned), name)[:, :, None], 3, axis=2)
    if turned.mode == "F":
        raise ImageError(
            f"{name}: pixels are floating-point numbers, whose range is not known. Save it with 8 or 16 bits."
        )
    return np.array(_on_paper(turned))


def decode_mask(content: bytes, name: str = "mask") -> np.ndarray:
    """Return the region of each pixel of a mask, (height, width) int64: its palette index or gray value.

    Raises ImageError for colours without a palette, which are no indices.
    """
    picture = _loaded(open_picture(content, name), name)
    if picture.mode not in ("P", "L", "1", *MODES_OF_16_BITS):
        raise ImageError(
            f"{name}: a mask needs one index per pixel (palette or gray); its mode is {picture.mode}. Save it as "
            "either."
        )
    return np.asarray(picture).astype(np.int64)


def _loaded(picture: Image, name: str) -> Image:
    """Decode all pixels and turn the picture upright."""
    turn = needed("PIL.ImageOps", "images", extra="vision").exif_transpose
    try:
        picture.load()
        return turn(picture)
    except DECODER_ERRORS as error:
        raise ImageError(f"{name}: damaged or cut off ({error}). Copy it again or remove it.") from error


def _on_paper(picture: Image) -> Image:
    """Return the picture as RGB, with transparent parts over white."""
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layers = picture.convert("RGBA")
    paper = needed("PIL.Image", "images", extra="vision").new("RGBA", layers.size, (*PAPER_COLOUR, 255))
    paper.alpha_composite(layers)
    return paper.convert("RGB")


def _from_16_bits(values: np.ndarray, name: str) -> np.ndarray:
    """Return values from 0 to 65535 scaled to uint8."""
    if values.min() < 0 or values.max() > 65535:
        raise ImageError(
            f"{name}: gray values from {values.min()} to {values.max()}; expected 16 bits, 0 to 65535. "
            "Save it with 8 or 16 bits."
        )
    return ((values.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)
