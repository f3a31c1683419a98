"""Made-up histograms: histograms indeed, the same each time, learnable, and whole or not there."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from chimap.data import synthetic
from chimap.data.synthetic import write_histograms
from chimap.readers import open_source


def test_rows_are_histograms_with_empty_bins(tmp_path):
    labels = write_histograms(tmp_path / "rows.npy", 3000, 40, 5)
    X, y = np.load(tmp_path / "rows.npy"), np.load(labels)
    assert (X.shape, X.dtype, y.shape, y.dtype) == ((3000, 40), np.float32, (3000,), np.int64)
    assert X.min() == 0
    assert 0.15 < (X == 0).mean() < 0.4
    np.testing.assert_allclose(X.sum(axis=1), 1, rtol=1e-5)
    assert set(y) == set(range(5))
    assert open_source(tmp_path / "rows.npy", labels).n_rows == 3000


def test_the_same_arguments_give_the_same_files(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write_histograms(tmp_path / f"{name}.npy", 500, 30, seed=seed, labels_path=tmp_path / f"{name}_y.npy")
    a, b, c = ((tmp_path / f"{name}.npy").read_bytes() for name in "abc")
    assert a == b
    assert a != c
    assert (tmp_path / "a_y.npy").read_bytes() == (tmp_path / "b_y.npy").read_bytes()


def test_more_rows_begin_with_the_same_blocks(tmp_path):
    n_features = synthetic.BLOCK_VALUES // 4
    for n_rows in (8, 10):
        write_histograms(tmp_path / f"{n_rows}.npy", n_rows, n_features)
    np.testing.assert_array_equal(np.load(tmp_path / "8.npy"), np.load(tmp_path / "10.npy")[:8])


def test_classes_can_be_learnt_but_not_perfectly(tmp_path):
    labels = write_histograms(tmp_path / "rows.npy", 4000, 100, 4)
    X, y = np.sqrt(np.load(tmp_path / "rows.npy")), np.load(labels)
    accuracy = RidgeClassifier(alpha=1e-3).fit(X[:3000], y[:3000]).score(X[3000:], y[3000:])
    assert 0.5 < accuracy < 0.95


def test_one_bin_and_one_class(tmp_path):
    labels = write_histograms(tmp_path / "rows.npy", 50, 1, 1)
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), 1)
    np.testing.assert_array_equal(np.load(labels), 0)


def test_nothing_half_written_stays(tmp_path, monkeypatch):
    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(synthetic, "_fill", fail)
    with pytest.raises(KeyboardInterrupt):
        write_histograms(tmp_path / "rows.npy", 50, 10)
    assert not list(tmp_path.iterdir())


def test_bad_sizes(tmp_path):
    with pytest.raises(ValueError, match="n_rows must be a positive whole number"):
        write_histograms(tmp_path / "rows.npy", 0, 10)
