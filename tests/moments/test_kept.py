"""Kept features are the rows of the source, those of fold 0 behind the others."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from chimap.moments.folds import GivenFolds
from chimap.moments.kept import KeptFeatures
from chimap.moments.targets import weighted

FOLDS = np.array([1, 0, 2, 0, 1, 1, 0, 2, 2, 1])


def kept(folds, kind, weights=None):
    """(features kept in two pieces, all features, all signs)."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((10, 4)).astype(np.float32)
    Y = np.where(rng.random((10, 2)) < 0.5, -1.0, 1.0)
    Y[4, 1] = np.nan
    found = KeptFeatures(GivenFolds(folds, int(folds.max()) + 1))
    for part in (slice(0, 7), slice(7, 10)):
        found.put(kind(Z[part]), weighted(Y[part], None if weights is None else weights[part]), part.start)
    found.stack()
    return found, Z, np.nan_to_num(Y)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("weights", [None, np.arange(1.0, 11.0)])
def test_rows_of_fold_0_lie_behind(kind, weights):
    found, Z, Y = kept(FOLDS, kind, weights)
    learning, held = np.flatnonzero(FOLDS != 0), np.flatnonzero(FOLDS == 0)
    np.testing.assert_array_equal(found.places[found.held_out], held)
    np.testing.assert_array_equal(found.folds, FOLDS[found.places])
    assert (found.learning, found.held_out, found.everything) == (slice(0, 7), slice(7, 10), slice(0, 10))
    others = np.flatnonzero(found.folds != 1)  # behind each other, in no slice
    parts = ((found.learning, learning), (found.held_out, held), (others, found.places[others]))
    for part, rows in parts:
        features, signs = found.of(part)
        features = features.toarray() if sp.issparse(features) else features
        assert features.dtype == np.float64
        assert signs.dtype == np.int8
        np.testing.assert_array_equal(features, Z[rows])
        np.testing.assert_array_equal(signs, Y[rows])
        np.testing.assert_array_equal(found.weights[part], 1 if weights is None else weights[rows])


def test_with_one_fold_nothing_is_held_out():
    found, Z, _ = kept(np.zeros(10, int), np.asarray)
    assert (found.learning, found.held_out) == (slice(0, 10), slice(10, 10))
    np.testing.assert_array_equal(found.Z, Z)
