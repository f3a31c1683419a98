"""What every kernel keeps to: symmetry, positive definiteness, its diagonal, its distance, sparse rows, dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.kernels import ArccosKernel, as_kernel, chi2, hellinger, names

from ..histograms import DTYPES, SPARSE_KINDS, histograms, signed_histograms

KERNELS = {name: as_kernel(name) for name in names()} | {
    "chi2, gamma 1/2": chi2.with_gamma(0.5),
    "signed chi2": chi2.signed(),
    "sum": chi2 + 0.5 * as_kernel("pq"),
    "arccos": ArccosKernel(chi2),
    "product": as_kernel("exp-chi2") * (hellinger + as_kernel("skewed-chi2")),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def rows_of(kernel, n=25):
    X = signed_histograms(n) if kernel.is_signed and kernel.name != "linear" else histograms(n, empty=0.2)
    return X, kernel.fitted(X)


@every_kernel
def test_gram_matrices_are_symmetric_and_positive_semi_definite(kernel):
    X, kernel = rows_of(kernel)
    K = kernel(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X[:5], X), K[:5], rtol=1e-10, atol=1e-13)
    assert np.linalg.eigvalsh(K)[0] > -1e-10 * np.linalg.norm(K)


@every_kernel
def test_diagonal_and_distance(kernel):
    X, kernel = rows_of(kernel)
    K, own = kernel(X), kernel.diagonal(X)
    np.testing.assert_allclose(np.diagonal(K), own, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(kernel.distance(X), own[:, None] + own - 2 * K, atol=1e-9 * own.max())
    np.testing.assert_allclose(kernel.distance(X, X[:4]), kernel.distance(X)[:, :4], atol=1e-12 * own.max())


@pytest.mark.covering(1)
@every_kernel
@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_sparse_as_dense(kernel, kind):
    X, kernel = rows_of(kernel)
    S = SPARSE_KINDS[kind](X)
    np.testing.assert_allclose(kernel(S), kernel(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel(S, X), kernel(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(S), kernel.diagonal(X), rtol=1e-12)


@pytest.mark.covering(1)
@every_kernel
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(kernel, dtype):
    X, kernel = rows_of(kernel)
    single = kernel(X.astype(dtype))
    assert single.dtype == kernel.diagonal(X.astype(dtype)).dtype == kernel.distance(X.astype(dtype)).dtype == dtype
    np.testing.assert_allclose(single, kernel(X), rtol=1e-4, atol=1e-5)


@every_kernel
def test_what_is_fitted_is_fitted(kernel):
    X, fitted = rows_of(kernel)
    assert fitted.fitted(2 * X) == fitted
    np.testing.assert_allclose(kernel(X), fitted(X), rtol=1e-12)


@every_kernel
def test_bad_rows(kernel):
    X, kernel = rows_of(kernel)
    X[3, 2] = np.nan
    with pytest.raises(DataError, match="X, row 3, column 2: NaN"):
        kernel(X)
    X[3, 2] = -1
    if not kernel.is_signed:
        with pytest.raises(DataError, match="row 3, column 2: -1"):
            kernel(X)
    with pytest.raises(DataError, match="12 bins and Y has 5"):
        kernel(np.ones((3, 12)), np.ones((3, 5)))


@every_kernel
def test_zero_rows(kernel):
    X, kernel = rows_of(kernel)
    X[1] = 0
    K = kernel(X)
    assert np.isfinite(K).all()
    np.testing.assert_allclose(K[1, 1], kernel.diagonal(X)[1], rtol=1e-12)


@every_kernel
def test_scaling_both_rows_scales_the_kernel_by_its_degree(kernel):
    X, kernel = rows_of(kernel)
    expected = 4.0**kernel.degree * kernel(X)
    np.testing.assert_allclose(kernel.rescaled(4.0)(4 * X), expected, rtol=1e-9, atol=1e-12)
