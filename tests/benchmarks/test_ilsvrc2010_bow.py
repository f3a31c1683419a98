"""Bags of words from Matlab files of the layout of ILSVRC 2010."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.papers.sets import Ilsvrc2010Bow
from scipy.io import savemat

from chimap._validation import DataError
from chimap.readers import open_source

from . import copies


def entries(X) -> list[tuple[int, int, float]]:
    X = X.tocoo()
    return sorted(zip(X.row.tolist(), X.col.tolist(), X.data.tolist(), strict=True))


def test_counts_and_labels_of_the_training_part(tmp_path):
    source = Ilsvrc2010Bow(copies.ilsvrc2010_bow(tmp_path))
    assert (source.n_rows, source.n_features) == (3, 1000)
    assert source.labels().tolist() == ["n01440764", "n02119789", "n02119789"]
    X = open_source(source).take(np.arange(3))
    assert entries(X) == [(0, 7, 1.0), (0, 8, 1.0), (1, 5, 2.0), (1, 999, 1.0), (2, 0, 1.0)]
    assert X.dtype == np.float32


def test_cells_divide_the_box_around_the_points(tmp_path):
    source = Ilsvrc2010Bow(copies.ilsvrc2010_bow(tmp_path), grids=((1, 1), (2, 2)))
    assert source.n_features == 5000
    found = entries(source.take(np.array([1])))
    # words 5, 5 and 999 lie in the corners top left, top right and bottom right
    assert found == [(0, 5, 2.0), (0, 999, 1.0), (0, 1005, 1.0), (0, 2005, 1.0), (0, 4999, 1.0)]


def test_labels_of_the_validation_part(tmp_path):
    source = Ilsvrc2010Bow(copies.ilsvrc2010_bow(tmp_path), "val")
    assert source.labels().tolist() == [copies.SYNSETS[k] for k in (2, 0, 0)]


def test_labels_that_do_not_fit(tmp_path):
    copies.ilsvrc2010_bow(tmp_path)
    (tmp_path / "val/val.0002.sbow.mat").unlink()
    with pytest.raises(DataError, match="3 labels for 2 images in val/"):
        Ilsvrc2010Bow(tmp_path, "val")


def test_chunks_do_not_depend_on_the_files(tmp_path):
    source = Ilsvrc2010Bow(copies.ilsvrc2010_bow(tmp_path))
    whole = source.take(np.arange(3)).toarray()
    for rows in (1, 2, 3):
        parts = [chunk.X.toarray() for chunk in source.chunks(rows)]
        np.testing.assert_array_equal(np.vstack(parts), whole)


def test_a_model_is_fitted_on_them(tmp_path):
    from chimap import HistogramClassifier

    source = Ilsvrc2010Bow(copies.ilsvrc2010_bow(tmp_path))
    model = HistogramClassifier("chi2", alpha=0.1).fit_source(source)
    assert model.classes_.tolist() == ["n01440764", "n02119789"]


def test_absent_and_damaged_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="Get the bags of words of ILSVRC 2010 from http"):
        Ilsvrc2010Bow(tmp_path / "nothing")
    copies.ilsvrc2010_bow(tmp_path)
    with pytest.raises(DataError, match=r"no test/.* in it"):
        Ilsvrc2010Bow(tmp_path, "test")
    file = tmp_path / "train/n01440764.sbow.mat"
    file.write_bytes(file.read_bytes()[:150])
    with pytest.raises(DataError, match=r"n01440764\.sbow\.mat: not a Matlab file with image_sbow, or cut off"):
        Ilsvrc2010Bow(tmp_path)
    savemat(file, {"image_sbow": copies.sbow(([1000], [0], [0]))})
    with pytest.raises(DataError, match=r"n01440764\.sbow\.mat, image 0: words from 1000 to 1000"):
        Ilsvrc2010Bow(tmp_path)
