from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import get_tags

from chimap import Exponential, FourierFeatures, HomogeneousMap, OptimalMap, chi2
from chimap._threads import threads
from chimap._validation import DataError

from ...histograms import DTYPES, SPARSE_KINDS, histograms, relative_error, signed_histograms

forms = pytest.mark.parametrize("form", ["pair", "offset"])


def fitted(X, n_components=64, **settings):
    return FourierFeatures(n_components=n_components, random_state=0, **settings).fit(X)


@forms
def test_formula(form):
    X = histograms()
    features = fitted(X, form=form, gamma=1.3)
    angles = features.map_.transform(X) @ features.frequencies_
    expected = (
        np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(32)
        if form == "pair"
        else np.sqrt(2 / 64) * np.cos(angles + features.offset_)
    )
    np.testing.assert_allclose(features.transform(X), expected, atol=1e-14)
    assert features.gamma_ == features.kernel_.gamma == 1.3


@forms
@pytest.mark.parametrize("n_components", [1, 33, 64])
def test_shapes(form, n_components):
    X = histograms()
    features = fitted(X, n_components, form=form)
    assert features.transform(X).shape == (30, n_components)
    assert features.frequencies_.shape[1] == (n_components if form == "offset" else (n_components + 1) // 2)
    assert features.get_feature_names_out().tolist() == [f"fourierfeatures{i}" for i in range(n_components)]


@forms
def test_odd_numbers_of_components_approximate_as_well(form):
    X = histograms(20)
    exact = Exponential(chi2, 1.0)(X)
    settings = {"n_components": 5, "gamma": 1.0, "n_terms": 5, "form": form}
    draws = [FourierFeatures(**settings, random_state=s).fit_transform(X) for s in range(60)]
    grams = [Z @ Z.T for Z in draws]
    # 60 draws of 5: as good as 300 features at once, and as free of bias
    assert relative_error(np.mean(grams, axis=0), exact) < 0.15


@forms
@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_sparse_as_dense(form, kind):
    X = histograms()
    X[3] = 0
    features = fitted(X, form=form)
    Z = features.transform(SPARSE_KINDS[kind](X))
    assert isinstance(Z, np.ndarray)
    np.testing.assert_allclose(Z, features.transform(X), atol=1e-13)


@forms
@pytest.mark.parametrize("dtype", DTYPES)
def test_wide_sparse_rows(form, dtype):
    # so few entries that the projection is a sparse product
    X = histograms(600, 300, empty=0.99).astype(dtype)
    features = fitted(X, 1500, form=form)
    atol = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(features.transform(sp.csr_matrix(X)), features.transform(X), atol=atol)


@forms
def test_float32_as_float64(form):
    X = histograms(600)
    features = fitted(X, form=form)
    single = features.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, features.transform(X), atol=1e-5)
    assert fitted(X.astype(np.float32), form=form).frequencies_.dtype == np.float32


@forms
@pytest.mark.parametrize("dtype", DTYPES)
def test_into_memory_that_is_there(form, dtype):
    X = histograms(1100).astype(dtype)  # three blocks of rows
    features = fitted(X, 65, form=form)
    Z, shift = features.transform(X), np.linspace(-1, 1, 65)
    for rows in (X, sp.csr_matrix(X)):
        out = np.full((1100, 65), np.nan, dtype)
        features.features_into(rows, out, shift)
        np.testing.assert_allclose(out, Z - shift.astype(dtype), atol=1e-5 if dtype == np.float32 else 1e-12)


def test_random_state_is_all_the_randomness():
    X = histograms()
    first, again = (fitted(X).transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = FourierFeatures(n_components=64, random_state=1).fit_transform(X)
    assert np.abs(first - other).max() > 0.01
    state = np.random.RandomState(0)
    assert np.abs(FourierFeatures(random_state=state).fit_transform(X)).max() > 0
    with threads(1):
        np.testing.assert_allclose(fitted(X).transform(X), first, atol=1e-14)


def test_mean_gamma_and_kernels_as_objects():
    X = histograms()
    assert fitted(X).gamma_ == pytest.approx(Exponential(chi2).fitted(X).gamma)
    assert fitted(X, kernel=Exponential(chi2, 7.0)).gamma_ == 7
    assert fitted(X, kernel="exp-intersection", gamma=2).kernel_.kernel.name == "intersection"


def test_signed_kernel():
    X = signed_histograms()
    features = fitted(X, 4096, kernel=Exponential(chi2.signed(), 1.0), n_terms=6)
    Z = features.transform(X)
    assert relative_error(Z @ Z.T, features.kernel_(X)) < 0.05


def test_another_map_serves_as_a_template():
    X = histograms()
    template = HomogeneousMap("intersection", n_terms=5)
    features = fitted(X, map=template)
    assert not hasattr(template, "kernel_")
    assert template.kernel == "intersection"
    assert isinstance(features.map_, HomogeneousMap)
    assert features.map_.kernel_ == chi2
    assert features.frequencies_.shape[0] == 60
    assert isinstance(fitted(X, n_terms=3).map_, OptimalMap)


def test_copies():
    X = histograms()
    features = fitted(X)
    again = pickle.loads(pickle.dumps(features))
    np.testing.assert_array_equal(again.transform(X), features.transform(X))
    np.testing.assert_array_equal(clone(features).fit_transform(X), features.transform(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components must be a positive whole number; got 0"),
        ({"n_components": 2.5}, "n_components must be a positive whole number"),
        ({"sampling": "halton"}, "sampling must be one of 'orthogonal', 'structured', 'iid', 'qmc'; got 'halton'"),
        ({"form": "triple"}, "form must be one of 'pair', 'offset'"),
        ({"kernel": "chi2"}, "features of exponential kernels; got 'chi2'. Use 'exp-chi2'"),
        ({"gamma": -1}, "gamma .* must be a positive number"),
        ({"map": "optimal"}, "map must be an additive map such as OptimalMap"),
        ({"n_terms": 0}, "n_terms must be a positive whole number"),
    ],
    ids=str,
)
def test_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        FourierFeatures(**settings).fit(histograms())


def test_bad_rows():
    X = histograms()
    features = fitted(X)
    with pytest.raises(ValueError, match="X has 5 features, but FourierFeatures is expecting 12"):
        features.transform(histograms(n_bins=5))
    X[4, 2] = np.nan
    for call in (features.transform, FourierFeatures().fit):
        with pytest.raises(DataError, match="row 4, column 2"):
            call(X)
    with pytest.raises(DataError, match="all sampled rows are equal"):
        FourierFeatures().fit(np.ones((5, 3)))


@pytest.mark.parametrize(
    ("kernel", "takes_signs"),
    [("exp-chi2", False), ("gaussian", True), (Exponential(chi2), False), (Exponential(chi2.signed()), True)],
)
def test_tags_say_which_signs_are_taken(kernel, takes_signs):
    tags = get_tags(FourierFeatures(kernel))
    assert tags.input_tags.positive_only is not takes_signs
    X = -histograms(20)
    if takes_signs:
        assert np.isfinite(FourierFeatures(kernel, 16).fit_transform(X)).all()
    else:
        with pytest.raises(DataError, match="Negative values"):
            FourierFeatures(kernel, 16).fit(X)
