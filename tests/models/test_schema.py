"""Rows of any kind become those that a model takes."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import chimap
from chimap import HistogramClassifier
from chimap.models.schema import RowSchema, schema_of

pd = pytest.importorskip("pandas")

X = np.random.default_rng(0).poisson(3.0, (40, 3)).astype(float)
NAMES = ("moss", "sedge", "grass")
Y = np.arange(40) % 2
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(scope="module")
def fitted():
    return HistogramClassifier("chi2", alpha=1.0).fit(FRAME, Y)


@pytest.mark.parametrize(
    "rows",
    [X, FRAME[["grass", "moss", "sedge"]], chimap.open_source(FRAME.assign(fern=0.0))],
    ids=["array", "columns in another order", "source with one more"],
)
def test_rows_have_the_columns_of_the_fit(fitted, rows):
    for model in (fitted, fitted.compile()):
        found = model.fitted.schema.rows(rows)
        np.testing.assert_array_equal(found.block(0, 40).X, X)


def test_an_estimator_shows_its_schema_under_the_names_of_scikit_learn(fitted):
    shown = RowSchema.of_attributes("HistogramClassifier", fitted.__getstate__())
    assert (fitted.n_features_in_, *fitted.feature_names_in_) == (3, *NAMES)
    assert (shown.n_features, shown.names, shown.units, shown.mass) == (3, NAMES, fitted.units_, fitted.mass_)
    assert schema_of(fitted) is fitted.fitted.schema
    assert schema_of(None) is schema_of(HistogramClassifier()) is None
    with pytest.raises(NotFittedError):
        _ = HistogramClassifier().schema


def test_batches_know_their_columns_before_their_weights_are_solved_for():
    model = HistogramClassifier("chi2", alpha=1.0).partial_fit(FRAME, Y, classes=[0, 1])
    assert model.feature_names_in_.tolist() == [*NAMES]
    assert "model_" not in vars(model)
    assert model.fitted.schema is model.schema
