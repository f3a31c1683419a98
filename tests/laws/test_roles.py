"""The roles of columns over all readers: which hold labels and ids is asked where it is not plain."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from chimap import HistogramClassifier, open_source
from chimap._validation import DataError

from ..cli.terminal import run_here
from .readers import BINS, IDS, N_ROWS, counts_of

for package in ("pyarrow", "polars", "anndata", "h5py"):
    pytest.importorskip(package)

SITES = [["gut", "skin"][row % 2] for row in range(N_ROWS)]
COUNTS = counts_of(SITES)


def frame_with(**columns):
    return pd.DataFrame(COUNTS, columns=BINS).assign(**columns)


def _csv(folder, columns):
    frame_with(**columns).to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def _parquet(folder, columns):
    frame_with(**columns).to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def _json_lines(folder, columns):
    records = [
        {"counts": dict(zip(BINS, COUNTS[row].tolist(), strict=True)), **{k: v[row] for k, v in columns.items()}}
        for row in range(N_ROWS)
    ]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return folder / "rows.jsonl"


def _npz(folder, columns):
    np.savez(folder / "rows.npz", X=COUNTS, **{k: np.array(v) for k, v in columns.items()})
    return folder / "rows.npz"


def _hdf5(folder, columns):
    import h5py

    with h5py.File(folder / "rows.h5", "w") as file:
        for name, values in {"X": COUNTS, **columns}.items():
            file[name] = values
    return folder / "rows.h5"


def _anndata(columns):
    import anndata

    return anndata.AnnData(COUNTS, pd.DataFrame(columns, index=IDS), pd.DataFrame(index=BINS))


def _h5ad(folder, columns):
    _anndata(columns).write_h5ad(folder / "cells.h5ad")
    return folder / "cells.h5ad"


def _polars(folder, columns):
    import polars

    return polars.from_pandas(frame_with(**columns))


TABLES = {
    "csv": _csv,
    "parquet": _parquet,
    "pandas": lambda folder, columns: frame_with(**columns),
    "polars": _polars,
    "lazy frame": lambda folder, columns: _polars(folder, columns).lazy(),
}
CONTAINERS = {
    "jsonl": _json_lines,
    "npz": _npz,
    "hdf5": _hdf5,
    "h5ad": _h5ad,
    "anndata": lambda folder, columns: _anndata(columns),
}
READERS = TABLES | CONTAINERS


@pytest.mark.parametrize("name", ["y", "label"])
@pytest.mark.parametrize("reader", READERS)
def test_one_usual_name_holds_the_labels(tmp_path, reader, name):
    source = open_source(READERS[reader](tmp_path, {name: SITES}))
    assert source.labels().tolist() == SITES
    assert source.n_features == len(BINS)


@pytest.mark.parametrize("reader", READERS)
def test_two_candidates_are_refused_with_both_names(tmp_path, reader):
    codes = [site == "gut" for site in SITES]
    data = READERS[reader](tmp_path, {"y": [int(code) for code in codes], "label": SITES})
    with pytest.raises(DataError, match="'y' and 'label' may hold the labels"):
        open_source(data)
    assert open_source(data, "label").labels().tolist() == SITES


@pytest.mark.parametrize("reader", TABLES)
def test_the_other_candidate_is_named_or_set_aside(tmp_path, reader):
    data = TABLES[reader](tmp_path, {"y": [0.5 * row for row in range(N_ROWS)], "label": SITES})
    kept = open_source(data, "label")
    assert kept.column_names == (*BINS, "y")
    assert any("'y' is taken for a bin" in note for note in kept.notes)
    for set_aside in (open_source(data, "label", exclude="y"), open_source(data, exclude="y")):
        assert set_aside.column_names == tuple(BINS)
        assert set_aside.labels().tolist() == SITES
        assert not any("is taken for a bin" in note for note in set_aside.notes)


@pytest.mark.parametrize("reader", READERS)
def test_a_fraction_that_never_changes_is_no_target(tmp_path, reader):
    with pytest.raises(DataError, match=r"every label is 0\.03.*nothing to predict"):
        open_source(READERS[reader](tmp_path, {"label": [0.03] * N_ROWS}))


def test_a_constant_target_is_refused(tmp_path):
    frame_with(depth=[3] * N_ROWS).to_csv(tmp_path / "rows.csv", index=False)
    for command in (
        ["fit", "rows.csv", "--labels", "depth", "--task", "regress", "--kernel", "chi2", "-o", "a.model"],
        ["compare", "rows.csv", "--labels", "depth", "--task", "regress"],
    ):
        result = run_here(*command, cwd=tmp_path)
        assert result.code == 2
        assert "every label is 3, so there is nothing to predict" in result.err


@pytest.mark.parametrize("reader", READERS)
def test_a_usual_name_names_the_rows(tmp_path, reader):
    """A column ``id`` is no bin, wherever it stands and whatever it holds."""
    if reader in ("h5ad", "anndata"):
        pytest.skip("the index names the rows")
    ids = [1000 + 7 * row for row in range(N_ROWS)]
    source = open_source(READERS[reader](tmp_path, {"label": SITES, "id": ids}))
    assert source.row_ids.tolist() == [str(name) for name in ids]
    assert source.n_features == len(BINS)


@pytest.mark.parametrize("reader", [*TABLES, "jsonl"])
def test_ids_that_repeat_and_two_columns_of_ids_are_refused(tmp_path, reader):
    data = READERS[reader](tmp_path, {"label": SITES, "id": [row // 2 for row in range(N_ROWS)]})
    with pytest.raises(DataError, match="comes twice"):
        open_source(data)
    data = READERS[reader](tmp_path, {"label": SITES, "id": IDS, "sample_id": IDS})
    with pytest.raises(DataError, match="'id' and 'sample_id' may both name the rows"):
        open_source(data)
    if reader == "jsonl":  # in a table, the other column would be a bin, and is text
        assert open_source(data, id="sample_id").row_ids.tolist() == IDS


@pytest.mark.parametrize("reader", TABLES)
def test_a_column_that_the_caller_or_a_model_calls_a_bin_is_one(tmp_path, reader):
    counts = [float(row % 3) for row in range(N_ROWS)]
    words = {"label": counts, "id": counts, "site": SITES}
    data = TABLES[reader](tmp_path, words)
    source = open_source(data, "site", columns=[*BINS, "label", "id"])
    assert source.column_names == (*BINS, "label", "id")
    model = HistogramClassifier("chi2", alpha=1.0).fit_source(source)
    again = open_source(data, "site", like=model)
    assert again.column_names == source.column_names
    np.testing.assert_array_equal(model.predict_source(again), model.predict_source(source))


@pytest.mark.parametrize("names", [["label", "class"], ["y", "target"]])
def test_lists_of_images_ask_too(tmp_path, names):
    from PIL import Image

    from chimap.images.reading import open_images

    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    (tmp_path / "list.csv").write_text(f"path,{','.join(names)}\na.png,0,cat\n")
    with pytest.raises(DataError, match=f"'{names[0]}' and '{names[1]}' may hold the labels"):
        open_images(tmp_path / "list.csv")
    assert open_images(tmp_path / "list.csv", names[1]).labels.tolist() == ["cat"]
