"""Names of rows and columns that the files of other ecosystems have."""

import pytest

from .ecosystems import ECOSYSTEMS, IDS, NAMES


@pytest.mark.parametrize("kind", ECOSYSTEMS)
def test_rows_and_columns_have_their_names(kind, tmp_path):
    source = ECOSYSTEMS[kind](tmp_path)
    assert source.row_ids.tolist() == IDS
    assert source.column_names == tuple(NAMES)
