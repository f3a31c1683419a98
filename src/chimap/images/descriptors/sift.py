"""Dense SIFT at several scales, in gray and in colour (PHOW)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _loops
from chimap._validation import check_choice, check_positive
from chimap.images.descriptors.base import LocalDescriptor, OnGrids, Points, check_image, opencv

COLOURS = ("gray", "rgb", "hsv", "opponent")
_SIDE, _ORIENTATIONS = 4, 8  # bins per side, and bins of the angle of gradients


@dataclass(frozen=True)
class SIFT(OnGrids, LocalDescriptor):
    """Dense SIFT: histograms of 8 orientations in 4 x 4 bins around each point of a grid, 128 numbers per colour plane.

    A gradient counts by its length for the two nearest orientations and for the nearest bins, linearly by distance. The
    Gaussian window is replaced by its mean over each bin, so that bins are a triangular filter of the whole image and
    points cost little. Vectors are divided by their length, cut at 0.2 and divided again.

    Parameters
    ----------
    step : int, default=3
        Distance between neighbouring points, in pixels.
    sizes : tuple of int, default=(4, 6, 8, 10)
        Side of a bin in pixels, one entry per scale; the scales share their centres.
    colour : str, default="gray"
        "gray", or one vector for each plane of "rgb", "hsv" or "opponent", side by side.
    magnification : float, default=6.0
        The image is smoothed first by a Gaussian of standard deviation size / magnification pixels.
    window : float, default=1.5
        Standard deviation of the Gaussian window, in bins.
    contrast : float, default=0.005
        Points whose mean gradient (of intensities from 0 to 1) is below this become zero vectors.

    References
    ----------
    Lowe, Distinctive image features from scale-invariant keypoints, 2004. Bosch, Zisserman and Munoz, Image
    classification using random forests and ferns, 2007 (PHOW). Parameters as in VLFeat's phow_caltech101.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, size=(48, 64, 3), dtype=np.uint8)
    >>> SIFT(step=8, sizes=(4, 6)).points(image).vectors.shape
    (59, 128)
    """

    step: int = 3
    sizes: tuple[int, ...] = (4, 6, 8, 10)
    colour: str = "gray"
    magnification: float = 6.0
    window: float = 1.5
    contrast: float = 0.005

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(self.sizes))
        check_positive(self.step, "step", integer=True)
        for size in self.sizes:
            check_positive(size, "each of sizes", integer=True)
        check_choice(self.colour, "colour", COLOURS)
        check_positive(self.magnification, "magnification")
        check_positive(self.window, "window")

    @property
    def steps(self) -> tuple[int, ...]:
        """Distance between neighbouring points of each scale, in pixels; it is the same for all."""
        return (self.step,) * len(self.sizes)

    def points(self, image: np.ndarray) -> Points:
        """Return the points of an image, scale by scale, row by row."""
        planes = colour_planes(check_image(image), self.colour)
        grids = [self.grid(planes.shape, size) for size in self.sizes]
        ends = np.cumsum([0, *(x.size * y.size for x, y in grids)])
        vectors = np.empty((ends[-1], planes.shape[2], _SIDE**2 * _ORIENTATIONS), np.float32)
        for size, (x, y), start, stop in zip(self.sizes, grids, ends[:-1], ends[1:], strict=True):
            if stop > start:
                self._describe(planes, size, x, y, vectors[start:stop])
        centres = self.grids(planes.shape)
        return Points(
            np.concatenate([np.tile(x, y.size) for x, y in centres]),
            np.concatenate([np.repeat(y, x.size) for x, y in centres]),
            vectors.reshape(ends[-1], planes.shape[2] * _SIDE**2 * _ORIENTATIONS),
        )

    def grids(self, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the points of each scale, the centres of their 4 x 4 bins."""
        corners = [self.grid(shape, size) for size in self.sizes]
        middles = [np.float32(0.5 * (_SIDE - 1) * size) for size in self.sizes]
        return [
            ((x + m).astype(np.float32), (y + m).astype(np.float32)) for m, (x, y) in zip(middles, corners, strict=True)
        ]

    def grid(self, shape: tuple[int, ...], size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the centres of the first bin of the points of one scale.

        Parameters
        ----------
        shape : tuple of int
            Shape of the image; its first two entries are the height and the width in pixels.
        size : int
            Side of a bin in pixels, one of ``sizes``.

        Returns
        -------
        x : ndarray of shape (columns,), int64
            Positions in pixels.
        y : ndarray of shape (rows,), int64
            Positions in pixels.
        """
        first = int(1.5 * (max(self.sizes) - size))
        y, x = (np.arange(first, length - (_SIDE - 1) * size, self.step) for length in shape[:2])
        return x, y

    def _describe(self, planes: np.ndarray, size: int, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
        """Write the vectors of one scale to ``out`` (points, planes, 128)."""
        cv2 = opencv()
        smooth = cv2.GaussianBlur(planes, (0, 0), size / self.magnification, borderType=cv2.BORDER_REPLICATE)
        smooth = smooth.reshape(planes.shape)  # OpenCV drops the axis of a single plane
        weights = _window_means(size, self.window)
        sums = np.empty(out.shape[:2], np.float32)
        for k in range(planes.shape[2]):
            bins = _filtered(_energies(smooth[:, :, k]), size)
            _loops.sift_vectors(bins, x, y, size, weights, k, out, sums)
        seen = _contrast(sums, self.colour) * (size / ((_SIDE - 1) * size + 1)) ** 2
        out[seen < self.contrast] = 0


def colour_planes(image: np.ndarray, colour: str) -> np.ndarray:
    """Return planes (H, W, 1 or 3) float32 of an RGB image, most of them from 0 to 1.

    The planes of "opponent" are intensity, red against green, and yellow against blue; a hundredth of the intensity is
    added to the last two.
    """
    cv2 = opencv()
    rgb = image.astype(np.float32) / 255
    if colour == "gray":
        return cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)[:, :, None]
    if colour == "rgb":
        return rgb
    if colour == "hsv":
        hsv = cv2.cvtColor(rgb, cv2.COLOR_RGB2HSV)
        hsv[:, :, 0] /= 360
        return hsv
    red, green, blue = rgb[:, :, 0], rgb[:, :, 1], rgb[:, :, 2]
    mean = 0.3 * red + 0.59 * green + 0.11 * blue
    return np.stack(
        [mean, (red - green) / np.sqrt(2) + 0.01 * mean, (red + green - 2 * blue) / np.sqrt(6) + 0.01 * mean], axis=2
    ).astype(np.float32)


def _contrast(vectors: np.ndarray, colour: str) -> np.ndarray:
    """Return the contrast that is compared, given the contrasts of the planes (n, planes).

    It is the mean of red, green and blue, or else the contrast of the intensity.
    """
    if colour == "rgb":
        return vectors.mean(axis=1)
    return vectors[:, 2] if colour == "hsv" else vectors[:, 0]


def _energies(plane: np.ndarray) -> np.ndarray:
    """Return (H, W, 8) float32: the length of each pixel's gradient, shared by the two nearest orientations."""
    cv2 = opencv()
    plane = np.ascontiguousarray(plane)
    dx = cv2.Sobel(plane, cv2.CV_32F, 1, 0, ksize=1, scale=0.5, borderType=cv2.BORDER_REPLICATE)
    dy = cv2.Sobel(plane, cv2.CV_32F, 0, 1, ksize=1, scale=0.5, borderType=cv2.BORDER_REPLICATE)
    length, angle = cv2.cartToPolar(dx, dy)
    out = np.zeros((*plane.shape, _ORIENTATIONS), np.float32)
    _loops.share_orientations(length, angle, out)
    return out


def _filtered(energies: np.ndarray, size: int) -> np.ndarray:
    """Return means under a triangle of half width ``size`` in x and y.

    The triangle is two boxes of width ``size``, with opposite anchors so that even sizes do not shift the image.
    """
    cv2 = opencv()
    near, far = (size - 1) // 2, size // 2
    for anchor in (near, far):
        energies = cv2.blur(energies, (size, size), anchor=(anchor, anchor), borderType=cv2.BORDER_REPLICATE)
    return energies


def _window_means(size: int, window: float) -> np.ndarray:
    """Return (4,) float32: the mean of the Gaussian window over the pixels within reach of each bin of a side."""
    pixels = np.arange(-size + 1, size)
    centres = size * (np.arange(_SIDE) - 0.5 * (_SIDE - 1))
    distances = (pixels[None, :] + centres[:, None]) / (size * window)
    return np.exp(-0.5 * distances**2).mean(axis=1).astype(np.float32)
