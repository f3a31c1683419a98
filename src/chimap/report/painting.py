"""Show rows whose bins are pixels as pictures, and paint contributions over them."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np

from chimap._messages import Message
from chimap._validation import DataError
from chimap.report._figure import BAD, GOOD
from chimap.report.examples import jpeg, small

if TYPE_CHECKING:
    from PIL import Image

Shape = tuple[int, int]
SIDE = 168  # pixels on the longer side of a picture, or of the height of a photograph
_LEAST = 36  # smallest number of bins that may form a picture
_ALIKE = 0.2  # mean correlation of vertical neighbours above which bins form a picture


def picture_shape(rows: np.ndarray) -> Shape | None:
    """Return the square shape of the pictures that rows hold, or None if vertical neighbours are not correlated.

    >>> smooth = np.cumsum(np.random.default_rng(0).random((40, 8, 8)), axis=1).reshape(40, 64)
    >>> picture_shape(smooth), picture_shape(np.random.default_rng(0).random((40, 64)))
    ((8, 8), None)
    """
    side = round(np.sqrt(rows.shape[1]))
    if side * side != rows.shape[1] or rows.shape[1] < _LEAST or rows.shape[0] < 3:
        return None
    centred = rows - rows.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    varies = norms > 0
    z = np.where(varies, centred / np.where(varies, norms, 1), 0).reshape(-1, side, side)
    n_pairs = (varies.reshape(side, side)[1:] & varies.reshape(side, side)[:-1]).sum()
    near = (z[:, 1:] * z[:, :-1]).sum()
    far = (z[:, side // 2 :] * z[:, : side - side // 2]).sum()
    is_picture = n_pairs > 0 and near / n_pairs > _ALIKE and near > 2 * far
    return (side, side) if is_picture else None


def check_shape(shape: Shape, n_bins: int) -> None:
    """Raise DataError unless the shape has ``n_bins`` pixels."""
    if shape[0] * shape[1] != n_bins:
        raise DataError(
            Message(
                "{shape=!s} has {:,} pixels, but a row has {:,} bins.",
                f"{shape[0]}x{shape[1]}", shape[0] * shape[1], n_bins,
            )
        )  # fmt: skip


def grey(values: np.ndarray, shape: Shape) -> str:
    """Return a row as a grey picture, dark where values are large, as the data URL of a PNG."""
    return _png(np.repeat(255 - 255 * _unit(values).reshape(shape)[..., None], 3, axis=2))


def painted(contributions: np.ndarray, shape: Shape, values: np.ndarray | None = None) -> str:
    """Return positive contributions in blue and negative ones in orange over a faint picture of the row."""
    background = np.zeros(shape) if values is None else _unit(values).reshape(shape)
    return _png(_over(255 - 70 * background, contributions.reshape(shape)))


def painted_photo(image: np.ndarray, contributions: np.ndarray) -> str:
    """Return contributions (h, w) over a faint photograph (H, W, 3) uint8, as the data URL of a small JPEG.

    The contributions are blurred by a fiftieth of the longer side, since the region matters more than the exact point.
    """
    from PIL import Image
    from scipy.ndimage import gaussian_filter

    photo = small(image, SIDE)
    grey_values = np.asarray(photo.convert("L"), np.float64)
    resized = Image.fromarray(contributions.astype(np.float32)).resize(photo.size, Image.Resampling.BOX)
    blurred = gaussian_filter(np.asarray(resized, np.float64), max(photo.size) / 50)
    return jpeg(_picture(_over(255 - 0.6 * (255 - grey_values), blurred)))


def _over(grey_values: np.ndarray, contributions: np.ndarray) -> np.ndarray:
    """Return pixels (h, w, 3) with the contributions (h, w) painted over grey values."""
    largest = float(np.abs(contributions).max()) or 1.0
    opacity = np.sqrt(np.abs(contributions) / largest)[..., None]
    colour = np.where(contributions[..., None] >= 0, _rgb(GOOD), _rgb(BAD))
    return (1 - opacity) * grey_values[..., None] + opacity * colour


def _unit(values: np.ndarray) -> np.ndarray:
    span = float(np.ptp(values)) or 1.0
    return np.asarray((values - values.min()) / span)


def _rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], np.float64)


def _picture(pixels: np.ndarray) -> Image.Image:
    from PIL import Image

    return Image.fromarray(np.clip(np.round(pixels), 0, 255).astype(np.uint8))


def _png(pixels: np.ndarray) -> str:
    from PIL import Image

    picture = _picture(pixels)
    scale = max(1, SIDE // max(picture.size))
    picture = picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
