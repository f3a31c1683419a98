"""Covariates as columns whose dot products are a kernel of them."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.data.covariates import table_of_values
from chimap.data.doubts import DataWarning
from chimap.features.covariates import Covariates
from chimap.kernels import Gaussian

rng = np.random.default_rng(0)
N = 60
AGE, SEX = rng.normal(50, 10, N), rng.choice(list("FM"), N)
AGE[::9] = np.nan
TABLE = table_of_values({"age": AGE, "sex": SEX}, N)


def unit():
    known = AGE[~np.isnan(AGE)]
    z = np.where(np.isnan(AGE), 0, (AGE - known.mean()) / known.std())
    return np.column_stack([z, np.isnan(AGE), SEX == "F", SEX == "M"])


def test_the_linear_kernel_is_of_scaled_numbers_indicators_of_gaps_and_levels():
    covariates = Covariates.fitted(TABLE, "linear", 0.25)
    columns = covariates.columns(TABLE, "rows")
    np.testing.assert_allclose(columns, 0.5 * unit(), atol=1e-12)
    assert covariates.column_names == ["age", "age missing", "sex=F", "sex=M"]


def test_the_gaussian_kernel_is_exact():
    covariates = Covariates.fitted(TABLE, "gaussian", 3.0)
    columns = covariates.columns(TABLE, "rows")
    exact = 3 * Gaussian().fitted(unit())(unit())
    np.testing.assert_allclose(columns @ columns.T, exact, atol=2e-3)
    assert covariates.n_columns == columns.shape[1]


def test_new_rows_are_scaled_as_those_of_the_fit_and_unknown_levels_say_nothing():
    covariates = Covariates.fitted(TABLE, "linear")
    new = table_of_values({"sex": ["X", "F"], "age": [float(np.nanmean(AGE)), 0.0], "more": [1, 2]}, 2)
    with pytest.warns(DataWarning, match=r"new: 'sex' has levels that the model has not seen \('X'\)"):
        columns = covariates.columns(new, "new")
    np.testing.assert_allclose(columns[0], 0, atol=1e-12)
    assert columns[1, 2] == 1


def test_what_says_nothing_is_left_out_and_names_of_rows_are_refused():
    with pytest.warns(DataWarning, match="all rows have the same 'same', which is left out"):
        covariates = Covariates.fitted(table_of_values({"same": np.ones(N), "age": AGE}, N), "linear")
    assert covariates.names == ["age"]
    with pytest.raises(DataError, match=r"all rows have the same 'same'\. Name others"):
        Covariates.fitted(table_of_values({"same": ["u"] * N}, N), "linear")
    names = table_of_values({"subject": [f"s{i}" for i in range(N)]}, N)
    with pytest.raises(DataError, match=r"'subject': 60 levels in 60 rows, 60 of them in one row only"):
        Covariates.fitted(names, "linear")


def test_rows_without_a_covariate_are_refused():
    covariates = Covariates.fitted(TABLE, "linear")
    with pytest.raises(DataError, match=r"new: no covariate 'age', which the model takes: did you mean 'Age'"):
        covariates.columns(table_of_values({"Age": [1.0], "sex": ["F"]}, 1), "new")
    with pytest.raises(DataError, match="'age' was a number in the rows of the fit, but row 1 has 'old'"):
        covariates.columns(table_of_values({"age": [None, "old"], "sex": ["F", "F"]}, 2), "new")
