"""open_source: the right source for each argument, and labels from everywhere."""

from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.data.covariates import table_of_columns
from chimap.readers import READERS, NpySource, NpzSource, SvmlightSource, open_source

from .small_sources import COUNTS, LABELS, N_ROWS


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "rows.npy", COUNTS)
    np.savez(tmp_path / "two.npz", x_train=COUNTS, y_train=LABELS.astype(np.int8), names=np.array([b"a", b"b"]))
    (tmp_path / "rows.libsvm").write_text("".join(f"{label} 1:1\n" for label in LABELS))
    return tmp_path


ENDINGS = [ending for reader in READERS.values() for ending in reader.endings]


def test_type_and_ending_choose_the_source(folder):
    assert isinstance(open_source(COUNTS), ArraySource)
    assert isinstance(open_source(COUNTS.tolist()), ArraySource)
    assert isinstance(open_source(folder / "rows.npy"), NpySource)
    assert isinstance(open_source(str(folder / "two.npz::x_train")), NpzSource)
    assert isinstance(open_source(folder / "rows.libsvm"), SvmlightSource)


def test_a_source_passes_through_without_labels():
    source = open_source(COUNTS)
    assert open_source(source) is source
    with pytest.raises(ValueError, match="labels must be None for a Source"):
        open_source(source, LABELS)


def test_labels_come_from_arrays_and_files(folder):
    np.save(folder / "y.npy", LABELS.astype(np.int16))
    lines = "\n".join(str(label) for label in LABELS)
    (folder / "y.txt").write_text(lines + "\n")
    (folder / "y.csv").write_text(lines)
    (folder / "headed.csv").write_text("label\n" + lines)
    for data in (COUNTS, folder / "rows.npy", f"{folder}/two.npz::x_train", folder / "rows.libsvm"):
        for labels in (
            LABELS,
            folder / "y.npy",
            f"{folder}/two.npz::y_train",
            folder / "y.txt",
            folder / "y.csv",
            folder / "headed.csv",
        ):
            source = open_source(data, labels)
            assert source.labels().dtype == np.int64
            np.testing.assert_array_equal(source.labels(), LABELS)


def test_labels_may_be_a_member_of_the_same_archive(folder):
    for labels in ("::y_train", "y_train"):
        np.testing.assert_array_equal(open_source(folder / "two.npz::x_train", labels).labels(), LABELS)
    assert open_source(folder / "two.npz::x_train").labels() is None


def test_labels_of_text_and_of_numbers(folder):
    words = np.where(LABELS > 0, "tree", "fish")
    (folder / "words.txt").write_text("\n".join(words))
    np.testing.assert_array_equal(open_source(COUNTS, folder / "words.txt").labels(), words)
    np.testing.assert_array_equal(open_source(COUNTS, words.astype("S")).labels(), words)
    np.testing.assert_array_equal(open_source(COUNTS, words.astype(object)).labels(), words)
    (folder / "targets.txt").write_text("\n".join(str(label / 2) for label in LABELS))
    np.testing.assert_array_equal(open_source(COUNTS, folder / "targets.txt").labels(), LABELS / 2)


def test_unknown_endings_list_the_known_ones(folder):
    (folder / "rows.pdf").write_text("1")
    with pytest.raises(DataError, match=r"rows\.pdf: unknown kind of file") as caught:
        open_source(folder / "rows.pdf")
    assert all(ending in str(caught.value) for ending in ENDINGS)


def test_missing_empty_and_folder(folder):
    with pytest.raises(FileNotFoundError, match=r"No such file: .*nowhere\.npy"):
        open_source(folder / "nowhere.npy")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        open_source(folder / "rows.npy", folder / "nowhere.txt")
    with pytest.raises(DataError, match="a folder without parts"):
        open_source(folder)
    for ending in ENDINGS:
        (folder / f"empty{ending}").touch()
        with pytest.raises(DataError, match=rf"empty{ending} is empty \(0 bytes\)"):
            open_source(folder / f"empty{ending}")


def test_members_are_for_archives(folder):
    with pytest.raises(DataError, match=r"rows\.npy: only \.npz, .* files have members"):
        open_source(f"{folder}/rows.npy::x")
    with pytest.raises(DataError, match=r"labels '::y' name a member of the data, but the data are not an \.npz"):
        open_source(folder / "rows.npy", "::y")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS[:-1], f"{N_ROWS - 1} labels for {N_ROWS} rows"),
        (np.where(np.arange(N_ROWS) == 4, np.inf, 1.0), "row 4: inf"),
        (["a"] * 9 + [3.0] + ["b"] * (N_ROWS - 10), None),
        (np.array(["a"] * 9 + [3.5] + ["b"] * (N_ROWS - 10), object), "row 9: 3.5"),
        (
            np.ones((N_ROWS, 2, 2)),
            r"one label per row, shape \(137,\), or one per row and task, got shape \(137, 2, 2\)",
        ),
        (np.full((N_ROWS, 2), np.inf), "row 0, task 0: inf"),
        (np.ones(N_ROWS, complex), "expected numbers or text, got dtype complex128"),
    ],
)
def test_bad_labels_name_the_row(labels, message):
    if message is None:  # numpy itself turns a list of text and numbers into text
        assert open_source(COUNTS, labels).labels()[9] == "3.0"
        return
    with pytest.raises(DataError, match=message):
        open_source(COUNTS, labels)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("y.txt", "1\n2\nn/a\n", r"y\.txt, row 2: 'n/a' among numbers such as '1'"),
        ("y.txt", "1\ninf\n2\n", r"y\.txt, row 1: inf"),
        ("y.txt", "1\n2\n", r"y\.txt: 2 labels for 3 rows"),
        ("y.csv", "1\n2,3\n4\n", r"y\.csv, line 2: 2 columns"),
        ("y.npy", "1\n2\n3\n", r"y\.npy: not an \.npy array"),
        ("y.npz", "1\n2\n3\n", r"y\.npz: not an \.npz archive"),
    ],
)
def test_bad_label_files_name_the_place(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        open_source(np.ones((3, 2)), tmp_path / name)


def test_a_name_with_colons_is_that_of_the_file_that_exists(tmp_path):
    (tmp_path / "a::b.csv").write_text("a,b,kind\n1,2,x\n3,1,y\n")
    (tmp_path / "a").write_text("")
    assert open_source(tmp_path / "a::b.csv", "kind").labels().tolist() == ["x", "y"]


def test_marks_of_members_addresses_and_lists_yield_to_files_that_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "id,a,b,kind\nr0,1,2,x\nr1,3,1,y\n"
    for name in ("a*,b.csv", "k=v.csv", "@rows.csv", "odd:/rows.csv"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    for name in ("a*,b.csv", "k=v.csv", "@rows.csv", "odd://rows.csv"):
        assert open_source(name, "kind").labels().tolist() == ["x", "y"]
    table = pyarrow.table({"a": [1, 3], "b": [2, 1], "kind": ["x", "y"]})
    Path("part::s").mkdir()
    with Path("part::s/rows.parquet").open("wb") as file:
        pyarrow.parquet.write_table(table, file)
    assert open_source("part::s", "kind").labels().tolist() == ["x", "y"]
    Path("y[1]").write_text("5\n6\n")
    assert open_source(np.eye(2), Path("y[1]")).labels().tolist() == [5, 6]
    Path("we,i::rd.tsv").write_text("id\tage\tsex\nr1\t30\tm\nr0\t20\tf\n")
    source = open_source("k=v.csv", "kind")
    ages = source.column("we,i::rd.tsv::age").tolist()
    covariates = table_of_columns(source, "we,i::rd.tsv::age,sex")
    assert ages == [20, 30]
    assert covariates.names == ("age", "sex")
    assert covariates.words == ("we,i::rd.tsv::age", "we,i::rd.tsv::sex")
