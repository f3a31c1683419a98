"""Missing labels, labels of a matrix, and labels that are joined by ids."""

import numpy as np
import pytest

from chimap import HistogramClassifier, open_source
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.data.labels import LabelColumn

from .small_sources import COUNTS, LABELS, N_ROWS


def kept_rows(source):
    return np.concatenate([chunk.X for chunk in source.chunks(7)])


@pytest.mark.parametrize("missing", ["", "  "])
def test_missing_text_in_csv(tmp_path, missing):
    pytest.importorskip("pyarrow")
    lines = [f"{a},{b},{c}" for a, b, c in [(5, 2, "cat"), (3, 4, missing), (5, 6, "dog"), (7, 8, missing)]]
    (tmp_path / "rows.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
    source = open_source(tmp_path / "rows.csv")
    assert source.labels().tolist() == ["cat", "dog"]
    assert source.n_left_out == 2
    assert "2 of 4 rows have no label and are left out" in source.notes[-1]
    np.testing.assert_array_equal(kept_rows(source), [[5, 2], [5, 6]])
    np.testing.assert_array_equal(kept_rows(source.unlabelled), [[3, 4], [7, 8]])


@pytest.mark.parametrize(
    ("labels", "missing", "kept"),
    [
        ([0, -1, 1, 0], -1, [0, 1, 0]),
        ([0, -1, 1, 0], "-1", [0, 1, 0]),
        ([0.0, np.nan, 1.0, 0.0], None, [0, 1, 0]),
        ([0.5, np.nan, 1.0, 0.0], None, [0.5, 1, 0]),
        (np.array(["a", None, "b", "a"], object), None, ["a", "b", "a"]),
        (["a", "", "b", "a"], None, ["a", "b", "a"]),
        (["a", "?", "b", "a"], "?", ["a", "b", "a"]),
        (np.ma.masked_equal([3, 9, 4, 3], 9), None, [3, 4, 3]),
    ],
)
def test_missing_labels_of_arrays(labels, missing, kept):
    source = open_source(np.arange(8.0).reshape(4, 2) ** 2, labels, missing=missing)
    assert source.labels().tolist() == kept
    assert source.n_left_out == 1
    np.testing.assert_array_equal(kept_rows(source), (np.arange(8.0).reshape(4, 2) ** 2)[[0, 2, 3]])


def test_text_that_marks_missing_numbers(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "rows.csv").write_text("a,b,y\n5,2,0\n3,4,NA\n5,6,1\n")
    with pytest.raises(DataError, match=r"row 1: 'NA' among numbers such as '0'.*missing='NA'"):
        open_source(tmp_path / "rows.csv")
    assert open_source(tmp_path / "rows.csv", missing="NA").labels().tolist() == [0, 1]
    (tmp_path / "y.txt").write_text("1\n?\n2\n")
    assert open_source(np.eye(3), str(tmp_path / "y.txt"), missing="?").labels().tolist() == [1, 2]


@pytest.mark.parametrize("word", ["NA", "NULL", "None"])
def test_a_word_for_nothing_among_text_is_doubted(word):
    y = np.array(["bog", "fen", word] * N_ROWS)[:N_ROWS]
    doubted = open_source(COUNTS, y)
    assert f"the label {word!r}, in {np.count_nonzero(y == word)} rows, is taken for a class" in doubted.notes[0]
    assert doubted.labels().tolist() == y.tolist()
    told = open_source(COUNTS, y, missing=word)
    assert told.n_left_out == np.count_nonzero(y == word)
    assert len(told.notes) == 1
    assert not open_source(COUNTS, np.full(N_ROWS, word)).notes


def test_a_lone_minus_one_is_doubted():
    y = np.arange(N_ROWS) % 3 - 1
    doubted = open_source(COUNTS, y)
    assert "stands beside 0 to 1 and is taken for a class" in doubted.notes[0]
    assert "missing=-1" in doubted.notes[0]
    assert not open_source(COUNTS, LABELS).notes  # -1 and 1
    assert not open_source(COUNTS, y + 1).notes


def test_a_source_with_missing_labels_is_fitted_without_them():
    y = np.where(np.arange(N_ROWS) % 5 == 0, np.nan, LABELS)
    model = HistogramClassifier("chi2", random_state=0).fit_source(ArraySource(COUNTS, y))
    there = ~np.isnan(y)
    expected = HistogramClassifier("chi2", random_state=0).fit(COUNTS[there], LABELS[there])
    assert model.classes_.tolist() == [-1, 1]
    assert model.n_rows_ == there.sum()
    np.testing.assert_allclose(model.feature_coef_, expected.feature_coef_, rtol=1e-9)


def test_nan_is_a_missing_label_of_svmlight(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2\nnan 2:3\n-1 1:4\nNaN 1:1 2:1\n")
    source = open_source(tmp_path / "rows.svm")
    assert source.labels().tolist() == [1, -1]
    assert source.labels().dtype == np.int64
    np.testing.assert_array_equal(next(source.chunks(9)).X.toarray(), [[2, 0], [4, 0]])
    assert source.n_left_out == 2


def test_chosen_rows_are_read_alike_however_they_are_cut():
    y = np.where(np.arange(N_ROWS) % 4 == 1, np.nan, LABELS)
    source = open_source(COUNTS, y)
    rows = np.flatnonzero(np.arange(N_ROWS) % 4 != 1)
    for size in (1, 10, 1000):
        np.testing.assert_array_equal(np.concatenate([c.X for c in source.chunks(size)]), COUNTS[rows])
        first = next(source.chunks_from(20, size, 60))
        np.testing.assert_array_equal(first.X, COUNTS[rows][20 : min(60, 20 + size)])
        assert first.start == 20
    np.testing.assert_array_equal(source.take(np.array([3, 50])), COUNTS[rows][[3, 50]])


def test_a_column_of_a_matrix_of_labels(tmp_path):
    Y = np.stack([LABELS, -LABELS, LABELS * 2], axis=1)
    np.savez(tmp_path / "rows.npz", X=COUNTS, Y=Y)
    np.save(tmp_path / "Y.npy", Y)
    for labels in ("Y[2]", "::Y[2]", "Y[-1]", str(tmp_path / "Y.npy[2]")):
        np.testing.assert_array_equal(open_source(tmp_path / "rows.npz", labels).labels(), LABELS * 2)
    assert "Y holds 3 columns of labels" in open_source(tmp_path / "rows.npz").notes[0]
    with pytest.raises(DataError, match="no column 3 in labels of shape"):
        open_source(tmp_path / "rows.npz", "Y[3]")
    np.savez(tmp_path / "one.npz", X=COUNTS, Y=LABELS)
    np.testing.assert_array_equal(open_source(tmp_path / "one.npz").labels(), LABELS)


# --- joined by ids


def test_labels_joined_by_ids(tmp_path):
    pandas = pytest.importorskip("pandas")
    ids = [f"s{i}" for i in range(N_ROWS)]
    np.savez(tmp_path / "rows.npz", X=COUNTS, sample_id=ids)
    meta = pandas.DataFrame({"sample_id": ids, "body_site": np.where(LABELS > 0, "gut", "skin"), "age": 3})
    meta = meta.sample(frac=1, random_state=0).iloc[:-7]
    extra = pandas.DataFrame({"sample_id": ["other"], "body_site": ["gut"], "age": [1]})
    meta = pandas.concat([meta, extra])
    meta.to_csv(tmp_path / "meta.tsv", sep="\t", index=False)
    meta.to_parquet(tmp_path / "meta.parquet", index=False)
    for name in ("meta.tsv", "meta.parquet"):
        source = open_source(tmp_path / "rows.npz", f"{tmp_path / name}::body_site")
        assert source.n_rows == N_ROWS - 7
        assert source.n_left_out == 7
        assert "130 of 137 rows" in source.notes[-1]
        assert "7 are left out, and 1 of its rows match none" in source.notes[-1]
        rows = np.array([ids.index(name) for name in source.row_ids])
        np.testing.assert_array_equal(kept_rows(source), COUNTS[rows])
        np.testing.assert_array_equal(source.labels(), np.where(LABELS > 0, "gut", "skin")[rows])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("id,site\na,gut\na,skin\n", "the id a comes twice, in rows 0 and 1"),
        ("id,site\nx,gut\nz,skin\n", "none of its 2 ids, such as 'x', is an id of rows.npz, such as 'a'"),
        ("id,place\na,gut\n", r"no column 'site' \(labels\); there are 'id', 'place'"),
        ("id,site\na\n", "line 2: 1 fields, expected 2"),
        ("id,site\n", "no rows, only a heading"),
    ],
)
def test_tables_that_cannot_be_joined(tmp_path, table, message):
    np.savez(tmp_path / "rows.npz", X=np.eye(3), ids=["a", "b", "c"])
    (tmp_path / "meta.csv").write_text(table)
    with pytest.raises(DataError, match=message) as caught:
        open_source(tmp_path / "rows.npz", f"{tmp_path / 'meta.csv'}::site")
    assert "meta.csv" in str(caught.value)
    with pytest.raises(DataError, match=r"its rows have no ids.*with id,"):
        open_source(np.eye(3), f"{tmp_path / 'meta.csv'}::site")


# --- labels as text


def test_text_labels_are_encoded_as_they_are_read():
    labels = LabelColumn("y")
    for _ in range(100):
        labels.add_texts(["x" * 5000, "y" * 5000] * 500)
    y = labels.finish()
    assert y.dtype == object
    assert y.nbytes < 10**6
    assert y[1] == "y" * 5000
    labels = LabelColumn("rows.csv")
    with pytest.raises(DataError, match=r"rows\.csv: more than 64 MiB of different labels"):
        labels.add_texts([f"{i:02d}" + "x" * 2**20 for i in range(65)])


def test_whole_numbers_of_text_are_exact_and_bounded():
    labels = LabelColumn("y", as_text=False)
    labels.add_texts(["9007199254740993", "9007199254740992"])
    assert labels.finish().tolist() == [9007199254740993, 9007199254740992]
    labels.add_texts(["99999999999999999999999"])
    assert labels.finish().tolist() == ["9007199254740993", "9007199254740992", "99999999999999999999999"]
    with pytest.raises(DataError, match="row 1: 18446744073709551615 does not fit in 64 bits"):
        open_source(np.eye(2), np.array([1, 2**64 - 1], np.uint64))


def test_a_table_whose_sides_are_swapped_is_told_so(tmp_path):
    """Ids that are names of columns: the samples are the other side."""
    biom = pytest.importorskip("biom")
    counts = np.arange(12.0).reshape(3, 4)  # three observations of four samples, as they should be
    samples = [f"s{i}" for i in range(4)]
    table = biom.Table(
        counts.T, samples, ["o1", "o2", "o3"], [{"site": "bog"}, {"site": "fen"}, {"site": "bog"}, {"site": "fen"}]
    )
    (tmp_path / "swapped.json.biom").write_text(table.to_json("test"))
    told = r"4 ids is an id of the 3 rows of {}, but 4, such as 's0', are names of its 4 columns: its sides are swapped"
    lines = ["id\tsite", *(f"{name}\tbog" for name in samples)]
    (tmp_path / "sites.tsv").write_text("\n".join(lines) + "\n")
    for data in (table, tmp_path / "swapped.json.biom"):
        name = getattr(data, "name", "biom.Table")
        with pytest.raises(DataError, match=told.format(name) + r"\. Transpose it \(table\.transpose\(\) of biom\)"):
            open_source(data, f"{tmp_path / 'sites.tsv'}::site")
        with pytest.raises(DataError, match=r"'site' is metadata of the observations.*sides of the table are swapped"):
            open_source(data, "site")
