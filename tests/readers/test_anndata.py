"""AnnData: which matrix, which labels, objects in memory, and what is wrong with a file."""

import numpy as np
import pytest
import scipy.sparse as sp

from chimap._arrays import to_dense
from chimap._validation import DataError
from chimap.cli import describe
from chimap.data import ArraySource
from chimap.estimators import HistogramClassifier
from chimap.readers import open_source, row_file
from chimap.readers import stored_matrices as stored_rows

from .ecosystems import CSC, CSR, ECOSYSTEMS, IDS, anndata_object
from .small_sources import COUNTS, LABELS, N_ROWS

anndata = pytest.importorskip("anndata")
h5py = pytest.importorskip("h5py")
pandas = pytest.importorskip("pandas")

WORDS = np.where(LABELS > 0, "tree", "fish")


@pytest.fixture
def cells(tmp_path):
    """A file of labels of every kind that AnnData stores."""
    data = anndata_object(CSR)
    data.obs["n"] = pandas.array(LABELS, dtype="Int64")
    data.obs["flag"] = LABELS > 0
    data.obs["text"] = [f"text {label}" for label in LABELS]
    data.obs["some"] = pandas.Categorical(np.where(np.arange(N_ROWS) > 3, WORDS, None))
    data.obs["holes"] = pandas.array([None, *LABELS[1:]], dtype="Int64")
    data.obsm["X_pca"] = COUNTS[:, :3] + 0.5
    data.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cell_type", WORDS),
        ("::obs/cell_type", WORDS),
        ("n", LABELS),
        ("flag", LABELS > 0),
        ("text", [f"text {label}" for label in LABELS]),
        (None, LABELS),
    ],
)
def test_labels_are_columns_of_obs(cells, name, expected):
    np.testing.assert_array_equal(open_source(cells, name).labels(), expected)


@pytest.mark.parametrize(
    ("name", "message"),
    [("celltype", r"no column and no file 'celltype': did you mean 'cell_type'\? Columns are cell_type, flag, holes")],
)
def test_labels_that_are_not_there(cells, name, message):
    with pytest.raises(DataError, match=message):
        open_source(cells, name)


def test_categories_of_a_column_without_a_value(tmp_path):
    data = anndata_object(CSR)
    data.obs["nothing"] = pandas.Categorical([None] * N_ROWS)
    data.write_h5ad(tmp_path / "cells.h5ad")
    with pytest.raises(DataError, match=r"cells\.h5ad: every label is missing"):
        open_source(tmp_path / "cells.h5ad", "nothing")


@pytest.mark.parametrize("part", ["data", "indices"])
@pytest.mark.parametrize("matrix", [CSR, CSR.tocsc()], ids=["CSR", "CSC"])
def test_a_store_that_lacks_a_chunk(tmp_path, part, matrix):
    pytest.importorskip("zarr")
    store = tmp_path / "cells.zarr"
    anndata_object(matrix).write_zarr(store)
    chunk = next(path for path in sorted((store / "X" / part).rglob("*")) if path.is_file() and path.name.isdigit())
    chunk.unlink()
    with pytest.raises(DataError, match=rf"cells\.zarr::X/{part}: 1 of 1 chunks are not in the store"):
        list(open_source(store).chunks(50))


@pytest.mark.parametrize(("name", "lost"), [("some", 4), ("holes", 1)])
def test_cells_without_a_label_are_left_out(cells, name, lost):
    source = open_source(cells, name)
    assert (source.n_rows, source.n_left_out) == (N_ROWS - lost, lost)
    assert source.row_ids.tolist() == IDS[lost:]
    np.testing.assert_array_equal(next(source.chunks(N_ROWS)).X.toarray(), COUNTS[lost:])


def test_a_matrix_of_obsm(cells):
    source = open_source(f"{cells}::obsm/X_pca")
    np.testing.assert_array_equal(next(source.chunks(N_ROWS)).X, COUNTS[:, :3] + 0.5)
    assert source.column_names == ("X_pca_0", "X_pca_1", "X_pca_2")


def test_a_matrix_that_is_not_there_lists_those_that_are(cells):
    with pytest.raises(DataError, match="no matrix 'layers/spliced'; there are X, obsm/X_pca"):
        open_source(f"{cells}::layers/spliced")


@pytest.mark.parametrize("kind", ["h5ad, CSR, gzip", "h5ad, layer CSC", "h5ad, dense", "10x folder, shuffled"])
def test_blocks_and_buckets_do_not_show(kind, tmp_path, monkeypatch):
    for number, size in enumerate((40, 1000)):
        monkeypatch.setattr(stored_rows, "PIECE_BYTES", size)
        monkeypatch.setattr(row_file, "BUCKET_BYTES", size)
        (tmp_path / str(number)).mkdir()
        source = ECOSYSTEMS[kind](tmp_path / str(number))
        for first in (0, 50):
            rows = np.concatenate([to_dense(chunk.X) for chunk in source.chunks_from(first, 25)])
            np.testing.assert_array_equal(rows, COUNTS[first:])
        np.testing.assert_array_equal(to_dense(source.take(np.arange(3, 99, 7))), COUNTS[3:99:7])


def test_large_matrices_are_not_held(tmp_path):
    n_rows = 4000
    X = sp.random(n_rows, 500, 0.5, "csc", np.float32, random_state=0)
    anndata.AnnData(X).write_h5ad(tmp_path / "cells.h5ad")
    source = open_source(tmp_path / "cells.h5ad")
    assert source._rows.stored_rows <= n_rows
    np.testing.assert_array_equal(to_dense(next(source.chunks(n_rows)).X), X.toarray())


def test_cells_of_one_name_are_read_as_long_as_nothing_is_joined_by_it(tmp_path):
    data = anndata_object(CSR)
    data.obs_names = ["same", "same", *IDS[2:]]
    data.write_h5ad(tmp_path / "cells.h5ad")
    (tmp_path / "donors.csv").write_text("cell,donor\nsame,1\n")
    for given in (tmp_path / "cells.h5ad", data):
        source = open_source(given, "cell_type")
        assert source.labels().tolist() == WORDS.tolist()
        assert source.row_ids[:3].tolist() == ["same", "same", IDS[2]]
        (note,) = source.notes
        assert "'same' comes twice, at 0 and 1" in note
        assert "adata.obs_names_make_unique()" in note
        with pytest.raises(DataError, match="the id same comes twice, in rows 0 and 1"):
            open_source(given, f"{tmp_path}/donors.csv::donor")


def test_genes_that_come_twice(tmp_path):
    data = anndata_object(CSR)
    data.var_names = ["same", "same", *(f"gene {j}" for j in range(2, data.n_vars))]
    data.write_h5ad(tmp_path / "cells.h5ad")
    for given in (tmp_path / "cells.h5ad", data):
        with pytest.raises(DataError, match=r"'same' comes twice, at 0 and 1.*var_names_make_unique"):
            open_source(given)


@pytest.mark.parametrize("nested", [True, False])
def test_columns_with_a_slash_in_their_name(tmp_path, nested):
    path = tmp_path / "cells.h5ad"
    data = anndata_object(CSR)
    data.obs["batch/day/1"] = data.obs["cell_type"].astype(str)
    data.obs["age/years"] = np.arange(data.n_obs)
    data.write_h5ad(path)  # as groups in groups
    if nested:  # and as it was before anndata 0.7, without the kind of each column
        with h5py.File(path, "a") as file:
            file["obs/note/plain"] = file["obs/age/years"][...]
    source = open_source(path, "batch/day/1")
    assert source.labels().tolist() == WORDS.tolist()
    assert {"batch/day/1", "age/years", "cell_type"} <= {*source.metadata}
    assert open_source(path, "note/plain" if nested else "age/years").labels()[:3].tolist() == [0, 1, 2]


def test_a_file_that_is_cut_off(tmp_path):
    path = tmp_path / "cells.h5ad"
    anndata_object(CSC).write_h5ad(path)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(DataError, match=r"cells\.h5ad.*: cannot be read .*cut off"):
        open_source(path)


def change(path, change):
    with h5py.File(path, "a") as file:
        change(file)


def remove(key):
    return lambda file: file.__delitem__(key)


def wrong_column(file):
    file["X/indices"][40] = 99


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (remove("X/indptr"), r"::X: no array 'indptr'; .* there are data, indices"),
        (remove("obs"), r"not AnnData, which has obs, var and X; it holds X, "),
        (remove("obs/_index"), r"obs: no index '_index'; there are cell_type"),
        (remove("X"), r"cells\.h5ad: X is empty\. Write the counts of the genes as X"),
        (lambda file: file["X"].attrs.modify("encoding-type", "coo_matrix"), "::X: stored as 'coo_matrix'"),
        (lambda file: file["X"].attrs.modify("shape", (9, 12)), "indptr: 138 entries for 9 rows; expected 10"),
    ],
)
def test_what_is_missing_or_wrong(tmp_path, edit, message):
    path = tmp_path / "cells.h5ad"
    anndata_object(CSR).write_h5ad(path)
    change(path, edit)
    with pytest.raises(DataError, match=message):
        open_source(path)


def test_columns_outside_of_the_shape_are_named_by_row(tmp_path):
    path = tmp_path / "cells.h5ad"
    anndata_object(CSR).write_h5ad(path)
    change(path, wrong_column)
    row = int(np.searchsorted(CSR.indptr, 40, side="right")) - 1
    with pytest.raises(DataError, match=f"row {row}: column 99 lies outside the 12 columns"):
        list(open_source(path).chunks(10))


def test_categories_of_the_older_layout(tmp_path):
    path = tmp_path / "cells.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = COUNTS
        for frame, ids in (("obs", IDS), ("var", [str(j) for j in range(12)])):
            file.create_group(frame).attrs["_index"] = "index"
            file[f"{frame}/index"] = ids
        file["obs/cell_type"] = (LABELS > 0).astype(np.int8)
        file["obs/__categories/cell_type"] = ["fish", "tree"]
    source = open_source(path, "cell_type")
    np.testing.assert_array_equal(source.labels(), WORDS)
    assert source.row_ids.tolist() == IDS


def test_a_backed_object_is_read_from_its_file(tmp_path):
    anndata_object(CSR).write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    source = open_source(backed, "cell_type")
    assert not isinstance(source, ArraySource)
    np.testing.assert_array_equal(next(source.chunks(N_ROWS)).X.toarray(), COUNTS)
    backed.file.close()


def test_objects_that_cannot_be_used():
    with pytest.raises(DataError, match=r"no column 'kind' in obs; there are label, cell_type"):
        open_source(anndata_object(CSR), "kind")
    empty = anndata_object(None, counts=CSR, more=CSR)
    with pytest.raises(DataError, match=r"AnnData: X is empty\. Name another matrix: adata.layers\['counts'\], "):
        open_source(empty)


def test_an_estimator_takes_the_object(tmp_path):
    data = anndata_object(CSR)
    model = HistogramClassifier("chi2", random_state=0).fit(data, "cell_type")
    assert model.classes_.tolist() == ["fish", "tree"]
    same = HistogramClassifier("chi2", random_state=0).fit(CSR, WORDS)
    np.testing.assert_array_equal(model.predict(data), same.predict(CSR))
    np.testing.assert_allclose(model.decision_function(data), same.decision_function(CSR))


def test_info_lists_columns_of_obs_and_the_other_matrices(cells):
    found, lines = describe.data(str(cells), "cell_type", None, "auto", silent=True)
    kinds = {column["name"]: (column["kind"], column["distinct"]) for column in found["metadata"]}
    assert kinds["cell_type"] == ("text", 2)
    assert kinds["n"] == ("whole numbers", np.unique(LABELS).size)
    assert kinds["flag"] == ("true or false", 2)
    assert kinds["holes"] == (None, None)
    assert "::obsm/X_pca" in lines["other matrices"]
    assert "X" not in found["other_matrices"]
    assert "cell_type: text, 2 different" in lines["other columns"]
    assert "holes: some rows have no value" in lines["other columns"]
    assert describe.data(f"{cells}::obsm/X_pca", "cell_type", None, "auto", silent=True)[0]["other_matrices"][0] == "X"


SHUFFLED = np.random.default_rng(0).permutation(N_ROWS)


@pytest.fixture(params=["CSR", "CSC", "dense"])
def backed(tmp_path, request):
    """An object backed by a file."""
    X = {"CSR": CSR, "CSC": CSC, "dense": COUNTS.astype(np.float32)}[request.param]
    anndata_object(X).write_h5ad(tmp_path / "cells.h5ad")
    data = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    yield data
    data.file.close()


@pytest.mark.parametrize("rows", [slice(30, 80), SHUFFLED[:40], LABELS > 0, IDS[::-3]])
@pytest.mark.parametrize("columns", [slice(None), slice(7), [5, 2, 9]])
def test_a_view_of_a_backed_object_is_the_rows_and_columns_that_it_shows(backed, rows, columns):
    view = backed[rows, columns]
    expected = view.to_memory()
    source = open_source(view, "cell_type")
    assert source.from_files
    X = np.concatenate([to_dense(chunk.X) for chunk in source.chunks(13)])
    np.testing.assert_array_equal(X, to_dense(expected.X))
    np.testing.assert_array_equal(source.labels(), expected.obs["cell_type"])
    assert source.row_ids.tolist() == expected.obs_names.tolist()
    assert source.column_names == tuple(expected.var_names)
    some = np.arange(0, source.n_rows, 5)
    np.testing.assert_array_equal(to_dense(source.take(some)), X[some])
    assert source.fingerprint() != open_source(backed, "cell_type").fingerprint()


def test_a_view_of_a_backed_object_trains_and_predicts_as_in_memory(backed):
    view = backed[:50, :7]
    model = HistogramClassifier("chi2", random_state=0).fit(view, "cell_type")
    assert (model.n_rows_, model.n_features_in_) == (50, 7)
    same = HistogramClassifier("chi2", random_state=0).fit(view.to_memory(), "cell_type")
    np.testing.assert_allclose(model.decision_function(view), same.decision_function(view.to_memory()))


def test_labels_and_names_of_a_backed_object_are_those_of_the_object(backed):
    backed.obs["odd"] = np.arange(N_ROWS) % 2
    backed.obs["cell_type"] = WORDS[::-1]
    backed.obs_names = [f"cell {i}" for i in range(N_ROWS)]
    np.testing.assert_array_equal(open_source(backed, "odd").labels(), np.arange(N_ROWS) % 2)
    source = open_source(backed[10:], "cell_type")
    np.testing.assert_array_equal(source.labels(), WORDS[::-1][10:])
    assert source.row_ids[0] == "cell 10"
    with pytest.raises(DataError, match=r"no column 'kind' in obs; there are label, cell_type, odd"):
        open_source(backed, "kind")


def test_a_view_that_does_not_tell_its_rows(backed, monkeypatch):
    view = backed[:50]
    monkeypatch.setattr(view, "_oidx", None)
    with pytest.raises(DataError, match=r"does not tell its rows in the file.*view\.to_memory\(\)"):
        open_source(view, "cell_type")


def test_labels_in_another_order_than_the_cells(backed):
    labels = backed.obs["cell_type"].iloc[SHUFFLED]
    model = HistogramClassifier("chi2", random_state=0)
    message = r"same index in another order: row 0 is 'row 0' in the rows.*y\.loc\[adata\.obs_names\]"
    for data in (backed, backed.to_memory()):
        with pytest.raises(DataError, match=message):
            model.fit(data, labels)
        model.fit(data, labels.loc[data.obs_names])
        with pytest.raises(DataError, match=message):
            model.score(data, labels)
        assert model.score(data, backed.obs["cell_type"]) == model.score(data, WORDS)


def test_a_column_that_does_not_fit_is_named(tmp_path):
    path = tmp_path / "cells.h5ad"
    anndata_object(CSR).write_h5ad(path)

    def edit(file):
        file["obs/cell_type/codes"][5] = 7
        del file["obs/label"]
        file["obs/label"] = LABELS[:-2]

    change(path, edit)
    message = r"cells\.h5ad, obs\['cell_type'\], row 5: code 7, but there are 2 categories"
    with pytest.raises(DataError, match=message):
        open_source(path, "cell_type")
    message = rf"cells\.h5ad, obs\['label'\]: {N_ROWS - 2} values, but the matrix has {N_ROWS} rows"
    with pytest.raises(DataError, match=message):
        open_source(path, "label")


EMPTY = {
    "absent": lambda data, path: data.write_h5ad(path),
    "null": lambda data, path: data.write_h5ad(path),
    "a store": lambda data, path: data.write_zarr(path),
    "an object": lambda data, path: None,
    "a backed object": lambda data, path: data.write_h5ad(path),
}


def without_x(form, layers, folder):
    """Cells whose X is empty, with some layers and components, in one form."""
    made = anndata_object(CSR)
    data = anndata.AnnData(None, made.obs, made.var, layers=dict.fromkeys(layers, CSR), obsm={"X_pca": COUNTS[:, :3]})
    path = folder / ("cells.zarr" if form == "a store" else "cells.h5ad")
    EMPTY[form](data, path)
    if form == "null":
        with h5py.File(path, "a") as file:
            file["X"] = h5py.Empty("f8")
            file["X"].attrs["encoding-type"] = "null"
    if form == "an object":
        return data
    return anndata.read_h5ad(path, backed="r") if form == "a backed object" else path


@pytest.mark.parametrize("form", EMPTY)
def test_the_one_other_matrix_stands_in_for_an_empty_x(form, tmp_path):
    source = open_source(without_x(form, ["counts"], tmp_path), "cell_type")
    np.testing.assert_array_equal(to_dense(source.take(np.arange(N_ROWS))), COUNTS)
    assert any("X is empty, and the one other matrix, layers/counts, is taken" in note for note in source.notes)
    (tmp_path / "more").mkdir()
    with pytest.raises(DataError, match=r"X is empty\. Name another matrix: .*layers.*a.*, .*layers.*b"):
        open_source(without_x(form, ["a", "b"], tmp_path / "more"))
