"""Vocabularies, the sample that they are learned from, coding, and pyramids, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.images import HardCoding, Pyramid, SoftCoding, Vocabulary, learn_vocabulary, reservoir
from chimap.images.descriptors import Coded, Points

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(40, 16)).astype(np.float32)
VECTORS = RNG.normal(size=(1300, 16)).astype(np.float32)
POINTS = Points(RNG.uniform(0, 59, 1300).astype(np.float32), RNG.uniform(0, 39, 1300).astype(np.float32), VECTORS)


@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_nearest_words(k):
    distances = ((VECTORS[:, None, :].astype(float) - CENTRES) ** 2).sum(axis=2)
    words, found = Vocabulary(CENTRES, 1.0).nearest(VECTORS, k)
    np.testing.assert_array_equal(words, np.argsort(distances, axis=1)[:, :k])
    np.testing.assert_allclose(found, np.sort(distances, axis=1)[:, :k], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("learner", ["sklearn", "faiss"])
def test_words_are_found_where_descriptors_are(learner):
    if learner == "faiss":
        pytest.importorskip("faiss")
    true = 20 * RNG.normal(size=(6, 8))
    sample = (true[RNG.integers(6, size=3000)] + RNG.normal(size=(3000, 8))).astype(np.float32)
    found = learn_vocabulary(sample, 6, learner, seed=3)
    distances = np.linalg.norm(true[:, None] - found.centres, axis=2)
    assert distances.min(axis=1).max() < 1
    assert found.spread == pytest.approx(np.sqrt(8), rel=0.05)
    np.testing.assert_array_equal(found.centres, learn_vocabulary(sample, 6, learner, seed=3).centres)


def test_too_few_descriptors():
    with pytest.raises(DataError, match="only 2 different descriptors"):
        learn_vocabulary(np.repeat(np.eye(2, dtype=np.float32), 50, axis=0), 3)
    with pytest.raises(ValueError, match="learner must be"):
        learn_vocabulary(VECTORS, 3, "flann")


def test_reservoir_is_uniform_and_does_not_depend_on_parts():
    rows = np.arange(10_000)[:, None]
    whole = reservoir([rows], 500, seed=1)
    np.testing.assert_array_equal(whole, reservoir(np.array_split(rows, 37), 500, seed=1))
    assert np.unique(whole).size == 500
    counts = np.histogram(np.concatenate([reservoir([rows], 500, seed=s) for s in range(40)]), bins=10)[0]
    assert abs(counts - 2000).max() < 5 * np.sqrt(2000)
    np.testing.assert_array_equal(reservoir([rows[:30], rows[30:50]], 500, seed=1), rows[:50])
    with pytest.raises(DataError, match="no descriptors"):
        reservoir([rows[:0]], 500, seed=1)


def test_soft_coding_is_the_kernel_codebook():
    words = Vocabulary(CENTRES, 1.0)
    coded = SoftCoding(n_nearest=40, width=2.5).code(POINTS, words)
    distances = ((VECTORS[:, None, :].astype(float) - CENTRES) ** 2).sum(axis=2)
    expected = np.exp(-distances / (2 * 2.5**2))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(coded.weights, np.take_along_axis(expected, coded.words, 1), rtol=1e-3, atol=1e-5)


def test_narrow_soft_coding_is_hard():
    words = Vocabulary(CENTRES, 1.0)
    soft, hard = SoftCoding(width=1e-3).code(POINTS, words), HardCoding().code(POINTS, words)
    np.testing.assert_array_equal(soft.words[:, :1], hard.words)
    np.testing.assert_allclose(soft.weights[:, 0], 1)


def naive(coded, grids, n_words, shape, mask, n_regions):
    """The definition of a pyramid by loops over points."""
    levels = []
    for region in range(n_regions):
        inside = np.ones(shape, bool) if mask is None else mask == region
        ys, xs = np.nonzero(inside)
        for rows, columns in grids:
            level = np.zeros((rows, columns, n_words))
            for i in range(coded.x.size):
                x, y = coded.x[i], coded.y[i]
                if inside[int(y), int(x)]:
                    r = int((y - ys.min() + 0.5) * rows / (ys.max() + 1 - ys.min()))
                    c = int((x - xs.min() + 0.5) * columns / (xs.max() + 1 - xs.min()))
                    for q, word in enumerate(coded.words[i]):
                        level[min(r, rows - 1), min(c, columns - 1), word] += (
                            1 if coded.weights is None else coded.weights[i, q]
                        )
            levels.append(level.ravel() / max(level.sum(), 1e-300))
    return np.concatenate(levels)


@pytest.mark.parametrize("coding", [HardCoding(), SoftCoding()])
@pytest.mark.parametrize("n_regions", [1, 2])
def test_pyramid(coding, n_regions):
    coded = coding.code(POINTS, Vocabulary(CENTRES, 1.0))
    mask = None
    if n_regions == 2:
        mask = np.zeros((40, 60), int)
        mask[10:30, 5:40] = 1
        mask[12:14, 8:9] = 255  # void: nobody's
    grids = ((1, 1), (2, 2), (4, 4), (3, 1))
    pyramid = Pyramid(grids, n_regions)
    found = pyramid.pool(coded, 40, (40, 60), mask)
    np.testing.assert_allclose(found, naive(coded, grids, 40, (40, 60), mask, n_regions), atol=1e-6)
    levels = dict(pyramid.levels(40))
    assert len(levels) == 4 * n_regions
    np.testing.assert_allclose([found[columns].sum() for columns in levels.values()], 1, rtol=1e-5)
    assert list(levels.values())[-1].stop == found.size


def naive_painting(values, coded, grids, n_words, shape, mask, n_regions):
    """The definition of a painted pyramid by loops over points and pixels."""
    picture, values = np.zeros(shape), iter(values.reshape(-1, n_words))
    for region in range(n_regions):
        inside = np.ones(shape, bool) if mask is None else mask == region
        ys, xs = np.nonzero(inside)
        top, left, height, width = ys.min(), xs.min(), np.ptp(ys) + 1, np.ptp(xs) + 1
        own = [i for i in range(coded.x.size) if inside[int(coded.y[i]), int(coded.x[i])]]
        for rows, columns in grids:
            cells = {
                (y, x): (int((y - top + 0.5) * rows / height), int((x - left + 0.5) * columns / width))
                for y in range(top, top + height)
                for x in range(left, left + width)
            }

            def cell(i, rows=rows, columns=columns, top=top, left=left, height=height, width=width):
                r, c = (int((coded.y[i] - top + 0.5) * rows / height), int((coded.x[i] - left + 0.5) * columns / width))
                return min(r, rows - 1), min(c, columns - 1)

            for place in np.ndindex(rows, columns):
                points = [i for i in own if cell(i) == place]
                for word, value in enumerate(next(values)):
                    counts = [
                        (i, 1 if coded.weights is None else coded.weights[i, q])
                        for i in points
                        for q in range(coded.words.shape[1])
                        if coded.words[i, q] == word
                    ]
                    pixels = [pixel for pixel, its in cells.items() if its == place]
                    for i, count in counts:
                        picture[round(coded.y[i]), round(coded.x[i])] += value * count / sum(c for _, c in counts)
                    for pixel in pixels if not counts else ():
                        picture[pixel] += value / len(pixels)
    return picture


@pytest.mark.parametrize("coding", [HardCoding(), SoftCoding(n_nearest=2)])
@pytest.mark.parametrize("n_regions", [1, 2])
def test_what_columns_add_is_painted_where_it_comes_from(coding, n_regions):
    few = Points(POINTS.x[:60], POINTS.y[:60], VECTORS[:60])
    coded = coding.code(few, Vocabulary(CENTRES, 1.0))
    mask = None
    if n_regions == 2:
        mask = np.zeros((40, 60), int)
        mask[10:30, 5:40] = 1
    pyramid = Pyramid(((1, 1), (2, 2), (3, 1)), n_regions)
    values = np.random.default_rng(1).normal(size=pyramid.n_cells * 40)
    found = pyramid.painted(values, coded, 40, (40, 60), mask)
    np.testing.assert_allclose(
        found, naive_painting(values, coded, pyramid.grids, 40, (40, 60), mask, n_regions), atol=1e-6
    )
    assert found.sum() == pytest.approx(values.sum())


def test_painting_keeps_the_sum_where_there_is_little_to_paint_on():
    coded = Coded(np.array([1.0]), np.array([2.0]), np.array([[0]]))
    values = np.arange(1.0, 35.0)
    assert Pyramid(((1, 1), (4, 4))).painted(values, coded, 2, (3, 2)).sum() == pytest.approx(values.sum())
    absent = Pyramid(((1, 1),), 3).painted(values[:6], coded, 2, (3, 2), np.ones((3, 2), int))
    assert absent.sum() == pytest.approx(21)  # two of the regions have no pixels: theirs goes to the whole image


def test_region_that_is_not_there():
    coded = Coded(np.array([1.0]), np.array([1.0]), np.array([[0]]))
    row = Pyramid(((1, 1),), 3).pool(coded, 2, (4, 4), np.ones((4, 4), int))
    assert row.tolist() == [0, 0, 1, 0, 0, 0]


def test_bad_pyramids():
    coded = Coded(np.zeros(0), np.zeros(0), np.zeros((0, 1), int))
    assert not Pyramid().pool(coded, 3, (4, 4)).any()
    with pytest.raises(ValueError, match="a mask is needed"):
        Pyramid(n_regions=2).pool(coded, 3, (4, 4))
    with pytest.raises(ValueError, match="not taken"):
        Pyramid().pool(coded, 3, (4, 4), np.zeros((4, 4), int))
    with pytest.raises(DataError, match="the mask has shape"):
        Pyramid(n_regions=2).pool(coded, 3, (4, 4), np.zeros((4, 5), int))
    for grids in ((), ((0, 1),), ((1, 2, 3),), ((1.5, 1),)):
        with pytest.raises(ValueError, match="grids"):
            Pyramid(grids)
