"""Blank counts, and words such as NA: refused with what to do, taken as zero, or a reason to leave rows out."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from chimap import _arrays, open_source
from chimap._validation import DataError
from chimap.data.gaps import MISSING_COUNTS

pandas = pytest.importorskip("pandas")

COUNTS = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0], [np.nan, 8.0, 9.0], [1.0, 2.0, 3.0]])
SITES = ["bog", "fen", "bog", "fen"]


def as_csv(folder, words=("", "NA")):
    blanks = iter(words)
    fields = [[next(blanks) if np.isnan(count) else f"{count:g}" for count in row] for row in COUNTS]
    lines = [",".join([*row, site]) for row, site in zip(fields, SITES, strict=True)]
    path = folder / "rows.csv"
    path.write_text("\n".join(["a,b,c,site", *lines]) + "\n")
    return path, "site"


def as_lines_of_bins(folder):
    """Samples as columns."""
    lines = [
        "\t".join([name, *("" if np.isnan(n) else f"{n:g}" for n in COUNTS[:, j])]) for j, name in enumerate("abc")
    ]
    path = folder / "rows.tsv"
    path.write_text("\n".join(["taxon\ts1\ts2\ts3\ts4", "\t".join(["site", *SITES]), *lines]) + "\n")
    return path, "site"


def as_frame(folder):
    frame = pandas.DataFrame(COUNTS, columns=list("abc"))
    frame["b"] = frame["b"].astype("Int64")
    return frame.assign(site=SITES), "site"


def as_parquet(folder):
    path = folder / "rows.parquet"
    as_frame(folder)[0].to_parquet(path)
    return path, "site"


every_reader = pytest.mark.parametrize("made", [as_csv, as_lines_of_bins, as_frame, as_parquet])


def rows_of(source):
    return _arrays.to_dense(next(source.chunks(9)).X)


@every_reader
def test_each_word(made, tmp_path):
    data, labels = made(tmp_path)
    opened = partial(open_source, data, labels, transpose=True if made is as_lines_of_bins else None)
    for word in (None, "refuse"):
        with pytest.raises(DataError, match="missing_counts='zero'"):
            rows_of(opened(missing_counts=word))
    zero = opened(missing_counts="zero")
    np.testing.assert_array_equal(rows_of(zero), np.nan_to_num(COUNTS))
    np.testing.assert_array_equal(_arrays.to_dense(zero.take(np.array([0, 2]))), np.nan_to_num(COUNTS)[[0, 2]])
    assert "missing counts are taken as zero: 2 in 2 of 4 rows" in zero.notes[-1]
    left = opened(missing_counts="drop-row")
    np.testing.assert_array_equal(rows_of(left), COUNTS[[1, 3]])
    assert left.labels().tolist() == ["fen", "fen"]
    assert "2 of 4 records" in left.notes[-1]
    assert "a count is missing" in left.notes[-1]


def test_rows_to_predict_keep_their_place(tmp_path):
    source = open_source(as_csv(tmp_path)[0], None, exclude="site", missing_counts="drop-row", with_labels=False)
    assert source.n_rows == 4
    assert sorted(source.unread) == [0, 2]


def test_words_and_tables_without_gaps(tmp_path):
    data, labels = as_csv(tmp_path, ("NaN", "null"))
    assert open_source(data, labels, missing_counts="zero").n_rows == 4
    frame = pandas.DataFrame(np.nan_to_num(COUNTS)).assign(site=SITES)
    for word in MISSING_COUNTS:
        assert open_source(frame, "site", missing_counts=word).notes == open_source(frame, "site").notes
    with pytest.raises(ValueError, match="missing_counts must be one of 'refuse', 'zero', 'drop-row'; got 'mean'"):
        open_source(frame, "site", missing_counts="mean")
