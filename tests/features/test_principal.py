"""Principal components from moments against those of the rows."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.decomposition

from chimap import Moments
from chimap._validation import DataError
from chimap.features.principal import PCA

from ..moments.cases import assert_says, moments_of, rows


@pytest.mark.parametrize("n_components", [None, 1, 40, 300])
@pytest.mark.parametrize("mean", [1.0, 1e4])
def test_are_those_of_scikit_learn(n_components, mean):
    Z, Y = rows(900, 300, 2, mean=mean)
    found = PCA.of(moments_of(Z, Y), n_components)
    expected = sklearn.decomposition.PCA(n_components, svd_solver="full").fit(Z)
    p = n_components or 300
    assert found.components.shape == (300, p)
    np.testing.assert_allclose(found.mean, expected.mean_, rtol=1e-12)
    np.testing.assert_allclose(found.variances, expected.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(found.shares, expected.explained_variance_ratio_, rtol=1e-9)
    overlap = np.abs((found.components * expected.components_.T).sum(axis=0))
    np.testing.assert_allclose(overlap, 1, rtol=1e-9)
    np.testing.assert_allclose(found.components.T @ found.components, np.eye(p), atol=1e-12)
    ends = np.take_along_axis(found.components, np.abs(found.components).argmax(0)[None], 0)
    assert np.all(ends > 0)


def test_coordinates():
    Z, Y = rows(60, 5, 1)
    pca = PCA.of(moments_of(Z, Y), 3)
    P = pca.transform(Z)
    np.testing.assert_allclose(P.T @ P, np.diag(pca.scatters), atol=1e-9)
    np.testing.assert_allclose(P.mean(axis=0), 0, atol=1e-12)
    assert pca.transform(Z.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("shape", [(90, 7, 2), (400, 300, 1)])
@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_projected_moments_are_those_of_the_coordinates(shape, mean):
    Z, Y = rows(*shape, mean=mean)
    moments = moments_of(Z, Y)
    pca = PCA.of(moments, 4)
    projected = moments.projected(pca.components, pca.mean)
    P = (Z - pca.mean) @ pca.components
    # coordinates have mean zero, to the rounding of the mean of the rows
    assert_says(projected.merge(moments_of(P + 1, Y)), np.vstack([P, P + 1]), np.vstack([Y, Y]), rtol=1e-8)


def test_rows_without_labels_join():
    Z, Y = rows(80, 6, 2)
    more, _ = rows(50, 6, 2, seed=1)
    unlabelled = Moments(6, 0).update(more, np.zeros((50, 0)))
    found = PCA.of(moments_of(Z, Y).without_targets() + unlabelled, 3)
    both = np.vstack([Z, more])
    expected = sklearn.decomposition.PCA(3, svd_solver="full").fit(both)
    np.testing.assert_allclose(found.variances, expected.explained_variance_, rtol=1e-10)
    assert found.count == 130


def test_fewer_rows_than_features():
    Z, Y = rows(5, 20, 1)
    pca = PCA.of(moments_of(Z, Y))
    assert np.all(pca.scatters[:4] > 1e-6 * pca.scatters[0])
    assert np.all(pca.scatters[4:] < 1e-12 * pca.scatters[0])


def test_bad_requests():
    Z, Y = rows(20, 4, 1)
    moments = moments_of(Z, Y)
    for wrong in (0, -1, 2.5):
        with pytest.raises(ValueError, match="n_components must be a positive whole number"):
            PCA.of(moments, wrong)
    with pytest.raises(ValueError, match="n_components=5, but there are 4 features"):
        PCA.of(moments, 5)
    with pytest.raises(DataError, match="no rows"):
        PCA.of(Moments(4, 1))


def test_variances_of_two_rows():
    Z, Y = rows(2, 3, 1)
    expected = sklearn.decomposition.PCA(1, svd_solver="full").fit(Z)
    np.testing.assert_allclose(PCA.of(moments_of(Z, Y), 1).variances, expected.explained_variance_, rtol=1e-9)
