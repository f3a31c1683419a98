"""The catalogue of families: each kernel gets features of it, of the sizes that were foretold."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import (
    AnchorMap,
    AutomaticFeatures,
    CompressedMap,
    DirectMap,
    FourierFeatures,
    HistogramClassifier,
    MinMaxFeatures,
    NystroemFeatures,
)
from chimap.features.families import FAMILIES, class_of
from chimap.features.fourier.projection import Hadamard
from chimap.kernels import CATALOGUE as KERNELS
from chimap.kernels import as_kernel

rng = np.random.default_rng(0)
X = rng.dirichlet(np.full(12, 0.5), size=60)
NAMES = [*KERNELS, "exp-chi2", "gaussian", "linear", "dirichlet", "skewed-chi2", "skewed-intersection", "pq"]


@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("word", ["auto", *FAMILIES])
def test_every_kernel_has_features_of_the_size_that_was_foretold(kernel, word):
    exact, asked = as_kernel(kernel), AutomaticFeatures(word, n_terms=2)
    has_own = word == "additive" and exact.own_map is not None
    if word != "auto" and not has_own and not any(made.takes(exact) for made in FAMILIES[word]):
        with pytest.raises(ValueError, match=f"features={word!r} does not serve the kernel .*use 'auto' or"):
            asked.of_kernel(exact)
        return
    features = asked.of_kernel(exact, 10)
    assert type(features) is class_of(word, exact)
    assert features.takes(exact)
    assert features.fit(X)._n_features_out <= features.footprint(X.shape[1]).features
    assert features.fitting_bytes(60, 96.0, 8) > 0


def test_objects_are_copied_and_open_settings_are_those_of_the_estimator():
    given = NystroemFeatures("intersection", 7, random_state=0)
    model = HistogramClassifier(features=given, alpha=1.0).fit(X, X[:, 0] > 0.05)
    assert model.kernel_.name == "intersection"
    assert model.feature_coef_.shape == (1, 7)
    named = HistogramClassifier("exp-chi2", features=NystroemFeatures(), n_components=9, alpha=1.0)
    assert named.fit(X, X[:, 0] > 0.05).kernel_.name == "exp-chi2"
    assert named.feature_coef_.shape == (1, 9)
    assert not hasattr(given, "kernel_")


def test_features_of_their_own_seed_and_size_are_taken_as_they_are():
    given = FourierFeatures("exp-chi2", gamma=0.5, random_state=0)  # 1024 by themselves
    model = HistogramClassifier(features=given, alpha=1.0).fit(X, X[:, 0] > 0.05)
    assert (model.feature_coef_.shape, model.kernel_.gamma) == ((1, 1024), 0.5)
    np.testing.assert_array_equal(model.features_.frequencies_, given.fit(X.astype(np.float32)).frequencies_)


def test_what_is_no_family_is_refused():
    with pytest.raises(ValueError, match="has no features_into and no footprint"):
        HistogramClassifier("exp-chi2", features=object()).fit(X, X[:, 0] > 0.05)
    with pytest.raises(ValueError, match="MinMaxFeatures has no footprint, by which a fit plans its memory"):
        HistogramClassifier("minmax", features=MinMaxFeatures()).fit(X, X[:, 0] > 0.05)
    with pytest.raises(ValueError, match=r"the class FourierFeatures: give an object, such as FourierFeatures\(\)"):
        HistogramClassifier("exp-chi2", features=FourierFeatures).fit(X, X[:, 0] > 0.05)


@pytest.mark.parametrize("kernel", ["gaussian", "exp-chi2", "skewed-chi2"])
@pytest.mark.parametrize("form", ["pair", "offset"])
@pytest.mark.parametrize("n_components", [9, 10])
def test_waves_have_the_frequencies_that_were_foretold(kernel, form, n_components):
    asked = AutomaticFeatures("fourier", form=form, sampling="iid")
    features = asked.of_kernel(as_kernel(kernel), n_components).fit(X)
    foretold = features.footprint(X.shape[1])
    assert features.projection_.matrix.shape == (foretold.mapped, foretold.frequencies)
    assert foretold.features == features._n_features_out == n_components


def test_structured_waves_have_no_matrix():
    features = AutomaticFeatures(sampling="structured").of_kernel(as_kernel("gaussian"), 32)
    assert features.footprint(32).frequencies == 0
    assert type(features.fit(np.tile(X, (1, 3))[:, :32]).projection_) is Hadamard


def test_maps_have_as_many_features_as_were_foretold():
    for kernel, n_terms in product(("chi2", "dirichlet", "linear", "additive-gaussian"), ("auto", 1, 2, 3, 4)):
        features = AutomaticFeatures(n_terms=n_terms).of_kernel(as_kernel(kernel)).fit(X)
        assert features.footprint(X.shape[1]).features == features._n_features_out, (kernel, n_terms)


FITTED = {
    "optimal": ("chi2", None),
    "compressed": ("chi2", CompressedMap()),
    "compressed, per bin": ("chi2", CompressedMap(per_bin=True)),
    "direct": ("chi2", DirectMap(n_terms=3)),
    "anchors": ("chi2", AnchorMap(n_terms=2, anchors="kmeans", n_anchors=100)),
    "fourier": ("exp-chi2", None),
    "dirichlet": ("dirichlet", None),
    "skewed": ("skewed-chi2", None),
    "stationary": ("additive-gaussian", None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize(("kind", "dtype"), [(np.asarray, np.float32), (sp.csr_matrix, np.float64)])
@pytest.mark.parametrize("n", [2000, 20_000])
def test_fitting_takes_the_memory_that_was_foretold(name, kind, dtype, n):
    kernel, psi = FITTED[name]
    word = "fourier" if name in ("fourier", "skewed") else "auto"
    features = AutomaticFeatures(word, map=psi).of_kernel(as_kernel(kernel), 16)
    draws = np.random.default_rng(0)
    rows = kind((draws.dirichlet(np.full(16, 0.5), n) * (draws.random((n, 16)) < 0.5)).astype(dtype))
    held = rows.nbytes if kind is np.asarray else rows.data.nbytes + rows.indices.nbytes
    features.changed(random_state=0).fit(rows)  # modules, tables and loops that are loaded once
    tracemalloc.start()
    try:
        features.changed(random_state=0).fit(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    foretold = features.fitting_bytes(n, held / n, rows.dtype.itemsize)
    assert peak < 1.5 * foretold + 2**18
    assert foretold < 10 * peak
