"""Signs of Cauchy projections: their law, their bits, every kind of rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import quad
from sklearn.base import clone

from chimap import ArccosKernel, SignStableProjection, chi2
from chimap._threads import threads
from chimap._validation import DataError

from ..histograms import DTYPES, SPARSE_KINDS, histograms


def agreement(share):
    """E sign(s) sign(t) for s = share A + (1 - share) B, t = share A + (1 - share) C, Cauchy A, B, C: an integral.

    Given A = a the signs are independent, of mean (2/pi) arctan(share a / (1 - share)).
    """

    def product(angle):  # a = tan(angle), uniform on (-pi/2, pi/2)
        return (2 / np.pi * np.arctan(share * np.tan(angle) / (1 - share))) ** 2 / np.pi

    return quad(product, -np.pi / 2, np.pi / 2)[0]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_signs_agree_as_the_integral_says(share):
    """Rows that share one bin and have one each of their own."""
    X = np.array([[share, 1 - share, 0], [share, 0, 1 - share]])
    D = 200_000
    z = SignStableProjection(D, random_state=0).fit(X).transform(X)
    assert z[0] @ z[1] == pytest.approx(agreement(share), abs=4 / np.sqrt(D))
    # the chi2 kernel of these rows is the share, whose arc-cosine is near
    assert abs(agreement(share) - ArccosKernel(chi2)(X)[0, 1]) < 0.07


def test_equal_rows_and_rows_that_share_nothing():
    X = np.array([[0.3, 0.7, 0, 0], [3, 7, 0, 0], [0, 0, 0.2, 0.8]])
    psi = SignStableProjection(100_000, random_state=0).fit(X)
    z = psi.transform(X)
    assert z[0] @ z[1] == pytest.approx(1)
    assert abs(z[0] @ z[2]) < 4 / np.sqrt(100_000)
    np.testing.assert_allclose(psi.kernel_(X), [[1, 1, 0], [1, 1, 0], [0, 0, 1]], atol=1e-7)


def test_comes_close_to_the_arccos_kernel():
    X = histograms(40, 16)
    psi = SignStableProjection(40_000, random_state=0).fit(X)
    Z = psi.transform(X)
    assert psi.kernel_ == ArccosKernel(chi2)
    off = Z @ Z.T - psi.kernel_(X)
    assert off.min() > -0.02 - 4 / 200
    assert off.max() < 0.07 + 4 / 200


def test_chance_falls_like_the_root_of_the_components():
    X = histograms(10)
    limit = SignStableProjection(200_000, random_state=9).fit(X).transform(X)
    limit = limit @ limit.T
    errors = []
    for D in (100, 1600):
        found = [SignStableProjection(D, random_state=s).fit(X).transform(X) for s in range(10)]
        errors.append(np.sqrt(np.mean([(Z @ Z.T - limit) ** 2 for Z in found])))
    assert 3 < errors[0] / errors[1] < 5.5


@pytest.mark.parametrize("D", [1, 7, 8, 64, 100, 515])
def test_bits(D):
    X = histograms(20)
    psi = SignStableProjection(D, random_state=0).fit(X)
    Z = psi.transform(X)
    bits = clone(psi).set_params(output="bits").fit(X).transform(X)
    assert bits.dtype == np.uint8
    assert bits.shape == (20, -(-D // 8))
    np.testing.assert_array_equal(np.unpackbits(bits, axis=1, count=D), Z > 0)
    np.testing.assert_array_equal(bits, psi.set_params(output="bits").transform(X))
    np.testing.assert_allclose(psi.estimate(bits), Z @ Z.T, atol=1e-12)
    np.testing.assert_allclose(psi.estimate(bits[:3], bits[5:]), Z[:3] @ Z[5:].T, atol=1e-12)
    assert len(psi.get_feature_names_out()) == bits.shape[1]


def test_bits_are_counted_in_tiles(monkeypatch):
    X = histograms(50)
    psi = SignStableProjection(300, "bits", random_state=0).fit(X)
    bits = psi.transform(X)
    whole = psi.estimate(bits)
    monkeypatch.setattr("chimap.papers.sign_stable._TILE_BYTES", 300)
    with threads(3):
        np.testing.assert_array_equal(psi.estimate(bits), whole)
    differing = np.bitwise_count(bits[:, None] ^ bits).sum(axis=2)
    np.testing.assert_allclose(whole, 1 - 2 * differing / 300, atol=1e-14)


def test_estimates_the_chi2_kernel():
    X = histograms(30)
    psi = SignStableProjection(20_000, "bits", random_state=0).fit(X)
    found = np.sin(np.pi / 2 * psi.estimate(psi.transform(X)))
    assert np.abs(found - chi2(X)).max() < 0.13


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_sparse_is_dense(kind, dtype, monkeypatch):
    monkeypatch.setattr("chimap.papers.sign_stable._BLOCK_ROWS", 7)
    X = histograms().astype(dtype)
    psi = SignStableProjection(500, random_state=0).fit(SPARSE_KINDS[kind](X))
    Z = psi.transform(SPARSE_KINDS[kind](X))
    assert Z.dtype == dtype
    np.testing.assert_array_equal(Z, psi.transform(X))
    few = sp.random_array((40, 3000), density=0.005, rng=0, format="csr", dtype=dtype)
    few = few + sp.csr_array((np.ones(40, dtype), (np.arange(40), np.arange(40))), shape=few.shape)
    psi = SignStableProjection(100, random_state=0).fit(few)
    np.testing.assert_array_equal(psi.transform(few), psi.transform(few.toarray()))


def test_scale_threads_seeds_and_copies():
    X = histograms(2000, 40)
    psi = SignStableProjection(64, random_state=0).fit(X)
    with threads(1):
        Z = psi.transform(X)
    with threads(3):
        np.testing.assert_array_equal(psi.transform(X), Z)
    for factor in (8.0, 1e300, 1e-300):
        np.testing.assert_array_equal(psi.transform(factor * X), Z)
    np.testing.assert_array_equal(psi.transform((X * 1e30).astype(np.float32)), Z)
    np.testing.assert_array_equal(clone(psi).fit(X[:1]).transform(X), Z)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(psi)).transform(X), Z)
    assert np.any(SignStableProjection(64, random_state=1).fit(X).transform(X) != Z)
    out = np.empty_like(Z)
    psi.features_into(X, out, shift=np.arange(64.0))
    np.testing.assert_array_equal(out, Z - np.arange(64.0))


def test_frequencies_follow_cauchys_law():
    psi = SignStableProjection(1000, random_state=0).fit(histograms(n_bins=100))
    values = np.sort(psi.frequencies_.ravel())
    quartiles = values[[25_000, 50_000, 75_000]]
    np.testing.assert_allclose(quartiles, [-1, 0, 1], atol=0.03)
    assert np.isfinite(values).all()


def test_empty_rows():
    X = histograms(5)
    X[3] = 0
    for kind in (np.asarray, sp.csr_matrix):
        Z = SignStableProjection(50, random_state=0).fit_transform(kind(X))
        np.testing.assert_array_equal(Z[3], 0)
        np.testing.assert_allclose((Z * Z).sum(axis=1), [1, 1, 1, 0, 1])
        assert not SignStableProjection(50, "bits").fit_transform(kind(X))[3].any()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_bad_input(kind):
    X = histograms(9)
    psi = SignStableProjection(20).fit(X)
    for value, message in ((-0.5, "Negative"), (np.nan, "NaN"), (np.inf, "infinity")):
        wrong = X.copy()
        wrong[6, 4] = value
        for call in (psi.fit, psi.transform):
            with pytest.raises(DataError, match=message) as error:
                call(kind(wrong))
            assert "row 6, column 4" in str(error.value)
    wrong = X.copy()
    wrong[7] = 1e308
    with pytest.raises(DataError, match="X, row 7: its bins sum to more than a float64 holds"):
        psi.transform(kind(wrong))
    for wrong in ({"n_components": 0}, {"n_components": 2.5}, {"output": "signs"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            SignStableProjection(**wrong).fit(X)
    for bits in (np.zeros((2, 4), np.uint8), np.zeros((2, 3)), np.zeros(3, np.uint8)):
        with pytest.raises(DataError, match=r"bits must be uint8 \(rows, 3\)"):
            psi.estimate(bits)
    with pytest.raises(DataError, match="others must be uint8"):
        psi.estimate(np.zeros((2, 3), np.uint8), np.zeros((2, 4), np.uint8))
