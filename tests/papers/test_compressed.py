"""Compressed maps: at the Eckart-Young limit of the long map, for all bins and bin by bin."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import ChebyshevMap, CompressedMap, DirectMap, HomogeneousMap, OptimalMap, chi2
from chimap.features.additive.densities import counted, density
from chimap.kernels import CATALOGUE as KERNELS

from ..histograms import histograms, relative_error

LONG = {
    "direct": DirectMap(n_terms=16, nodes="minimax"),
    "homogeneous": HomogeneousMap(n_terms=31),
    "chebyshev": ChebyshevMap(n_terms=96),
}


def of_many_scales():
    return histograms(400) * np.logspace(-3, 3, 12)


def error(psi, X):
    Z = psi.fit_transform(X)
    return relative_error(Z @ Z.T, psi.kernel_(X))


@pytest.mark.parametrize("base", LONG.values(), ids=LONG)
def test_three_terms_of_a_long_map_beat_its_own_three(base):
    X = histograms(200)
    short = type(base)(**base.get_params(deep=False)).set_params(n_terms=3)
    assert error(CompressedMap(n_terms=3, base=base), X) < 0.7 * error(short, X)


@pytest.mark.parametrize("kernel", ["chi2", "jensen_shannon"])
def test_as_good_as_the_optimal_map(kernel):
    X = histograms(300)
    for n in (1, 2, 4):
        ours, best = error(CompressedMap(kernel, n), X), error(OptimalMap(kernel, n), X)
        assert ours < 1.02 * best + 1e-12


@pytest.mark.parametrize("name", ["chi2", "jensen_shannon", "intersection"])
def test_each_bin_attains_its_own_bound(name):
    kernel, X = KERNELS[name], of_many_scales()
    psi = CompressedMap(kernel, 3, base=OptimalMap(n_terms=40), per_bin=True).fit(X)
    Z = psi.transform(X).reshape(len(X), 3, 12)
    for i in range(12):
        K = kernel(X[:, i : i + 1])
        bound = np.linalg.norm(np.linalg.eigvalsh(K)[:-3])
        assert np.linalg.norm(K - Z[:, :, i] @ Z[:, :, i].T) < 1.1 * bound + 1e-6 * np.linalg.norm(K)
        points, counts = density(*counted(X[:, i][X[:, i] > 0]), 64)
        roots = np.sqrt(counts / counts.sum())
        expected = np.linalg.eigvalsh(roots[:, None] * kernel(points[:, None]) * roots)[::-1][:3]
        np.testing.assert_allclose(psi.eigenvalues_[i] * psi.scales_[i], expected, rtol=5e-3)


def test_bins_of_many_scales_gain():
    X = of_many_scales()
    scaled = X / X.max(axis=0)

    def mean_error(psi):
        Z = psi.fit_transform(X).reshape(len(X), -1, 12)
        return np.mean([relative_error(Z[:, :, i] @ Z[:, :, i].T, chi2(X[:, i : i + 1])) for i in range(12)])

    assert scaled.max() == 1
    for make in (lambda p: CompressedMap(n_terms=2, per_bin=p), lambda p: DirectMap(n_terms=3, per_bin=p)):
        assert mean_error(make(True)) < 0.5 * mean_error(make(False))


def test_nodes_of_each_bin():
    X = of_many_scales()
    psi = DirectMap(n_terms=3, nodes="minimax", per_bin=True).fit(X)
    assert psi.nodes_.shape == (3, 12)
    for i in range(12):
        alone = DirectMap(n_terms=3, nodes="minimax").fit(X[:, i : i + 1])
        np.testing.assert_allclose(psi.nodes_[:, i], alone.nodes_, rtol=1e-12)
        np.testing.assert_allclose(psi.transform(X)[:, i::12], alone.transform(X[:, i : i + 1]), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("make", [CompressedMap, DirectMap])
def test_bins_without_values_take_what_all_share(make):
    X = histograms(50)
    X[:, 4] = 0
    psi = make(n_terms=3, per_bin=True).fit(X)
    X[:, 4] = 0.1
    Z = psi.transform(X).reshape(50, 3, 12)[:, :, 4]
    np.testing.assert_allclose((Z * Z).sum(axis=1), 0.1, rtol=0.05)
    np.testing.assert_allclose(psi.transform(sp.csr_matrix(X)).toarray(), psi.transform(X), rtol=1e-12)


def test_bad_settings():
    X = histograms()
    with pytest.raises(ValueError, match="DirectMap approximates chi2; got 'intersection'"):
        CompressedMap("intersection", base=DirectMap(n_terms=9)).fit(X)
    with pytest.raises(ValueError, match="map must be an additive map"):
        CompressedMap(base="direct").fit(X)
    with pytest.raises(ValueError, match="with given nodes it must be False"):
        DirectMap(n_terms=1, nodes=[0.1], per_bin=True).fit(X)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_one_bin_has_a_scale_of_its_own(scale):
    X = scale * histograms(100, 4, empty=0.0)[:, :1]
    psi = CompressedMap(n_terms=3, per_bin=True)
    assert error(psi, X) < 1e-2
    np.testing.assert_allclose(psi.transform(sp.csr_matrix(X)).toarray(), psi.transform(X), rtol=1e-12)


@pytest.mark.parametrize("per_bin", [False, True])
def test_bins_differ_where_each_has_its_combination(per_bin):
    assert CompressedMap(per_bin=per_bin).fit(histograms(50))._differs_by_bin is per_bin
