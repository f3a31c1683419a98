"""``score`` takes the name of a column of labels, as ``fit`` does."""

import numpy as np
import pandas as pd
import pytest

from chimap import HistogramClassifier, HistogramRegressor, LookupClassifier
from chimap._validation import DataError
from chimap.readers import open_source

N = 60
X = np.random.default_rng(0).dirichlet(np.ones(4), N)
NAMES = list("abcd")
DOSE = X[:, 2] + 0.05 * np.random.default_rng(1).normal(size=N)
KIND = np.where(X[:, 0] > 0.2, "cat", "dog").astype(object)


def frame():
    return pd.DataFrame(X, columns=NAMES).assign(kind=KIND, dose=DOSE)


def cells(folder):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"kind": pd.Categorical(KIND), "dose": DOSE}, index=[f"c{i}" for i in range(N)])
    return anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=NAMES))


def backed_cells(folder):
    cells(folder).write_h5ad(folder / "cells.h5ad")
    return pytest.importorskip("anndata").read_h5ad(folder / "cells.h5ad", backed="r")


def lazy_frame(folder):
    return pytest.importorskip("polars").LazyFrame(frame())


def polars_frame(folder):
    return pytest.importorskip("polars").DataFrame(frame())


@pytest.mark.parametrize("make", [cells, backed_cells, lazy_frame, polars_frame, lambda folder: frame()])
def test_score_by_name(make, tmp_path):
    data, weights = make(tmp_path), np.linspace(0.1, 1, N)
    plain = pd.DataFrame(X, columns=NAMES)
    kinds = HistogramClassifier("chi2", random_state=0).fit(plain, KIND)
    assert kinds.score(data, "kind") == (kinds.predict(plain) == KIND).mean()
    assert kinds.score(data, "kind", weights) == pytest.approx(kinds.score(plain, KIND, weights))
    doses = HistogramRegressor("chi2", random_state=0).fit(plain, DOSE)
    assert doses.score(data, "dose") == pytest.approx(doses.score(plain, DOSE))
    assert doses.score(data, "dose", weights) == pytest.approx(doses.score(plain, DOSE, weights))


def test_rows_without_a_label_are_left_out_of_the_score_with_their_weights():
    some, weights = frame(), np.linspace(0.1, 1, N)
    some.loc[::4, "kind"] = None
    kept = some["kind"].notna().to_numpy()
    plain = pd.DataFrame(X, columns=NAMES)
    model = HistogramClassifier("chi2", random_state=0).fit(plain[kept], KIND[kept])
    expected = model.score(plain[kept], KIND[kept], weights[kept])
    assert model.score(some, "kind", weights) == pytest.approx(expected)


def test_what_has_no_column_of_that_name():
    model = HistogramClassifier("chi2", random_state=0).fit(X, KIND)
    with pytest.raises(DataError, match="'kind' names a column of a data frame; X is ndarray"):
        model.score(X, "kind")
    with pytest.raises(DataError, match="LookupClassifier takes labels as an array"):
        LookupClassifier().fit(X, KIND).score(frame(), "kind")
    with pytest.raises(DataError, match=r"no column 'king' for labels: did you mean 'kind'\? There are .*kind"):
        HistogramClassifier("chi2").fit(frame(), "king")


def test_a_source_can_be_predicted():
    model = HistogramClassifier("chi2", random_state=0).fit(X, KIND)
    np.testing.assert_array_equal(model.predict(open_source(X)), model.predict(X))
