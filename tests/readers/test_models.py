"""Models that keep how their rows were made: text, molecules and named counts predict as they are."""

import csv

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import chimap
from chimap._validation import DataError
from chimap.estimators import HistogramClassifier
from chimap.readers import MorganCounts, NamedCounts, WordCounts, open_source

from .test_fields import KINDS, SMILES, TEXTS, write_csv

CHI2 = {"kernel": "chi2", "random_state": 0}


@pytest.fixture
def model(tmp_path):
    """Fitted on a table of text, saved and opened again."""
    source = open_source(write_csv(tmp_path), "kind", reading=WordCounts("body"))
    HistogramClassifier(**{"kernel": "exp-chi2"} | CHI2).fit_source(source).save(tmp_path / "texts.model")
    return chimap.load(tmp_path / "texts.model")


def test_text_is_predicted_as_its_words_would_be(model, tmp_path):
    words = CountVectorizer(min_df=2)
    X = words.fit_transform(TEXTS).astype(np.float32)
    expected = HistogramClassifier(**{"kernel": "exp-chi2"} | CHI2).fit(X, KINDS)
    new = ["a red hen", "the fox", "other words"]
    scores = expected.decision_function(words.transform(new).astype(np.float32))
    np.testing.assert_allclose(model.decision_function(new), scores, rtol=1e-5, atol=1e-6)
    with (tmp_path / "new.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["body"], *([text] for text in new)])
    outputs = model.predict_source(open_source(tmp_path / "new.csv", like=model))
    np.testing.assert_allclose(outputs, scores.reshape(outputs.shape), rtol=1e-5, atol=1e-6)


def test_a_model_of_text_takes_a_matrix_of_its_words_too(model):
    X = CountVectorizer(vocabulary=model.reading_.vocabulary).transform(TEXTS).astype(np.float32)
    np.testing.assert_array_equal(model.predict(X), model.predict(TEXTS))


def test_a_table_without_the_column_is_refused(model, tmp_path):
    (tmp_path / "new.csv").write_text("review\nred fox\n")
    with pytest.raises(DataError, match="no column 'body'; there are review"):
        open_source(tmp_path / "new.csv", like=model)


def test_molecules_are_predicted_with_the_radius_and_size_of_the_fit():
    pytest.importorskip("rdkit")
    source = open_source(SMILES * 5, ["a", "b", "a", "c"] * 5, reading=MorganCounts(radius=1, size=64))
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | CHI2).fit_source(source)
    assert model.n_features_in_ == 64
    assert model.predict(SMILES).tolist() == ["a", "b", "a", "c"]


def test_named_counts_are_predicted_by_name():
    counts = [{"x": 3, "y": 1}, {"z": 2}] * 10
    source = open_source(counts, ["u", "v"] * 10, reading=NamedCounts())
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | CHI2).fit_source(source)
    assert model.predict([{"z": 3}, {"y": 1, "x": 3, "unknown": 9}]).tolist() == ["v", "u"]


def test_other_rows_leave_no_reading():
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | CHI2).fit(np.eye(6), [0, 1] * 3)
    assert model.reading_ is None
