"""Projections of bfloat16: the products of rounded numbers, whoever multiplies them."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import FourierFeatures, HistogramClassifier, _loops, _onednn, load
from chimap._validation import DataError
from chimap.features.blocks import BlockFeatures
from chimap.features.fourier.projection import Hadamard, Matrix, RoundedMatrix
from chimap.features.rounded import in_bfloat16
from chimap.features.scaled import Scale, ScaledFeatures

from ...histograms import classes, histograms

N, P, M = 700, 60, 1300  # several tiles, and rests of tiles


def rounded(values):
    """Round float32 to bfloat16."""
    values = np.array(values, np.float32, order="C")
    _loops.round_to_bfloat16(values.reshape(1, -1))
    return values


def rounded_to(n_parts, values):
    """Round float32 to sums of one or two bfloat16."""
    nearest = rounded(values)
    return nearest if n_parts == 1 else nearest + rounded(values - nearest)


def drawn(scale=1.0):
    rng = np.random.default_rng(0)
    X = (rng.random((N, P)) * (rng.random((N, P)) < 0.5)).astype(np.float32)
    W = (scale * rng.standard_normal((P, M))).astype(np.float32)
    before = W.copy()
    projection = Matrix(W).in_bfloat16(X)
    np.testing.assert_array_equal(W, before)
    return X, W, projection


def projected(projection, rows):
    out = np.full((rows.shape[0], M + 3), 7, np.float32)
    projection.project(rows, np.empty((rows.shape[0], P), np.float32), out)
    assert (out[:, M:] == 7).all()
    return out[:, :M]


@pytest.fixture(params=["units", "no units"])
def units(request, monkeypatch):
    if request.param == "no units":
        monkeypatch.setattr(_onednn, "has_bfloat16_units", lambda: False)
    elif not _onednn.has_bfloat16_units():
        pytest.skip("needs units for bfloat16, and oneDNN")


@pytest.mark.parametrize("kind", ["dense", "one row", "half full CSR", "sparse CSR"])
@pytest.mark.parametrize("n_parts", [1, 2])
@pytest.mark.usefixtures("units")
def test_multiplies_rounded_rows_and_leaves_them(n_parts, kind):
    X, W, projection = drawn()
    if kind == "sparse CSR":
        X = X * (np.random.default_rng(1).random(X.shape) < 0.05)
    X = X[:1] if kind == "one row" else X
    rows = sp.csr_array(X) if "CSR" in kind else X.copy()
    found = projected(replace(projection, n_parts=n_parts), rows)
    expected = rounded_to(n_parts, X).astype(float) @ rounded(W)
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-7 * np.abs(expected).max())
    np.testing.assert_array_equal(rows.toarray() if "CSR" in kind else rows, X)


@pytest.mark.usefixtures("units")
def test_large_angles_keep_what_rounding_leaves():
    X, W, _ = drawn(scale=30.0)
    two = Matrix(W).in_bfloat16(X)
    exact = X.astype(float) @ rounded(W)
    errors = [np.abs(projected(one, X) - exact).max() for one in (replace(two, n_parts=1), two)]
    assert two.n_parts == 2
    assert errors[0] > 0.1
    assert errors[1] < errors[0] / 100


def test_a_scaled_projection_is_not_rounded():
    _, _, projection = drawn()
    before = projection.matrix.copy()
    scaled = projection.scaled(3.0)
    assert type(scaled) is Matrix
    np.testing.assert_array_equal(scaled.matrix, 3 * before)
    np.testing.assert_array_equal(projection.matrix, before)


@pytest.mark.parametrize(("radians", "n_parts"), [(3.9, 1), (4.1, 2)])
def test_angles_from_4_radians_on_are_large(radians, n_parts):
    X, W, projection = drawn()
    rms = np.sqrt(np.square(X @ projection.matrix).mean())
    assert Matrix(W * np.float32(radians / rms)).in_bfloat16(X).n_parts == n_parts


def test_examples_are_of_all_rows():
    X = np.ones((6400, 3), np.float32)
    X[3000:] = 100.0
    features = FourierFeatures("gaussian", n_components=64, gamma=1.0, random_state=0).fit(X)
    assert in_bfloat16(features, X).projection_.n_parts == 2
    assert in_bfloat16(features, X[:3000]).projection_.n_parts == 1
    scaled = in_bfloat16(ScaledFeatures(features, Scale(100)), X * np.float32(2.0**-100))
    assert scaled.features.projection_.n_parts == 2


def test_numbers_are_split_into_16_bits():
    values = np.random.default_rng(0).standard_normal((5, 9)).astype(np.float32)
    parts = values.copy()
    _loops.split_to_bfloat16(parts)
    halves = parts.view(np.uint16).astype(np.uint32) << 16
    nearest, rest = halves.view(np.float32).reshape(5, 2, 9).transpose(1, 0, 2)
    np.testing.assert_array_equal(nearest, rounded(values))
    np.testing.assert_array_equal(nearest + rest, rounded_to(2, values))
    np.testing.assert_allclose(nearest.astype(float) + rest, values, rtol=2.0**-17)


@pytest.mark.parametrize("n_parts", [1, 2])
def test_other_libraries_multiply_the_same_numbers(n_parts):
    X, _ = classes(100)
    rows = X.astype(np.float32)
    features = in_bfloat16(FourierFeatures("exp-chi2", n_components=64, random_state=0).fit(rows), rows)
    features.projection_ = replace(features.projection_, n_parts=n_parts)
    inputs = features.map_.transform(rows)
    addends = features.projection_.addends(inputs)
    np.testing.assert_allclose(sum(addends), rounded_to(n_parts, inputs), rtol=2.0**-18, atol=1e-9)
    assert all((rounded(part) == part).all() for part in addends)
    expected = features.transform(rows)
    np.testing.assert_allclose(features.bound(rows)(rows), expected, atol=1e-6)
    wide = features.bound(X)(X)  # float64 rows are not rounded, here and there
    np.testing.assert_allclose(wide, features.transform(X), atol=1e-12)
    assert np.abs(wide - expected).max() > 1e-6


def test_a_model_is_rounded_as_a_whole_and_stays_so(tmp_path):
    X, y = classes(300)
    X = X.astype(np.float32)
    common = {"features": "fourier", "n_components": 256, "alpha": 0.1, "random_state": 0}
    plain = HistogramClassifier("exp-chi2", precision="float32", **common).fit(X, y)
    model = HistogramClassifier("exp-chi2", precision="bfloat16", **common).fit(X, y)
    assert type(plain.features_.projection_) is Matrix
    projection = model.features_.projection_
    assert isinstance(projection, RoundedMatrix)
    np.testing.assert_array_equal(projection.matrix, rounded(plain.features_.projection_.matrix))
    grown = HistogramClassifier("exp-chi2", precision="bfloat16", **common)
    grown.partial_fit(X, y, classes=np.unique(y))
    assert isinstance(grown.features_.projection_, RoundedMatrix)
    model.save(tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert again.features_.projection_.n_parts == projection.n_parts
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    size = len(pickle.dumps(replace(projection)))
    assert len(pickle.dumps(projection)) == size  # without what the units need
    object.__setattr__(projection, "n_parts", 0)
    model.save(tmp_path / "bad.model")
    with pytest.raises(DataError, match="whether an input is one or two bfloat16"):
        load(tmp_path / "bad.model")


def test_features_inside_others_are_rounded_too():
    X = histograms(60, 12).astype(np.float32)
    features = FourierFeatures("exp-chi2", n_components=64, random_state=0).fit(X)
    scaled = in_bfloat16(ScaledFeatures(features, Scale(3)), X)
    assert isinstance(scaled.features.projection_, RoundedMatrix)
    blocks = BlockFeatures([FourierFeatures("exp-chi2", 64, random_state=0)] * 2, {"a": range(6), "b": range(6, 12)})
    side_by_side = in_bfloat16(blocks.fit(X), X)
    assert all(isinstance(own.projection_, RoundedMatrix) for own in side_by_side.features_)
    assert all(type(own.projection_) is Matrix for own in blocks.features_)
    of_fitted = in_bfloat16(BlockFeatures.of_fitted(blocks.features_, blocks.blocks, 12), X)
    assert of_fitted.features == of_fitted.features_  # no unrounded ones stay
    structured = FourierFeatures("exp-chi2", 64, sampling="structured", random_state=0).fit(X)
    assert isinstance(in_bfloat16(structured, X).projection_, Hadamard)
