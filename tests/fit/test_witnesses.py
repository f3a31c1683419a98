"""Rows whose held-out outputs are wanted."""

from __future__ import annotations

import numpy as np

from chimap import HistogramClassifier
from chimap.data import ArraySource
from chimap.fit.rows import Preparation, PreparedRows
from chimap.fit.targets import ClassCodec
from chimap.moments import DealtFolds


def prepared(n_rows):
    y = np.arange(n_rows) % 2
    source = ArraySource(np.ones((n_rows, 2), np.float32), y)
    parts = HistogramClassifier("chi2")._parts(2)
    return PreparedRows(
        source, Preparation(parts, np.dtype("float32"), None), ClassCodec.of(y), DealtFolds(1, 0), 0
    )


def test_they_are_rows_that_the_features_were_not_fitted_on_where_there_are_enough():
    rows = prepared(20_000)
    places = rows.witnesses(16, 4, 2**30)
    assert places.size == 2000
    assert np.array_equal(places, np.unique(places))
    assert not np.isin(places, rows._sampled()).any()


def test_of_few_rows_they_are_any():
    for n_rows in (100, 4500):
        rows = prepared(n_rows)
        places = rows.witnesses(16, 4, 2**30)
        assert places.size == min(n_rows, 2000)
        assert np.array_equal(places, np.unique(places))
    rows = prepared(5500)  # of which 4096 are the sample
    assert rows.witnesses(16, 4, 2**30).size == 5500 - rows._sampled().size
