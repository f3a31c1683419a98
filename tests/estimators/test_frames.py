"""Data frames in ``fit`` and ``predict``: columns have names, one may be the labels, and an index is no bin."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from chimap import HistogramClassifier, HistogramRegressor
from chimap._validation import DataError

X = np.random.default_rng(0).dirichlet(np.ones(4), 60)
LABELS = np.where(X[:, 0] > 0.2, "cat", "dog")
FRAME = pd.DataFrame(X, columns=list("abcd"))


def polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


LIBRARIES = pytest.mark.parametrize("as_frame", [lambda frame: frame, polars, arrow], ids=["pandas", "polars", "arrow"])


def fitted(rows, labels, make=HistogramClassifier):
    return make("chi2", alpha=1.0, random_state=0).fit(rows, labels)


@LIBRARIES
def test_the_labels_are_an_array_or_the_name_of_a_column(as_frame):
    expected = fitted(FRAME, LABELS).decision_function(FRAME)
    for model in (fitted(as_frame(FRAME), LABELS), fitted(as_frame(FRAME.assign(species=LABELS)), "species")):
        assert model.feature_names_in_.tolist() == list("abcd")
        np.testing.assert_allclose(model.decision_function(as_frame(FRAME)), expected, atol=1e-6)


def test_a_named_target_is_a_number_and_a_missing_label_leaves_its_row_out():
    frame = FRAME.assign(size=X[:, 0])
    model = fitted(frame, "size", HistogramRegressor)
    np.testing.assert_array_equal(model.predict(FRAME), fitted(FRAME, X[:, 0], HistogramRegressor).predict(FRAME))
    some = FRAME.assign(species=np.where(np.arange(60) < 50, LABELS, None))
    assert fitted(some, "species").classes_.tolist() == ["cat", "dog"]


@LIBRARIES
def test_the_index_that_a_file_had_is_no_bin(as_frame):
    written = as_frame(FRAME.reset_index(names="Unnamed: 0"))
    model = HistogramClassifier("chi2", random_state=0).fit(written, LABELS)
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(model.predict(written), model.predict(as_frame(FRAME)))


@LIBRARIES
def test_a_first_column_that_counts_the_rows_is_refused(as_frame):
    with pytest.raises(DataError, match=r"'sample', counts the rows.*X.drop\(columns='sample'\)"):
        fitted(as_frame(FRAME.reset_index(names="sample")), LABELS)


def test_a_name_needs_a_frame_that_has_it():
    with pytest.raises(DataError, match=r"'species' names a column.*ndarray"):
        fitted(X, "species")
    with pytest.raises((DataError, FileNotFoundError), match="species"):
        fitted(FRAME, "species")
