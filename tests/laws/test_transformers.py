"""What every transformer of rows keeps to: those of a kernel a bin, random features, landmarks, whitening, signs."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from chimap import (
    AnchorMap,
    DirichletMap,
    FourierFeatures,
    LandmarkFeatures,
    NystroemFeatures,
    SignStableProjection,
    SkewedFourierFeatures,
    StaircaseMap,
    StationaryMap,
)
from chimap._validation import DataError
from chimap.features.additive import CATALOGUE as MAPS
from chimap.features.additive.identity import IdentityMap
from chimap.features.fourier.sampling import BY_QUANTILE
from chimap.features.fourier.sampling import CATALOGUE as SAMPLINGS
from chimap.features.landmarks.choosing import CATALOGUE as LANDMARKS

from ..histograms import DTYPES, SPARSE_KINDS, histograms

RANDOM = {"n_components": 32, "random_state": 0}
NYSTROEM = {"n_components": 8, "random_state": 0}
TRANSFORMERS = (
    {name: partial(make, n_terms=3) for name, make in MAPS.items()}
    | {
        "anchors, k-means": partial(AnchorMap, n_terms=3, anchors="kmeans"),
        "anchors, two neighbours": partial(AnchorMap, n_terms=3, n_neighbors=2),
        "anchors, codes": partial(AnchorMap, output="codes"),
        "staircase, linear": partial(StaircaseMap, n_terms=3),
    }
    | {f"fourier, {s}": partial(FourierFeatures, sampling=s, gamma=1.0, **RANDOM) for s in SAMPLINGS}
    | {
        f"{kernel}, {s}": partial(SkewedFourierFeatures, kernel, sampling=s, **RANDOM)
        for kernel in ("skewed-chi2", "skewed-intersection")
        for s in BY_QUANTILE
    }
    | {
        f"landmarks, {kernel}, {how}": partial(NystroemFeatures, kernel, gamma=1.0, landmarks=how, **NYSTROEM)
        for kernel in ("exp-chi2", "intersection")
        for how in LANDMARKS
    }
    | {
        f"landmarks by products, {how}": partial(
            LandmarkFeatures, kernel, gamma=1.0, landmarks=how, n_terms=2, **NYSTROEM
        )
        for kernel, how in zip(("exp-chi2", "exp-intersection", "exp-hellinger"), LANDMARKS, strict=True)
    }
    | {
        "dirichlet": DirichletMap,
        "stationary": partial(StationaryMap, n_terms=3),
        "stationary, kink": partial(StationaryMap, "additive-laplace", n_terms=5, window="uniform"),
        "identity": IdentityMap,
        "signs": partial(SignStableProjection, **RANDOM),
        "bits": partial(SignStableProjection, output="bits", **RANDOM),
    }
)
every_transformer = pytest.mark.parametrize("make", TRANSFORMERS.values(), ids=TRANSFORMERS)


def dense(Z):
    return Z.toarray() if sp.issparse(Z) else Z


@every_transformer
def test_a_fit_that_fails_leaves_the_transformer_as_it_was(make):
    transformer, X = make(), histograms(20, 6)
    transformer.fit(X)
    before = dict(vars(transformer))
    X[7, 3] = np.nan
    with pytest.raises(DataError, match="NaN"):
        transformer.fit(np.hstack([X, X]))
    assert [*map(id, vars(transformer).values())] == [*map(id, before.values())]


def is_coded(transformer):
    return getattr(transformer, "output", "features") != "features"


@every_transformer
@pytest.mark.parametrize("dtype", DTYPES)
def test_floats_stay_what_they_are(make, dtype):
    X = histograms().astype(dtype)
    Z = dense(make().fit_transform(X))
    assert Z.dtype == (np.uint8 if is_coded(make()) else dtype)
    assert Z.shape[0] == 30


@every_transformer
def test_whole_numbers_and_truth_values_are_float64(make):
    counts = np.random.default_rng(0).integers(0, 9, (20, 6))
    transformer = make().fit(counts)
    expected = dense(transformer.transform(counts.astype(np.float64)))
    for rows in (counts, counts.astype(np.uint8), sp.csr_matrix(counts)):
        np.testing.assert_array_equal(dense(transformer.transform(rows)).dtype, expected.dtype)
        np.testing.assert_allclose(dense(transformer.transform(rows)), expected, rtol=1e-9, atol=1e-12)
    assert np.isfinite(dense(transformer.transform(counts > 4))).all()


@pytest.mark.covering(2)
@every_transformer
@pytest.mark.parametrize("kind", ["csr array", "unordered, doubled", "room to spare", "64-bit indices"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse_as_dense(make, kind, dtype):
    X = histograms().astype(dtype)
    X[4] = 0
    transformer = make().fit(X)
    Z, S = dense(transformer.transform(X)), dense(transformer.transform(SPARSE_KINDS[kind](X)))
    assert S.dtype == Z.dtype
    if is_coded(transformer) or isinstance(transformer, SignStableProjection):
        assert np.mean(S != Z) < 1e-2  # a product next to 0 may round to either side
    else:
        np.testing.assert_allclose(S, Z, rtol=1e-4 if dtype == np.float32 else 1e-9, atol=1e-5)
    again = dense(make().fit(SPARSE_KINDS[kind](X)).transform(X))
    if is_coded(transformer):
        assert np.mean(again != Z) < 1e-2
    else:
        # of landmarks the features may be turned, their products may not
        np.testing.assert_allclose(again @ again.T, Z @ Z.T, rtol=1e-3, atol=1e-4)


@every_transformer
def test_feature_names(make):
    X = histograms()
    transformer = make().fit(X)
    names = transformer.get_feature_names_out()
    assert len(set(names)) == len(names) == transformer.transform(X).shape[1]
    assert names.dtype == object
    assert all(isinstance(name, str) for name in names)


@every_transformer
def test_copies(make):
    X = histograms()
    transformer = make().fit(X)
    Z = dense(transformer.transform(X))
    settings = transformer.get_params()
    fresh = clone(transformer)
    assert str(fresh.get_params()) == str(settings) == str(make().get_params())
    assert [a for a in vars(fresh) if a.endswith("_")] == []
    np.testing.assert_array_equal(dense(fresh.fit(X).transform(X)), Z)
    np.testing.assert_array_equal(dense(pickle.loads(pickle.dumps(transformer)).transform(X)), Z)
    other = transformer.fit(2 * X + (X > 0)).transform(X)  # nothing of the first fit is left
    np.testing.assert_array_equal(dense(make().fit(2 * X + (X > 0)).transform(X)), dense(other))


@every_transformer
def test_data_are_not_written_to(make):
    X = histograms()
    kept, S = X.copy(), sp.csr_matrix(X)
    parts = S.data.copy(), S.indices.copy()
    X.setflags(write=False)
    make().fit(X).transform(X)
    make().fit(S).transform(S)
    np.testing.assert_array_equal(X, kept)
    for part, before in zip((S.data, S.indices), parts, strict=True):
        np.testing.assert_array_equal(part, before)


@every_transformer
def test_a_row_does_not_depend_on_its_neighbours(make):
    X = histograms(60)
    transformer = make().fit(X)
    Z = dense(transformer.transform(X))
    np.testing.assert_allclose(dense(transformer.transform(X[17:18])), Z[17:18], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dense(transformer.transform(X[::-1])), Z[::-1], rtol=1e-9, atol=1e-9)
    assert transformer.transform(np.asfortranarray(X)).shape == Z.shape
    np.testing.assert_allclose(dense(transformer.transform(np.asfortranarray(X))), Z, rtol=1e-12, atol=1e-12)


def poor(kind):
    """Rows that say little."""
    X = histograms(12, 5)
    if kind == "empty row":
        X[3] = 0
    elif kind == "empty bin":
        X[:, 2] = 0
    elif kind == "constant bin":
        X[:, 2] = 0.25
    elif kind == "one distinct value":
        X = np.where(np.arange(60).reshape(12, 5) % 3 > 0, 0.5, 0.0)
    elif kind == "equal rows, but one":
        X[1:] = X[1]
    elif kind == "one bin":
        X = X[:, :1] + 0.1
    return X


@pytest.mark.covering(2)
@every_transformer
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "kind", ["empty row", "empty bin", "constant bin", "one distinct value", "equal rows, but one", "one bin"]
)
@pytest.mark.filterwarnings("ignore:.*landmarks")  # fewer distinct rows than landmarks: a warning says so
def test_rows_that_say_little(make, kind, dtype):
    X = poor(kind).astype(dtype)
    transformer = make()
    if isinstance(transformer, DirichletMap) and kind == "one bin":
        with pytest.raises(DataError):
            transformer.fit(X)
        return
    for rows in (X, sp.csr_matrix(X)):
        Z = dense(transformer.fit(rows).transform(rows))
        assert np.isfinite(Z).all()
        assert Z.dtype == (np.uint8 if is_coded(transformer) else dtype)
        unseen = np.full((1, X.shape[1]), 0.7, dtype)
        assert np.isfinite(dense(transformer.transform(unseen))).all()


@every_transformer
@pytest.mark.filterwarnings("ignore:.*landmarks")
def test_one_row(make):
    X = histograms(1)
    if make is DirichletMap:
        with pytest.raises(DataError, match="row"):
            make().fit(X)
        return
    transformer = make().fit(X)
    assert np.isfinite(dense(transformer.transform(histograms(5)))).all()


@pytest.mark.covering(2)
@every_transformer
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(("value", "message"), [(np.nan, "NaN"), (np.inf, "inf"), (-50, "[Nn]egative")])
def test_bad_entries(make, kind, value, message):
    X = histograms()
    X[7, 3] = value
    fitted = make().fit(histograms())
    if isinstance(fitted, IdentityMap | StationaryMap) and value < 0:  # of bins of either sign
        found = dense(fitted.transform(kind(X)))
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found, dense(fitted.transform(np.asarray(X))))
        return
    for call in (make().fit, fitted.transform):
        with pytest.raises(DataError, match=message) as error:
            call(kind(X))
        assert "row 7, column 3" in str(error.value)


@every_transformer
def test_width_and_shape(make):
    transformer = make().fit(histograms())
    with pytest.raises(ValueError, match=r"X has 5 features, but .* is expecting 12 features"):
        transformer.transform(histograms(n_bins=5))
    with pytest.raises(ValueError, match="2D array"):
        transformer.transform(histograms()[0])
    for call in (make().fit, transformer.transform):
        with pytest.raises(ValueError, match="0 sample"):
            call(histograms()[:0])
    with pytest.raises(ValueError, match=r"(?i)complex"):
        make().fit(histograms().astype(complex))
    with pytest.raises(ValueError, match=r"(?i)string|convert|number"):
        make().fit(np.array([["a", "b"], ["c", "d"]]))
