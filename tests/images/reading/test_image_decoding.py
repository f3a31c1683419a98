"""Image files of every kind become RGB; broken ones are errors that name the file."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from chimap.images.reading import decoding as image_decoding
from chimap.images.reading.decoding import ImageError, decode_image, decode_mask

from .pictures import encoded, pixels


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "PPM", "GIF", "WEBP"])
def test_lossless_formats_give_the_pixels(format):
    image = pixels()
    if format == "GIF":
        image = np.repeat(image[:, :, :1], 3, axis=2)  # 256 grays are all that a palette holds
    options = {"lossless": True} if format == "WEBP" else {}
    np.testing.assert_array_equal(decode_image(encoded(image, format, **options)), image)


def test_jpeg_is_close():
    image = decode_image(encoded(pixels(40, 60), "JPEG", quality=95, subsampling=0))
    assert image.shape == (40, 60, 3)
    assert image.dtype == np.uint8
    assert abs(image.astype(int) - pixels(40, 60)).mean() < 4


def test_palette():
    picture = Image.fromarray(pixels()).quantize(8)
    np.testing.assert_array_equal(decode_image(encoded(picture)), np.asarray(picture.convert("RGB")))


def test_transparent_parts_show_white():
    image = np.dstack([pixels(), np.full((12, 16), 255, np.uint8)])
    image[:6, :, 3] = 0
    image[6, 0] = (100, 0, 200, 127)
    seen = decode_image(encoded(image))
    assert (seen[:6] == 255).all()
    np.testing.assert_array_equal(seen[7:], image[7:, :, :3])
    np.testing.assert_allclose(seen[6, 0], 255 + (np.array([100, 0, 200]) - 255) * 127 / 255, atol=1)


def test_transparent_colour_of_a_palette_shows_white():
    picture = Image.fromarray(np.array([[0, 1], [1, 0]], np.uint8), "P")
    picture.putpalette([10, 20, 30, 40, 50, 60])
    seen = decode_image(encoded(picture, transparency=1))
    assert seen.tolist() == [[[10, 20, 30], [255] * 3], [[255] * 3, [10, 20, 30]]]


@pytest.mark.parametrize("format", ["PNG", "TIFF", "PPM"])
def test_16_bits_become_8(format):
    deep = np.linspace(0, 65535, 48).astype(np.uint16).reshape(6, 8)
    seen = decode_image(encoded(deep, format))
    assert seen.shape == (6, 8, 3)
    np.testing.assert_array_equal(seen[:, :, 0], np.round(deep / 257))


def test_cmyk_jpeg():
    image = np.full((16, 16, 3), (200, 40, 40), np.uint8)
    seen = decode_image(encoded(Image.fromarray(image).convert("CMYK"), "JPEG", quality=95))
    assert abs(seen.astype(int) - image).max() < 12


@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGBA", "YCbCr"])
def test_other_modes_become_rgb(mode):
    picture = Image.fromarray(pixels()).convert("L" if mode == "LA" else "RGB").convert(mode)
    assert decode_image(encoded(picture, "TIFF" if mode == "YCbCr" else "PNG")).shape == (12, 16, 3)


def test_one_pixel():
    assert decode_image(encoded(np.full((1, 1, 3), 7, np.uint8))).tolist() == [[[7, 7, 7]]]


def test_exif_turns_the_image():
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright
    image = np.zeros((12, 16, 3), np.uint8)
    image[:, 8:] = 255
    seen = decode_image(encoded(image, "JPEG", exif=exif))
    assert seen.shape == (16, 12, 3)
    assert seen[:7].max() < 30
    assert seen[9:].min() > 225


def test_first_picture_of_a_film():
    first, second = (Image.fromarray(pixels(seed=s)).convert("L") for s in (0, 1))
    seen = decode_image(encoded(first, "GIF", save_all=True, append_images=[second]))
    np.testing.assert_array_equal(seen[:, :, 0], np.asarray(first))


@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "BMP", "GIF", "WEBP"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_cut_off_files_are_named(format, share):
    content = encoded(pixels(60, 80), format)
    with pytest.raises(ImageError, match=r"pets/cat\.jpg: "):
        decode_image(content[: int(share * len(content))], "pets/cat.jpg")


@pytest.mark.parametrize("content", [b"", b"<html>404</html>", b"%PDF-1.4 ...", b"\0" * 100, b"%!PS-Adobe EPSF"])
def test_bytes_of_other_kinds_are_refused(content):
    with pytest.raises(ImageError, match=r"fake\.png: not an image"):
        decode_image(content, "fake.png")


def png_promising(width: int, height: int) -> bytes:
    """The start of a PNG file of a size that its few bytes do not hold."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(100))), (b"IEND", b"")]
    parts = [struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("size", [(9_000, 9_000), (12_000, 12_000), (60_000, 60_000)])
def test_decompression_bombs_are_refused_before_they_are_decoded(size):
    with pytest.raises(ImageError, match=r"bomb\.png: .*limit of 80"):
        decode_image(png_promising(*size), "bomb.png")


def test_large_files_are_refused(monkeypatch):
    monkeypatch.setattr(image_decoding, "MAX_FILE_BYTES", 100)
    with pytest.raises(ImageError, match="limit of 100 B"):
        decode_image(encoded(), "large.png")


def test_floating_point_pixels_are_refused():
    with pytest.raises(ImageError, match="floating-point"):
        decode_image(encoded(np.zeros((4, 4), np.float32), "TIFF"), "heights.tif")


def test_mask_gives_palette_indices():
    indices = np.array([[0, 1, 255], [20, 1, 0]], np.uint8)
    picture = Image.fromarray(indices, "P")
    picture.putpalette(list(range(256)) * 3)
    mask = decode_mask(encoded(picture))
    assert mask.dtype == np.int64
    np.testing.assert_array_equal(mask, indices)


def test_mask_in_colours_is_refused():
    with pytest.raises(ImageError, match="one index per pixel"):
        decode_mask(encoded(), "mask.png")
