"""What every descriptor promises, and what single ones are made of."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cv2")

from chimap._validation import DataError
from chimap.images import HOG, LBP, PHOG, ColourHistogram, HOGBlocks
from chimap.images.descriptors import CATALOGUE, CodedDescriptor, LocalDescriptor

from .pictures import stripes, texture


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("shape", [(60, 80), (45, 33), (3, 100), (1, 1), (2, 2)])
def test_points_are_in_the_image(name, shape):
    descriptor, image = CATALOGUE[name], texture(*shape, seed=5)
    found = descriptor.points(image) if isinstance(descriptor, LocalDescriptor) else descriptor.coded(image)
    assert found.x.dtype == found.y.dtype == np.float32
    assert np.all((found.x >= 0) & (found.x <= shape[1] - 1) & (found.y >= 0) & (found.y <= shape[0] - 1))
    if isinstance(descriptor, CodedDescriptor):
        assert found.words.ndim == 2
        assert np.all((found.words >= 0) & (found.words < descriptor.n_words))
        assert found.weights is None or found.weights.shape == found.words.shape
    else:
        assert found.vectors.dtype == np.float32
        assert found.vectors.shape[0] == found.x.size
        assert np.isfinite(found.vectors).all()


@pytest.mark.parametrize("name", CATALOGUE)
def test_gray_is_three_equal_planes(name):
    descriptor, gray = CATALOGUE[name], texture(40, 40, seed=6)[:, :, 0]
    call = descriptor.points if isinstance(descriptor, LocalDescriptor) else descriptor.coded
    one, other = call(gray), call(np.repeat(gray[:, :, None], 3, axis=2))
    for key, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, key))


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize(
    "bad", [np.zeros((5, 5, 3)), np.zeros((5, 5, 4), np.uint8), np.zeros((0, 5, 3), np.uint8), np.zeros(9, np.uint8)]
)
def test_bad_images(name, bad):
    descriptor = CATALOGUE[name]
    with pytest.raises(DataError, match="expected"):
        (descriptor.points if isinstance(descriptor, LocalDescriptor) else descriptor.coded)(bad)


def test_hog_is_that_of_scikit_image():
    from skimage.feature import hog

    image = texture(64, 48, seed=7)
    points = HOG(cells=(8,)).points(image)
    theirs = hog(image, 9, (8, 8), (2, 2), block_norm="L2-Hys", channel_axis=2)
    np.testing.assert_allclose(points.vectors.ravel(), theirs, atol=1e-6)
    assert points.x.tolist()[:2] == [7.5, 15.5]
    inner = HOG(cells=(8,), border=1).points(image)
    np.testing.assert_array_equal(inner.vectors, points.vectors.reshape(7, 5, 36)[1:-1, 1:-1].reshape(-1, 36))
    assert (inner.x.tolist()[:3], inner.y[0]) == ([15.5, 23.5, 31.5], 15.5)
    assert HOG(cells=(8, 16), border=1).points(image).x.size == 15  # one block of the larger cells is all border


def test_blocks_are_those_of_the_definition():
    """Pixel by pixel: the longest of the colours' gradients, shared by two orientations, in the cell that holds it."""
    image, cell, n = texture(27, 21, seed=4, sigma=1), 6, 5
    planes = image.astype(float)
    dx, dy = np.zeros_like(planes), np.zeros_like(planes)
    dx[:, 1:-1], dy[1:-1] = planes[:, 2:] - planes[:, :-2], planes[2:] - planes[:-2]
    cells = np.zeros((4, 3, n))
    for y in range(24):
        for x in range(18):
            plane = np.argmax(np.hypot(dx[y, x], dy[y, x]))
            gradient = complex(dx[y, x, plane], dy[y, x, plane])
            place = (np.angle(gradient) % np.pi) * n / np.pi
            share = place - np.floor(place)
            for word, part in ((int(place), 1 - share), (int(place) + 1, share)):
                cells[y // cell, x // cell, word % n] += part * abs(gradient)
    expected = []
    for row in range(3):
        for column in range(2):
            block = np.append(cells[row : row + 2, column : column + 2].ravel(), 4 * cell**2 * 2.5)
            expected.append(block / block.sum())
    coded = HOGBlocks((27, 21), cells=(cell,), orientations=n, contrast=2.5).coded(image)
    np.testing.assert_allclose(coded.weights, expected, atol=1e-6)
    np.testing.assert_array_equal(coded.words.ravel(), np.arange(6 * 21))
    assert (coded.x[:2].tolist(), coded.y[::2].tolist()) == ([5.5, 11.5], [5.5, 11.5, 17.5])


def test_blocks_of_an_image_of_another_size():
    """It is scaled to the window, and the points lie in the image as they lie in the window."""
    large = np.kron(texture(32, 16, seed=2), np.ones((2, 2, 1), np.uint8))
    blocks = HOGBlocks((32, 16), cells=(4, 8))
    one, other = blocks.coded(large), blocks.coded(large[::2, ::2])
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_allclose(one.x + 0.5, 2 * (other.x + 0.5))
    flat = blocks.coded(np.full((32, 16, 3), 7, np.uint8)).weights
    assert np.all(flat[:, -1] == 1)
    assert not flat[:, :-1].any()


def test_edges_at_the_border_do_not_count():
    image = texture(20, 30, seed=0)
    everywhere, inside = PHOG(high=0).coded(image), PHOG(high=0, border=3).coded(image)
    kept = (abs(everywhere.x - 14.5) < 12) & (abs(everywhere.y - 9.5) < 7)
    assert inside.x.size == kept.sum() == 24 * 14
    np.testing.assert_array_equal(inside.weights, everywhere.weights[kept])
    assert PHOG(high=0, border=10).coded(image).x.size == 0


def test_phog_counts_gradients_of_edges():
    """Stripes at an angle have their gradient there, and of 180 degrees both sides of a stripe are the same."""
    coded = PHOG(bins=18, degrees=180).coded(stripes(60, 60, np.pi / 4, seed=0))
    counts = np.bincount(coded.words.ravel(), coded.weights.ravel(), minlength=18)
    assert abs(np.argmax(counts) - 4.5) <= 1
    everywhere = PHOG(high=0).coded(texture(20, 30, seed=0))
    assert everywhere.x.size == 600


def test_colour_boxes():
    image = texture(30, 20, seed=8)
    coded = ColourHistogram("rgb", (4, 4, 4)).coded(image)
    theirs, _ = np.histogramdd(image.reshape(-1, 3), bins=4, range=[(0, 256)] * 3)
    np.testing.assert_array_equal(np.bincount(coded.words.ravel(), minlength=64), theirs.ravel())


def test_colour_spaces_agree_on_gray():
    """Gray has no saturation, and one value a brightness."""
    gray = np.full((4, 4, 3), 200, np.uint8)
    assert np.unique(ColourHistogram("hsv", (16, 4, 4)).coded(gray).words) == [3]
    assert np.unique(ColourHistogram("lab", (4, 4, 4)).coded(gray).words) == [(3 * 4 + 2) * 4 + 2]


def test_lbp_does_not_change_with_brightness():
    image = texture(30, 30, seed=9)[:, :, 0] // 3
    same = LBP().coded(image).words == LBP().coded(2 * image + 20).words
    assert same.mean() > 0.99  # between pixels, equal brightness is equal up to rounding


@pytest.mark.parametrize(
    "make",
    [
        lambda: HOGBlocks(cells=(1,)),
        lambda: HOGBlocks((16, 15), cells=(8,)),
        lambda: HOGBlocks(contrast=0),
        lambda: HOGBlocks((8,)),
        lambda: PHOG(border=-1),
        lambda: HOG(cells=(0,)),
        lambda: PHOG(bins=0),
        lambda: PHOG(degrees=90),
        lambda: ColourHistogram("cmyk"),
        lambda: ColourHistogram(bins=(4, 4)),
        lambda: ColourHistogram(bins=(4, 4, 257)),
        lambda: LBP(radii=(-1,)),
        lambda: HOG(border=-1),
    ],
)
def test_bad_settings(make):
    with pytest.raises(ValueError, match="must be"):
        make()
