"""Columns are matched by name, whatever holds the rows: never by place where both sides have names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, chi2, load, open_source
from chimap._arrays import to_dense
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.data.doubts import DataWarning
from chimap.data.table import ColumnChoice
from chimap.readers.batches import StreamTable, TableSource

from .estimators import ESTIMATORS, made

pd = pytest.importorskip("pandas")

NAMES = ["ant", "bee", "cat", "dog", "elk"]
COUNTS = np.random.default_rng(0).poisson(5, (40, 5)) + 1
LABELS = np.where(COUNTS[:, 0] > COUNTS[:, 1], "more", "less")
IDS = [f"row {i}" for i in range(40)]
FRAME = pd.DataFrame(COUNTS, columns=NAMES, index=IDS)
REORDERED, EXTRA = FRAME[NAMES[::-1]], FRAME.assign(fox=7)[["fox", *NAMES[::-1]]]
RENAMED, MISSING = FRAME.rename(columns={"bee": "wasp"}), FRAME.drop(columns="bee")


def plain(frame):
    return frame.reset_index(drop=True)


def dask(frame, folder):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3, sort=False)


def csv(frame, folder):
    frame.to_csv(folder / "rows.csv")
    return folder / "rows.csv"


def parquet(frame, folder):
    frame.to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def parts(frame, folder):
    (folder / "parts").mkdir()
    for i, start in enumerate(range(0, 40, 15)):
        frame[start : start + 15].to_parquet(folder / "parts" / f"{i}.parquet", index=False)
    return folder / "parts"


def npz(frame, folder):
    np.savez(folder / "rows.npz", X=np.ascontiguousarray(frame), column_names=np.array(frame.columns, dtype=str))
    return folder / "rows.npz"


def hdf5(frame, folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "rows.h5", "w") as file:
        file["X"] = frame.to_numpy()
        file.create_dataset("column_names", data=[*frame.columns], dtype=h5py.string_dtype())
    return folder / "rows.h5"


def anndata(frame, folder):
    table = pytest.importorskip("anndata")
    var, obs = pd.DataFrame(index=frame.columns), pd.DataFrame(index=frame.index)
    return table.AnnData(sp.csr_matrix(frame.to_numpy(np.float32)), obs=obs, var=var)


def h5ad(frame, folder):
    anndata(frame, folder).write_h5ad(folder / "cells.h5ad")
    return folder / "cells.h5ad"


def biom(frame, folder):
    table = pytest.importorskip("biom").Table
    return table(sp.csr_matrix(frame.to_numpy(float).T), [*frame.columns], [*frame.index], type="OTU table")


def biom_json(frame, folder):
    (folder / "table.biom").write_text(biom(frame, folder).to_json("a test"))
    return folder / "table.biom"


def json_lines(frame, folder):
    lines = [json.dumps({"counts": dict(zip(frame, row, strict=True))}) for row in frame.to_numpy().tolist()]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    return folder / "rows.jsonl"


def tenx(frame, folder):
    home = folder / "matrix"
    home.mkdir()
    entries = sp.coo_matrix(frame.to_numpy().T)
    places = np.lexsort((entries.row, entries.col))
    lines = ["%%MatrixMarket matrix coordinate integer general", f"{len(frame.columns)} 40 {entries.nnz}"]
    lines += [f"{entries.row[k] + 1} {entries.col[k] + 1} {entries.data[k]}" for k in places]
    (home / "matrix.mtx").write_text("\n".join(lines) + "\n")
    (home / "barcodes.tsv").write_text("\n".join(frame.index) + "\n")
    (home / "genes.tsv").write_text("".join(f"{name}\t{name}\n" for name in frame.columns))
    return home


def hugging_face(frame, folder):
    return pytest.importorskip("datasets").Dataset.from_pandas(plain(frame), preserve_index=False)


def duckdb(frame, folder):
    table = pytest.importorskip("pyarrow").Table.from_pandas(plain(frame), preserve_index=False)
    return pytest.importorskip("duckdb").connect().from_arrow(table)


class Kind(NamedTuple):
    """How a frame becomes rows of a kind, and whether ``predict`` matches the names of such an object itself."""

    make: Callable[[Any, Path], Any]
    is_matched: bool = False


def polars(frame, folder):
    return pytest.importorskip("polars").from_pandas(plain(frame))


KINDS = {
    "pandas": Kind(lambda frame, folder: frame),
    "polars": Kind(polars),
    "Arrow": Kind(lambda frame, folder: pytest.importorskip("pyarrow").Table.from_pandas(plain(frame))),
    "Dask": Kind(dask, True),
    "batches": Kind(lambda frame, folder: lambda: iter([frame[:11], frame[11:]])),
    "lazy polars": Kind(lambda frame, folder: polars(frame, folder).lazy(), True),
    "DuckDB": Kind(duckdb, True),
    "Hugging Face": Kind(hugging_face, True),
    "CSV": Kind(csv),
    "Parquet": Kind(parquet),
    "parts": Kind(parts),
    ".npz": Kind(npz),
    ".h5": Kind(hdf5),
    "AnnData": Kind(anndata, True),
    ".h5ad": Kind(h5ad),
    "BIOM": Kind(biom, True),
    ".biom": Kind(biom_json),
    ".jsonl": Kind(json_lines),
    "10x": Kind(tenx),
    "source": Kind(lambda frame, folder: ArraySource(frame.to_numpy(), column_names=frame.columns)),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of named columns, as it comes back from its file."""
    path = tmp_path_factory.mktemp("model") / "my.model"
    HistogramClassifier("chi2", random_state=0).fit_source(open_source(FRAME, LABELS)).save(path)
    return load(path)


@pytest.fixture(scope="module")
def expected(model):
    return model.predict_source(ArraySource(COUNTS, column_names=NAMES))


def rows_of(source):
    return np.concatenate([to_dense(chunk.X) for chunk in source.chunks(7)])


@every_kind
def test_names_are_kept(kind, tmp_path):
    source = open_source(KINDS[kind].make(FRAME, tmp_path))
    assert source.column_names == tuple(NAMES)
    np.testing.assert_array_equal(rows_of(source), COUNTS)


@every_kind
@pytest.mark.parametrize("frame", [REORDERED, EXTRA], ids=["reordered", "extra"])
def test_columns_are_matched_by_name(kind, frame, model, expected, tmp_path):
    data = KINDS[kind].make(frame, tmp_path)
    source = open_source(data, like=model)
    assert source.column_names == tuple(NAMES)
    np.testing.assert_array_equal(rows_of(source), COUNTS)
    np.testing.assert_allclose(model.predict_source(source), expected, atol=1e-4)
    np.testing.assert_allclose(model.predict_source(open_source(data)), expected, atol=1e-4)
    if KINDS[kind].is_matched:
        np.testing.assert_array_equal(model.predict(data), model.labels_of(expected))


@every_kind
@pytest.mark.parametrize("frame", [RENAMED, MISSING], ids=["renamed", "missing"])
def test_missing_columns_are_named(kind, frame, model, tmp_path):
    data = KINDS[kind].make(frame, tmp_path)
    with pytest.raises(DataError, match="no column 'bee', which the model was fitted on"):
        open_source(data, like=model, missing_columns="refuse")
    if KINDS[kind].is_matched:
        with pytest.warns(DataWarning, match="4 of 5 columns"):
            model.predict(data)


@every_kind
@pytest.mark.parametrize("frame", [RENAMED, MISSING], ids=["renamed", "missing"])
def test_missing_columns_of_counts_are_zero_and_told(kind, frame, model, tmp_path):
    source = open_source(KINDS[kind].make(frame, tmp_path), like=model)
    assert any("4 of 5 columns" in note and "bee" in note for note in source.notes)
    np.testing.assert_array_equal(rows_of(source), COUNTS * (np.array(NAMES) != "bee"))


@pytest.mark.parametrize("kind", ["Dask", "AnnData", "BIOM"])  # objects that take labels beside them
def test_later_batches_are_matched_too(kind, tmp_path):
    halves = [HistogramClassifier("chi2", random_state=0) for _ in range(2)]
    for half, second in zip(halves, (FRAME, EXTRA), strict=True):
        (tmp_path / str(id(half))).mkdir()
        for frame, rows in ((FRAME, slice(0, 20)), (second, slice(20, 40))):
            data = KINDS[kind].make(frame[rows], tmp_path / str(id(half)))
            half.partial_fit(data, LABELS[rows], classes=["less", "more"])
    np.testing.assert_array_equal(halves[0].predict(FRAME), halves[1].predict(FRAME))
    np.testing.assert_allclose(halves[0].feature_coef_, halves[1].feature_coef_, rtol=1e-5, atol=1e-6)


FAULTS = {"renamed": RENAMED, "missing": MISSING, "extra": EXTRA}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_batch_has_the_columns_of_the_first(fault):
    with pytest.raises(DataError, match=r"batches, batch 1: it (has|lacks) .*, unlike the first"):
        open_source(lambda: iter([FRAME[:20], FAULTS[fault][20:]]))
    pa = pytest.importorskip("pyarrow")
    tables = [pa.Table.from_pandas(plain(frame)) for frame in (FRAME[:20], FAULTS[fault][20:])]
    with pytest.raises(DataError, match=r"tables, batch 1: it (has|lacks) .*, unlike the first"):
        TableSource(StreamTable(lambda: iter(tables), "tables", {}), None, ColumnChoice())


def test_batches_are_put_in_the_order_of_the_first():
    source = open_source(lambda: iter([FRAME[:20], REORDERED[20:]]))
    np.testing.assert_array_equal(rows_of(source), COUNTS)
    assert source.row_ids.tolist() == IDS
    with pytest.raises(DataError, match="batch 1: no names of columns, unlike the first batch"):
        open_source(lambda: iter([FRAME[:20], COUNTS[20:]]))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_refuse_frames_of_other_columns(name):
    frame = FRAME.assign(fly=1, gnu=2, hen=3)  # as wide as the blocks of the catalogue
    model = made(name).fit(frame, np.arange(40) % 3)
    for other in (frame[frame.columns[::-1]], frame.rename(columns={"bee": "wasp"}), frame.drop(columns="bee")):
        with pytest.raises(ValueError, match=r"feature names should match|columns are missing"):
            model.predict(other)
        with pytest.raises(ValueError, match=r"feature names should match|columns are missing"):
            model.predict(polars(other, None))
    if not hasattr(model, "predict_source"):
        reordered = dask(frame[frame.columns[::-1]], None)
        if hasattr(model, "fitted"):  # columns are matched by name
            np.testing.assert_array_equal(model.predict(reordered), model.predict(frame))
        else:
            with pytest.raises(ValueError, match="feature names should match"):
                model.predict(reordered)


def test_numbers_that_name_columns_are_names():
    numbered = FRAME.set_axis([10, 20, 30, 40, 50], axis=1)
    model = HistogramClassifier("chi2", random_state=0).fit(numbered, LABELS)
    assert model.feature_names_in_.tolist() == ["10", "20", "30", "40", "50"]
    with pytest.raises(DataError, match="feature names should match"):
        model.predict(numbered[[50, 40, 30, 20, 10]])


def test_numbers_that_count_columns_must_be_in_order():
    counted = FRAME.set_axis(range(5), axis=1)
    model = HistogramClassifier("chi2", random_state=0).fit(counted, LABELS)
    assert not hasattr(model, "feature_names_in_")
    other = counted[[4, 3, 2, 1, 0]]
    for ask in (model.predict, lambda frame: model.predict_source(open_source(frame))):
        with pytest.raises(DataError, match="the numbers 0 to 4 in another order, 4, 3, 2, 1"):
            ask(other)
    np.testing.assert_array_equal(model.predict(counted), model.predict(COUNTS))


def test_kernels_refuse_frames_of_another_order():
    with pytest.raises(DataError, match="the same in another order"):
        chi2(FRAME, REORDERED)


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_text_is_read_with_the_base_and_width_of_the_model(first, model, tmp_path):
    def text(counts, name):
        lines = [" ".join(["1", *(f"{j + first}:{v}" for j, v in enumerate(row) if v)]) for row in counts]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    fitted = HistogramClassifier("chi2", random_state=0).fit_source(open_source(text(COUNTS, "a.svm"), labels=LABELS))
    fitted.save(tmp_path / "my.model")
    fitted, gaps = load(tmp_path / "my.model"), COUNTS[:9] * [0, 1, 1, 1, 0]
    source = open_source(text(gaps, "b.svm"), like=fitted)
    np.testing.assert_array_equal(rows_of(source), gaps)
    np.testing.assert_allclose(fitted.predict_source(source)[:, 0], fitted.decision_function(gaps), atol=1e-4)
    wider = open_source(text(np.hstack([COUNTS, COUNTS]), "c.svm"))
    with pytest.raises(DataError, match="10 bins per row, but HistogramClassifier was fitted on 5"):
        fitted.predict_source(wider)
