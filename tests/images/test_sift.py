"""Dense SIFT against OpenCV's SIFT on the same frames, and against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.images import SIFT

from .pictures import stripes, texture

cv2 = pytest.importorskip("cv2")

OPENCV_SIGMA = np.sqrt(1.6**2 - 0.5**2)  # how OpenCV smooths before the first octave
OPENCV_BIN = 1.5  # pixels a bin side, of keypoints of size 1


def opencv_vectors(image, points, size):
    """OpenCV's SIFT at these points, upright, its orientations counted the other way round as ours."""
    keypoints = [
        cv2.KeyPoint(float(x), float(y), size / OPENCV_BIN, 0.0) for x, y in zip(points.x, points.y, strict=True)
    ]
    kept, vectors = cv2.SIFT_create().compute(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), keypoints)
    assert [k.pt for k in kept] == [k.pt for k in keypoints]
    turned = vectors.reshape(-1, 4, 4, 8)[:, :, :, -np.arange(8) % 8].reshape(len(vectors), -1)
    return turned / np.linalg.norm(turned, axis=1, keepdims=True)


@pytest.mark.parametrize("size", [4, 6, 8, 10])
def test_agrees_with_opencv(size):
    """Cosines of ours with theirs. What differs: their window is a Gaussian pixel by pixel, ours flat in a bin."""
    image = texture(120, 160, seed=size)
    points = SIFT(step=7, sizes=(size,), magnification=size / OPENCV_SIGMA, window=2.0, contrast=0).points(image)
    cosines = (points.vectors * opencv_vectors(image, points, size)).sum(axis=1)
    assert np.median(cosines) > 0.98
    assert np.quantile(cosines, 0.05) > 0.95


def test_agrees_with_definition():
    """One point by plain loops over pixels: triangular weights in space, linear ones in the angle."""
    image, size = texture(40, 44, seed=1), 5
    points = SIFT(step=50, sizes=(size,), magnification=1e6, window=1e6, contrast=0).points(image)
    assert points.vectors.shape == (1, 128)
    assert (points.x[0], points.y[0]) == (7.5, 7.5)
    gray = cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_RGB2GRAY)
    dy, dx = np.gradient(gray.astype(np.float64))
    expected = np.zeros((4, 4, 8))
    # the first bin is centred at pixel 0, where the border is: those that lie inside are compared
    for by in range(1, 4):
        for bx in range(1, 4):
            for y in range(max(1, (by - 1) * size), (by + 1) * size):
                for x in range(max(1, (bx - 1) * size), (bx + 1) * size):
                    weight = max(0, 1 - abs(y - by * size) / size) * max(0, 1 - abs(x - bx * size) / size)
                    place = np.arctan2(dy[y, x], dx[y, x]) % (2 * np.pi) * 8 / (2 * np.pi)
                    low = int(place)
                    length = np.hypot(dy[y, x], dx[y, x])
                    expected[by, bx, low % 8] += weight * (1 - place + low) * length
                    expected[by, bx, (low + 1) % 8] += weight * (place - low) * length
    found, expected = points.vectors.reshape(4, 4, 8)[1:, 1:], expected[1:, 1:]
    below = found < found.max() * 0.99  # the largest are cut
    scale = np.median(found[below & (expected > 0)] / expected[below & (expected > 0)])
    np.testing.assert_allclose(found[below], scale * expected[below], rtol=0.02, atol=1e-3)


def test_one_length_and_cut():
    vectors = SIFT(step=5).points(stripes(80, 90, 0.3, seed=0)).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors.min() >= 0


def test_grid_and_shared_centres():
    """VLFeat's frames: the centres of all scales start at 1.5 times the largest size."""
    sift = SIFT(step=3, sizes=(4, 6, 8, 10))
    points = sift.points(texture(60, 70, seed=2))
    counts = [len(x) * len(y) for x, y in (sift.grid((60, 70), size) for size in sift.sizes)]
    assert points.x.size == sum(counts)
    starts = np.cumsum([0, *counts[:-1]])
    assert set(points.x[starts]) == set(points.y[starts]) == {15.0}
    assert points.x.max() <= 69 - 1.5 * 4


def test_flat_places_are_zero():
    image = np.full((64, 64, 3), 90, np.uint8)
    image[:, 40:] = texture(64, 24, seed=3)
    points = SIFT(step=4, sizes=(4,)).points(image)
    flat = points.x < 25
    assert not points.vectors[flat].any()
    assert points.vectors[points.x > 46].any(axis=1).all()


@pytest.mark.parametrize("colour", ["rgb", "hsv", "opponent"])
def test_colour(colour):
    """Three vectors side by side; of a gray image those of red, green and blue are those of the gray image."""
    image = texture(50, 50, seed=4)
    points = SIFT(step=6, colour=colour).points(image)
    assert points.vectors.shape[1] == 384
    gray = SIFT(step=6).points(image)
    np.testing.assert_array_equal(points.x, gray.x)
    if colour == "opponent":
        cosines = (points.vectors[:, :128] * gray.vectors).sum(axis=1)
        assert cosines.min() > 0.999
    if colour == "rgb":
        plain = stripes(50, 50, 1.0, seed=0)
        np.testing.assert_allclose(
            SIFT(step=6, colour="rgb").points(plain).vectors, np.tile(SIFT(step=6).points(plain).vectors, 3), atol=2e-3
        )


def test_too_small_for_the_larger_scales():
    assert SIFT().points(np.zeros((1, 1, 3), np.uint8)).vectors.shape == (0, 128)
    assert SIFT(sizes=(4, 10)).points(texture(20, 24, seed=0)).x.size == 0  # centres start where 10 has room
    assert SIFT(sizes=(4,)).points(texture(20, 24, seed=0)).x.size == 12


@pytest.mark.parametrize("bad", [{"step": 0}, {"sizes": (4, 0)}, {"colour": "grey"}, {"magnification": -1}])
def test_bad_settings(bad):
    with pytest.raises(ValueError, match=r"must be"):
        SIFT(**bad)
