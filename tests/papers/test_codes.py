"""Tables of scores by code: their sizes, and scores that are those of the features."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import AnchorMap

from ..histograms import histograms


def test_sizes_and_scores():
    X = histograms(60, 10)
    psi = AnchorMap("chi2", n_terms=2, n_anchors=4).fit(X)
    Z = psi.transform(X)
    coef, intercept = np.random.default_rng(0).normal(size=(Z.shape[1], 3)), np.array([1.0, 2.0, 3.0])
    tables = psi.code_tables(coef, intercept)
    assert (tables.n_bins, tables.n_outputs) == (10, 3)
    assert tables.tables.shape[1] == psi.n_codes_ != 10
    scores, outside = tables.scores(X)
    assert outside.shape == tables.bound(X).shape == (60,)
    assert not outside.any()
    assert abs(scores - (Z @ coef + intercept)).max() < tables.worst_error < 1e-2
    largest = np.abs(tables.tables).reshape(10, -1).max(axis=1).sum()
    assert tables.worst_error == pytest.approx(2.0**-20 * largest, rel=1e-6)
