"""Covariates as they are read: numbers, categories and gaps, from frames, arrays, files and other tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from chimap import open_source, with_covariates
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.data.covariates import Widened, beside, covariate_names, table_of_columns, table_of_values
from chimap.data.views import ChosenRows
from chimap.features.covariates import Covariates

AGE = [30.0, np.nan, 50, 20]
SEX = ["F", "M", None, "F"]


@pytest.fixture
def samples(tmp_path):
    """A table of counts whose other columns are covariates, and the same in a table of its own, in another order."""
    about = pd.DataFrame({"id": ["s1", "s2", "s3", "s4"], "age": AGE, "sex": SEX, "batch": [1, 2, 1, 2]})
    counts = pd.DataFrame({"a": [3, 0, 2, 7], "b": [1, 4, 4, 0], "y": list("uvuv")})
    pd.concat([about, counts], axis=1).to_csv(tmp_path / "all.csv", index=False)
    pd.concat([about[["id"]], counts], axis=1).to_csv(tmp_path / "counts.csv", index=False)
    about.iloc[::-1].to_csv(tmp_path / "about.tsv", sep="\t", index=False, na_rep="NA")
    return tmp_path


def check(table):
    age, sex, batch = table.values
    assert age.mask.tolist() == [False, True, False, False]
    assert age.compressed().tolist() == [30, 50, 20]
    assert sex.mask.tolist() == [False, False, True, False]
    assert sex.compressed().tolist() == ["F", "M", "F"]
    assert batch.tolist() == ["1", "2", "1", "2"]  # a category though it holds numbers


def test_columns_of_the_table_and_of_another_one_joined_by_id_are_the_same(samples):
    aside = ["age", "sex", "batch"]
    whole = open_source(samples / "all.csv", "y", id="id", aside=aside)
    check(table_of_columns(whole, "age, sex, C(batch)"))
    counts = open_source(samples / "counts.csv", "y", id="id")
    check(table_of_columns(counts, f"{samples / 'about.tsv'}::age,sex,C(batch)"))
    frame = pd.read_csv(samples / "all.csv")
    check(table_of_columns(open_source(frame, "y", id="id", aside=aside), ["age", "sex", "C(batch)"]))


def test_missing_covariates_are_told(samples):
    source = open_source(samples / "all.csv", "y", id="id", aside=["age", "sex", "batch"])
    [note] = beside(source, table_of_columns(source, "age, sex, batch")).notes[len(source.notes) :]
    assert "covariates are missing: age in 1, sex in 1 of 4 rows." in note
    assert beside(source, table_of_columns(source, "batch")).notes == source.notes


def test_values_of_frames_mappings_and_arrays():
    frame = pd.DataFrame({"age": AGE, "sex": SEX})
    for data in (frame, {"age": AGE, "sex": SEX}):
        table = table_of_values(data, 4)
        assert table.names == ("age", "sex")
        assert table.values[0].dtype == np.float64
    assert table_of_values(np.eye(4)[:, :2], 4).names == ("covariate 0", "covariate 1")
    texts = table_of_values({"dose": ["1", "2.5", "not collected", "1"]}, 4).values[0]
    assert texts.tolist() == [1.0, 2.5, None, 1.0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"age": [1.0, 2.0]}, "'age': 2 values for 4 rows"),
        ({"age": [1, 2, np.inf, 3]}, "'age', row 2: inf is no finite number"),
        ({"age": ["1", "2", "3", "-inf"]}, "'age', row 3: -inf is no finite number"),
        ({}, "has no columns"),
        (np.zeros((2, 2, 2)), "3 axes"),
    ],
)
def test_bad_values_are_refused(data, message):
    with pytest.raises(DataError, match=message):
        table_of_values(data, 4)


def test_columns_that_are_not_there_or_have_a_role_are_refused(samples):
    source = open_source(samples / "all.csv", "y", id="id", aside=["age", "sex"])
    with pytest.raises(DataError, match=r"no column 'Age' for covariates: did you mean 'age'"):
        table_of_columns(source, "Age")
    with pytest.raises(DataError, match=r"about\.tsv: no column 'sexe' for covariates: did you mean 'sex'\?"):
        table_of_columns(source, f"{samples / 'about.tsv'}::sexe")
    with pytest.raises(DataError, match="'id' is the id of the rows"):
        table_of_columns(source, "age,id")
    with pytest.raises(DataError, match="'a' is a bin of the rows"):
        table_of_columns(source, "a")
    with pytest.raises(DataError, match="names 'age' twice"):
        covariate_names("age,age")
    with pytest.raises(DataError, match="3 values for 4 rows"):
        with_covariates(np.eye(4), {"age": [1, 2, 3]})


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_views_keep_rows_and_covariates_together(kind):
    X = kind(np.arange(12.0).reshape(6, 2))
    source = beside(ArraySource(X, np.arange(6)), table_of_values({"age": np.arange(6)}, 6))
    some = ChosenRows(source, [1, 4], np.array([1, 4]))
    assert some.covariates.values[0].tolist() == [1, 4]
    wide = Widened(some, np.array([[10.0], [40.0]]), ["age"])
    rows = [chunk.X for chunk in wide.chunks(1)]
    assert [sp.csr_matrix(X).toarray().tolist() for X in rows] == [[[2, 3, 10]], [[8, 9, 40]]]
    assert sp.issparse(rows[0]) == sp.issparse(X)
    assert wide.column_names == ("bin 0", "bin 1", "age")
    assert wide.fingerprint() != Widened(some, np.zeros((2, 1)), ["age"]).fingerprint()


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
@pytest.mark.parametrize("gap", [None, np.nan, "NA", "", pd.NA])
def test_new_rows_need_no_values_at_all(gap, kernel):
    """A number stands at its mean, and a category has no level, whether others of the rows have values or none."""
    fitted = Covariates.fitted(table_of_values({"age": [30.0, 40, 50, 60], "sex": ["F", "M", "F", "M"]}, 4), kernel)
    with pytest.warns(UserWarning, match="'sex' has levels that the model has not seen"):
        expected = fitted.columns(table_of_values({"age": [30, 45], "sex": ["F", "X"]}, 2), "rows")
    some = {"age": ["30" if isinstance(gap, str) else 30, gap], "sex": ["F", gap]}
    np.testing.assert_allclose(fitted.columns(table_of_values(some, 2), "rows"), expected, atol=1e-12)
    for n in (1, 2):
        frame = pd.DataFrame({"age": [gap] * n, "sex": [gap] * n})
        alone = fitted.columns(table_of_values(frame, n), "rows")
        np.testing.assert_allclose(alone, expected[[1] * n], atol=1e-12)


def test_a_fit_needs_values():
    with pytest.raises(DataError, match="'age': all values are missing"):
        Covariates.fitted(table_of_values({"age": [np.nan] * 4, "sex": ["F", "M", "F", "M"]}, 4), "linear")
