"""Names of columns that a table does not have."""

import numpy as np
import pandas as pd
import pytest

from chimap import open_source
from chimap._validation import DataError
from chimap.cli.data_rows import check_every_row

FRAME = pd.DataFrame({"a": [1, 2, 0, 3], "b": [0, 1, 1, 0], "site": ["gut", "skin", "gut", "skin"]})
WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "parquet": lambda frame, path: frame.to_parquet(path),
    "feather": lambda frame, path: frame.to_feather(path),
}


@pytest.mark.parametrize("ending", WRITERS)
def test_a_name_that_is_no_column_is_told_which_there_are(tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    WRITERS[ending](FRAME, path)
    expected = r"no column and no file 'sight': did you mean 'site'\? Columns are a, b, site\. Name one of them"
    with pytest.raises(DataError, match=expected):
        open_source(path, "sight", exclude="site")
    source = open_source(path, "site")
    with pytest.raises(DataError, match=expected):
        source.column("sight")
    assert source.column("a").tolist() == [1, 2, 0, 3]


def test_a_file_of_labels_is_still_one(tmp_path):
    WRITERS["csv"](FRAME, tmp_path / "table.csv")
    np.save(tmp_path / "sight.npy", [1, 0, 1, 0])
    source = open_source(tmp_path / "table.csv", str(tmp_path / "sight.npy"), exclude="site")
    assert source.labels().tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("ending", WRITERS)
def test_a_negative_count_is_told_by_the_names_of_its_column_and_row(tmp_path, ending):
    bad = FRAME.assign(b=[0, 1, -2, 0], sample=["s0", "s1", "s2", "s3"])
    path = tmp_path / f"table.{ending}"
    WRITERS[ending](bad, path)
    with pytest.raises(DataError, match=rf"table\.{ending}, row 2 \('s2'\), column 'b': -2"):
        check_every_row(open_source(path, "site", id="sample"), "float32")
