"""Images to rows: the same whatever the threads, regions, settings, and what learns from them."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone

pytest.importorskip("cv2")

from chimap import HistogramClassifier, OptimalMap
from chimap._validation import DataError
from chimap.images import SIFT, ColourHistogram, ImageHistograms
from chimap.images.reading import ImageError, open_images

from .pictures import stripes, texture

ANGLES = (0.0, 0.8, 1.6)
IMAGES = [stripes(40 + seed % 5, 50, angle, seed) for seed in range(12) for angle in ANGLES]
LABELS = np.array([str(angle) for _ in range(12) for angle in ANGLES])
SMALL = {"n_words": 20, "grids": ((1, 1), (2, 2)), "random_state": 0}
SPARSE_SIFT = SIFT(step=6, sizes=(4, 6))


@pytest.fixture(scope="module")
def fitted():
    return ImageHistograms([SPARSE_SIFT, "colour"], **SMALL).fit(IMAGES)


def test_levels_sum_to_one(fitted):
    rows = fitted.transform(IMAGES)
    assert rows.dtype == np.float32
    assert rows.shape == (36, 5 * (20 + 256))
    for columns in fitted.levels_.values():
        np.testing.assert_allclose(rows[:, columns].sum(axis=1), 1, rtol=1e-5)
    assert list(fitted.blocks_) == ["sift", "colour"]
    assert list(fitted.levels_) == ["sift 1x1", "sift 2x2", "colour 1x1", "colour 2x2"]
    names = fitted.get_feature_names_out()
    assert names.size == rows.shape[1]
    assert names[[0, 20, -1]].tolist() == [
        "sift 1x1 cell 0 word 0",
        "sift 2x2 cell 0 word 0",
        "colour 2x2 cell 3 word 255",
    ]


def test_threads_change_nothing(fitted):
    one = ImageHistograms([SPARSE_SIFT, "colour"], n_jobs=1, **SMALL).fit(IMAGES)
    four = clone(one).set_params(n_jobs=4).fit(IMAGES)
    np.testing.assert_array_equal(one.vocabularies_[0].centres, four.vocabularies_[0].centres)
    np.testing.assert_array_equal(one.transform(IMAGES), four.transform(IMAGES))
    np.testing.assert_array_equal(four.transform(IMAGES)[5], four.histogram(IMAGES[5]))


def test_sparse_is_dense(fitted):
    sparse = clone(fitted).set_params(sparse_output=True).fit(IMAGES)
    np.testing.assert_array_equal(sparse.transform(IMAGES[:5]).toarray(), fitted.transform(IMAGES[:5]))
    assert sparse.transform([]).shape == fitted.transform([]).shape == (0, fitted.n_columns)


def test_soft_words_spread(fitted):
    soft = ImageHistograms(SPARSE_SIFT, coding="soft", **SMALL).fit(IMAGES)
    hard = ImageHistograms(SPARSE_SIFT, **SMALL).fit(IMAGES)
    assert (soft.transform(IMAGES[:4]) > 0).sum() > (hard.transform(IMAGES[:4]) > 0).sum()


def test_a_model_learns_from_blocks():
    histograms = ImageHistograms([SPARSE_SIFT, ColourHistogram(bins=(4, 2, 2))], **SMALL).fit(IMAGES)
    rows = histograms.transform(IMAGES)
    model = HistogramClassifier(
        "chi2", features=OptimalMap(n_terms=1), blocks=histograms.blocks_, alpha=0.1, random_state=0
    )
    model.fit(rows[:24], LABELS[:24])
    assert model.score(rows[24:], LABELS[24:]) > 0.9
    assert model.features_.names_ == ["sift", "colourhistogram"]


def test_regions():
    masks = [np.zeros(image.shape[:2], int) for image in IMAGES]
    for mask in masks:
        mask[10:30, 10:30] = 1
    histograms = ImageHistograms("colour", n_regions=2, grids=((1, 1),)).fit(IMAGES)
    rows = histograms.transform(IMAGES, masks)
    inside = ImageHistograms("colour", grids=((1, 1),)).fit(IMAGES).histogram(IMAGES[0][10:30, 10:30])
    np.testing.assert_allclose(rows[0, 256:], inside, atol=1e-6)
    assert list(histograms.levels_) == ["colour 1x1 region 0", "colour 1x1 region 1"]
    with pytest.raises(ValueError, match="a mask is needed"):
        histograms.transform(IMAGES[:1])
    with pytest.raises(DataError, match="the mask has shape"):
        histograms.transform([texture(600, 300, 0)], masks[:1])


def test_large_images_are_made_smaller():
    image = texture(200, 300, seed=0)
    histograms = ImageHistograms(SPARSE_SIFT, max_side=60, **SMALL).fit(IMAGES)
    assert histograms.histogram(image).sum() == pytest.approx(2, rel=1e-5)
    mask = np.zeros((200, 300), int)
    mask[100:, :150] = 1
    regions = ImageHistograms("colour", max_side=60, grids=((1, 1),), n_regions=2).fit(IMAGES)
    np.testing.assert_allclose(
        regions.histogram(image, mask)[256:],
        ImageHistograms("colour", max_side=30, grids=((1, 1),)).fit(IMAGES).histogram(image[100:, :150]),
        atol=0.02,
    )


def test_one_pixel_is_a_row_of_zeros(fitted):
    row = fitted.histogram(np.zeros((1, 1, 3), np.uint8))
    assert not row[fitted.blocks_["sift"]].any()
    assert row[fitted.blocks_["colour"]].sum() == 2


def test_bad_arrays(fitted):
    with pytest.raises(DataError, match="image 1: expected"):
        fitted.transform([IMAGES[0], np.zeros((4, 4, 3))])


def test_broken_files(fitted, tmp_path):
    for i, image in enumerate(IMAGES[:4]):
        Image.fromarray(image).save(tmp_path / f"{i}.png")
    whole = fitted.transform(open_images(tmp_path))
    np.testing.assert_array_equal(whole, fitted.transform(IMAGES[:4]))
    content = (tmp_path / "2.png").read_bytes()
    (tmp_path / "2.png").write_bytes(content[: len(content) // 2])
    images = open_images(tmp_path)
    with pytest.raises(ImageError, match=r"2\.png"):
        fitted.transform(images)
    reader = fitted.rows(images)
    assert [i for i, _ in reader] == [0, 1, 3]
    assert "2.png" in reader.report()
    np.testing.assert_array_equal(np.stack([row for _, row in reader]), whole[[0, 1, 3]])
    assert ImageHistograms(SPARSE_SIFT, **SMALL).fit(images).n_columns == 100


def test_bad_settings():
    for bad, message in (
        ({"descriptors": "surf"}, "each of descriptors must be one of"),
        ({"descriptors": []}, "at least one"),
        ({"descriptors": [ColourHistogram(), ColourHistogram("rgb")]}, "two of the name"),
        ({"descriptors": [3]}, "a name or a descriptor"),
        ({"coding": "fisher"}, "coding must be one of"),
        ({"n_words": 0}, "n_words must be"),
        ({"grids": ()}, "grids must hold"),
        ({"learner": "flann"}, "learner must be"),
    ):
        with pytest.raises(ValueError, match=message):
            ImageHistograms(**bad).fit(IMAGES[:3])
    with pytest.raises(DataError, match="no images"):
        ImageHistograms().fit([])
    with pytest.raises(DataError, match="too small"):
        ImageHistograms().fit([np.zeros((5, 5, 3), np.uint8)])
    assert ImageHistograms({"a": ColourHistogram(), "b": ColourHistogram("rgb")}).fit(IMAGES[:2]).names_ == ["a", "b"]
