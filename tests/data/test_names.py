"""Names bind: columns are matched by name, indices are no bins, and ids travel with the rows."""

import numpy as np
import pytest

import chimap
from chimap import HistogramClassifier, HistogramRegressor, open_source
from chimap._validation import DataError
from chimap.data.table import named_blocks, places_of

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

rng = np.random.default_rng(3)
NAMES = [f"otu_{j}" for j in range(6)]
FRAME = pd.DataFrame(rng.dirichlet(np.ones(6), size=80), columns=NAMES)
FRAME["site"] = np.where(FRAME["otu_0"] > FRAME["otu_1"], "gut", "skin")
MIXED = FRAME[["otu_4", "otu_1", "site", "otu_0", "otu_5", "otu_2", "otu_3"]]


def csv(frame, path):
    frame.to_csv(path, index=False)


def tsv(frame, path):
    frame.to_csv(path, index=False, sep="\t")


WRITERS = {
    ".csv": csv,
    ".tsv": tsv,
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False),
    ".feather": lambda frame, path: frame.to_feather(path),
    ".npz": lambda frame, path: np.savez(
        path,
        X=frame.drop(columns="site").to_numpy(),
        y=frame["site"].to_numpy(str),
        column_names=frame.drop(columns="site").columns.to_numpy(str),
    ),
}


def written(frame, path):
    WRITERS[path.suffix](frame, path)
    return open_source(path, "y" if path.suffix == ".npz" else "site")


@pytest.mark.parametrize("ending", WRITERS)
def test_a_model_matches_columns_by_name(tmp_path, ending):
    source = written(FRAME, tmp_path / f"rows{ending}")
    assert source.column_names == tuple(NAMES)
    model = HistogramClassifier("chi2", random_state=0).fit_source(source)
    assert model.feature_names_in_.tolist() == NAMES
    model.save(tmp_path / "a.model")
    expected = model.predict_source(source)
    for other in WRITERS:
        shuffled = written(MIXED, tmp_path / f"mixed{other}")
        assert shuffled.column_names != source.column_names
        for fitted in (model, chimap.load(tmp_path / "a.model")):
            np.testing.assert_allclose(fitted.predict_source(shuffled), expected, rtol=1e-6)
        compiled = model.compile()
        np.testing.assert_array_equal(compiled.predict_source(shuffled), compiled.predict_source(source))


def test_hdf5_and_zarr_know_names(tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    X, ids = MIXED[["otu_4", "otu_1", "otu_0", "otu_5", "otu_2", "otu_3"]], [f"s{i}" for i in range(80)]
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"], file["column_names"], file["row_ids"] = X.to_numpy(), X.columns.tolist(), ids
    root = zarr.open_group(tmp_path / "rows.zarr", mode="w")
    root.create_array("X", data=X.to_numpy())
    root.create_array("column_names", data=X.columns.to_numpy(str))
    root.create_array("row_ids", data=np.array(ids))
    model = HistogramClassifier("chi2").fit(FRAME[NAMES], FRAME["site"])
    for name in ("rows.h5", "rows.zarr"):
        source = open_source(tmp_path / name)
        assert source.row_ids.tolist() == ids
        outputs = model.predict_source(source)
        np.testing.assert_array_equal(model.labels_of(outputs), model.predict(FRAME[NAMES]))


def test_columns_that_are_missing_are_named_and_others_ignored_with_a_note(tmp_path):
    model = HistogramClassifier("chi2").fit_source(written(FRAME, tmp_path / "rows.csv"))
    more = FRAME.assign(depth=2.0)
    for path in ("more.csv", "more.parquet"):
        source = written(more, tmp_path / path)
        matched = chimap.data.matched(source, model.feature_names_in_, 6, "model")
        assert "'depth' ignored" in matched.notes[-1]
        np.testing.assert_array_equal(model.labels_of(model.predict_source(source)), model.predict(FRAME[NAMES]))
        assert "'depth' ignored" in open_source(tmp_path / path, "site", like=model).notes[-1]
        less = written(FRAME.drop(columns=["otu_3", "otu_5"]), tmp_path / f"less{path}")
        with pytest.raises(DataError, match=r"no column 'otu_3', 'otu_5', which the model was fitted on \(2 of 6"):
            model.predict_source(less)


@pytest.mark.parametrize("ending", [".csv", ".parquet", None])
def test_a_column_that_names_the_rows_is_none_that_the_model_ignores(tmp_path, ending):
    model = HistogramClassifier("chi2").fit(FRAME[NAMES], FRAME["site"])
    rows = FRAME[NAMES].assign(depth=1.0)
    rows.insert(0, "sample", [f"s{i}" for i in range(80)])
    if ending is not None:
        WRITERS[ending](rows, tmp_path / f"rows{ending}")
    source = open_source(rows if ending is None else tmp_path / f"rows{ending}", like=model)
    assert source.row_ids.tolist() == rows["sample"].tolist()
    [note] = [note for note in source.notes if "ignored" in note]
    assert "column 'depth' ignored" in note


def test_text_columns_that_a_model_does_not_know_are_not_read(tmp_path):
    model = HistogramClassifier("chi2").fit(FRAME[NAMES], FRAME["site"])
    csv(FRAME.assign(comment="x y"), tmp_path / "rows.csv")
    source = open_source(tmp_path / "rows.csv", like=model)
    assert source.n_features == 6
    assert source.labels() is None


def test_without_names_on_one_side_columns_go_by_place_and_width(tmp_path):
    model = HistogramClassifier("chi2").fit_source(written(FRAME, tmp_path / "rows.csv"))
    plain = open_source(FRAME[NAMES].to_numpy())
    assert model.predict_source(plain).shape == (80, 1)
    with pytest.raises(DataError, match="5 bins per row, but HistogramClassifier was fitted on 6"):
        model.predict_source(open_source(FRAME[NAMES[:5]].to_numpy()))
    nameless = HistogramClassifier("chi2").fit(FRAME[NAMES].to_numpy(), FRAME["site"])
    assert not hasattr(nameless.fit_source(open_source(FRAME[NAMES].to_numpy(), FRAME["site"])), "feature_names_in_")
    assert nameless.predict_source(open_source(tmp_path / "rows.csv", "site")).shape == (80, 1)


# --- indices and ids


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_the_index_of_a_data_frame_is_no_bin(tmp_path, name):
    frame = FRAME.set_index(pd.Index([7 * i % 80 for i in range(80)]))
    frame.to_csv(tmp_path / "rows.csv")
    frame.to_parquet(tmp_path / "rows.parquet")
    source = open_source(tmp_path / name, "site")
    assert source.column_names == tuple(NAMES)
    assert source.row_ids.tolist() == [str(7 * i % 80) for i in range(80)]
    twice = pd.read_csv(tmp_path / "rows.csv")  # pandas calls it Unnamed: 0
    twice.to_csv(tmp_path / "again.csv", index=False)
    assert open_source(tmp_path / "again.csv", "site").column_names == tuple(NAMES)
    assert open_source(twice, "site").column_names == tuple(NAMES)


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_first_column_that_counts_is_refused_with_what_settles_it(tmp_path, start, ending):
    path = tmp_path / f"rows{ending}"
    frame = FRAME.copy()
    frame.insert(0, "n", np.arange(start, start + 80))
    WRITERS[ending](frame, path)
    with pytest.raises(
        DataError, match=r"first column, 'n', counts the rows.*use id='n'; .*, exclude='n'; .*with columns"
    ):
        open_source(path, "site")
    named = open_source(path, "site", id="n")
    assert named.column_names == tuple(NAMES)
    assert named.row_ids[0] == str(start)
    assert open_source(path, "site", exclude="n").column_names == tuple(NAMES)
    assert open_source(path, "site", columns="n,otu_*").n_features == 7
    with pytest.raises(DataError, match="counts the rows"):
        open_source(frame, "site")


def test_headless_csv_whose_first_column_counts(tmp_path):
    frame = FRAME.drop(columns="site").reset_index()
    frame.to_csv(tmp_path / "rows.csv", header=False, index=False)
    with pytest.raises(DataError, match="use id='0'"):
        open_source(tmp_path / "rows.csv")
    assert open_source(tmp_path / "rows.csv", exclude="0").n_features == 6


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_first_column_of_text_names_the_rows(tmp_path, ending):
    frame = FRAME.copy()
    frame.insert(0, "sample", [f"S{i:02d}" for i in range(80)])
    WRITERS[ending](frame, tmp_path / f"rows{ending}")
    source = open_source(tmp_path / f"rows{ending}", "site")
    assert source.row_ids[:2].tolist() == ["S00", "S01"]
    assert source.column_names == tuple(NAMES)
    assert "'sample', is text without repeats" in source.notes[0]


def test_repeated_ids_are_refused(tmp_path):
    frame = FRAME.assign(sample=[f"S{i % 79}" for i in range(80)])
    csv(frame, tmp_path / "rows.csv")
    with pytest.raises(DataError, match="the id S0 comes twice, in rows 0 and 79"):
        open_source(tmp_path / "rows.csv", "site", id="sample")


def test_an_index_in_another_order_than_that_of_the_labels():
    y = FRAME["site"].iloc[::-1]
    with pytest.raises(DataError, match=r"same index in another order.*y\.loc\[X\.index\]"):
        HistogramClassifier("chi2").fit(FRAME[NAMES], y)
    with pytest.raises(DataError, match="same index in another order"):
        open_source(FRAME[NAMES], y)
    model = HistogramClassifier("chi2").fit(FRAME[NAMES], y.loc[FRAME.index])
    with pytest.raises(DataError, match="same index in another order"):
        model.score(FRAME[NAMES], y)
    regressor = HistogramRegressor("chi2").fit(FRAME[NAMES], FRAME[NAMES[0]])
    with pytest.raises(DataError, match="same index in another order"):
        regressor.score(FRAME[NAMES], FRAME[NAMES[0]].iloc[::-1])
    days = pd.date_range("2020-01-01", periods=len(FRAME))
    with pytest.raises(DataError, match="row 0 is '2020-01-01 00:00:00' in the rows"):
        model.fit(FRAME[NAMES].set_index(days), y.set_axis(days[::-1]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        HistogramClassifier("chi2").fit(FRAME[NAMES], FRAME["site"][:-1])


# --- choice of columns


def test_columns_by_name_glob_place_and_range():
    names = ["id", "a", "b1", "b2", "c"]
    for words, places in (
        ("b*", [2, 3]),
        ("c,a", [4, 1]),
        ("1:3", [1, 2]),
        ("a:b2", [1, 2, 3]),
        ("-1", [4]),
        ([1, "c"], [1, 4]),
        (slice(2, 4), [2, 3]),
        ("b?,b1", [2, 3]),
    ):
        assert places_of(names, words, "rows.csv", "columns") == places
    for word in ("z", "z*", "9", "c:a"):
        with pytest.raises(DataError, match=rf"rows\.csv: no column '{word[:1]}.*\(exclude\)"):
            places_of(names, word, "rows.csv", "exclude")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz"])
def test_columns_are_chosen_from_every_source(tmp_path, ending):
    written(FRAME, tmp_path / f"rows{ending}")
    labels = "y" if ending == ".npz" else "site"
    chosen = open_source(tmp_path / f"rows{ending}", labels, columns="otu_3,otu_[01]", exclude="otu_1")
    assert chosen.column_names == ("otu_3", "otu_0")
    np.testing.assert_allclose(next(chosen.chunks(100)).X, FRAME[["otu_3", "otu_0"]], rtol=1e-12)
    matrix = open_source(FRAME[NAMES].to_numpy(), exclude="0:4")
    np.testing.assert_array_equal(next(matrix.chunks(100)).X, FRAME[NAMES[4:]])


def test_blocks_by_name():
    assert named_blocks(["otu_[01]", [2, 3]], NAMES) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="the rows have no names"):
        named_blocks({"a": "otu_*"}, None)
    blocks = {"low": "otu_[0-2]", "high": ["otu_3", "otu_4", "otu_5"]}
    by_name = HistogramClassifier("chi2", blocks=blocks, random_state=0).fit(FRAME[NAMES], FRAME["site"])
    by_place = HistogramClassifier("chi2", blocks={"low": [0, 1, 2], "high": slice(3, 6)}, random_state=0)
    by_place.fit(FRAME[NAMES].to_numpy(), FRAME["site"])
    np.testing.assert_array_equal(by_name.feature_coef_, by_place.feature_coef_)


# --- tables in memory


def test_frames_of_every_library():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    arrow = pyarrow.Table.from_pandas(FRAME)
    for table in (FRAME, polars.from_pandas(FRAME), arrow, arrow.to_batches()[0]):
        source = open_source(table, "site")
        assert source.column_names == tuple(NAMES)
        np.testing.assert_array_equal(next(source.chunks(100)).X, FRAME[NAMES])
        assert source.labels().tolist() == FRAME["site"].tolist()
    with pytest.raises(DataError, match=r"column 'site'.*expected numbers.*exclude="):
        open_source(FRAME)
    broken = FRAME[NAMES].astype(object)
    broken.loc[3, "otu_1"] = None
    with pytest.raises(DataError, match=r"row 3, column 'otu_1': missing"):
        open_source(broken)
