"""Angles of many turns: rows that lie far from all others."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import FourierFeatures
from chimap.features.fourier.base import waves

from ...histograms import DTYPES


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1.0, 1e3, 3e4, 1e7, 1e9])
def test_cosines_and_sines_of_any_angle(dtype, size):
    angles = (size * np.random.default_rng(0).standard_normal((7, 40))).astype(dtype)
    offset = np.linspace(0, 6, 40).astype(dtype)
    z = np.hstack([angles, np.zeros((7, 23), dtype)])
    waves(dtype(1), offset, np.zeros(63, dtype), z)
    exact = angles.astype(np.float64) + offset
    # adding the offset rounds an angle
    tolerance = 3e-7 + np.abs(exact).max() * np.finfo(dtype).eps
    np.testing.assert_allclose(z, np.hstack([np.cos(exact), np.sin(exact[:, :23])]), atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_features_of_a_far_row_have_length_one_and_are_like_no_other(dtype):
    rows = np.random.default_rng(0).random((60, 5))
    features = FourierFeatures("gaussian", n_components=2048, random_state=0).fit(rows.astype(dtype))
    for distance in (1e5, 1e9, 1e14, 1e30):
        far = rows.copy()
        far[:2, 3] = distance, 2 * distance
        Z = features.transform(far.astype(dtype)).astype(np.float64)
        np.testing.assert_allclose(np.square(Z).sum(axis=1), 1, atol=1e-5)
        assert np.abs(Z[:2] @ Z[2:].T).max() < 0.15
        assert abs(Z[0] @ Z[1]) < 0.15
