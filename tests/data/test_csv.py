"""CSV: headings, delimiters, labels, and the line that is at fault."""

import os

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.data import CsvSource, open_source
from chimap.data.formats import csv

from .small_sources import COUNTS, LABELS, SOURCES, compressed

pytest.importorskip("pyarrow")


def write(folder, text, name="rows.csv"):
    (folder / name).write_text(text, "utf-8")
    return folder / name


@pytest.mark.parametrize(
    ("text", "rows", "labels"),
    [
        ("a,b\n1,2\n", [[1, 2]], None),
        ("a,label\n1,x\n", [[1]], ["x"]),
        ("\ufeffa,y\r\n1,2\r\n", [[1]], [2]),
        ("1,2\n3,4\n", [[1, 2], [3, 4]], None),
        ("0,1,y\n3,4,5\n", [[3, 4]], [5]),  # an unnamed data frame
        (",0,1,y\n0,3,4,5\n", [[3, 4]], [5]),  # and with its index
        ("0,5\n3,4\n", [[0, 5], [3, 4]], None),
        ("\n\na;b\n1;2\n\n3;4", [[1, 2], [3, 4]], None),
        ("a|b\n1|2\n", [[1, 2]], None),
        ('"a","y"\n"1e-3","x, y"\n', [[1e-3]], ["x, y"]),
        ("a\n1\n2\n", [[1], [2]], None),
        ("a,b\n 1 , 2\n", [[1, 2]], None),
    ],
)
def test_headings_and_delimiters(tmp_path, text, rows, labels):
    source = open_source(write(tmp_path, text))
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in source.chunks(1)]), rows)
    assert (source.labels() is None) if labels is None else (source.labels().tolist() == labels)


@pytest.mark.parametrize(("text", "told"), [(",a,y\n3,1,x\n3,2,y\n", True), (",a,y\n3,1,x\n4,2,y\n", False)])
def test_a_first_column_without_a_name_is_the_index_and_told_of_where_it_repeats(tmp_path, text, told):
    source = open_source(write(tmp_path, text))
    assert source.column_names == ("a",)
    assert any("has no name and is set aside" in note for note in source.notes) == told


def test_labels_by_name_number_array_and_file(tmp_path):
    path = write(tmp_path, "a,kind,b\n1,x,2\n3,z,4\n")
    for labels in ("kind", "1", 1, -2, "-2"):
        assert open_source(path, labels).labels().tolist() == ["x", "z"]
    np.save(tmp_path / "y.npy", [7, 8])
    numbers = write(tmp_path, "1,2\n3,4\n", "numbers.csv")
    for labels in ([7, 8], tmp_path / "y.npy"):
        assert open_source(numbers, labels).labels().tolist() == [7, 8]
        assert open_source(numbers, labels).n_features == 2
    with pytest.raises(DataError, match=r"rows\.csv: no column 3; there are 3, the first is 0, the last -1"):
        open_source(path, 3)
    with pytest.raises(DataError, match="no column and no file 'knid'"):
        open_source(path, "knid")


@pytest.mark.parametrize("said", [{"labels": "site"}, {"id": "site"}, {"exclude": "site"}, {"aside": "site"}])
def test_a_word_that_is_said_of_the_table_makes_a_heading_of_numbers(tmp_path, said):
    path = write(tmp_path, "400,410,site\n1,2,7\n3,4,9\n")
    source = open_source(path, **said)
    assert source.column_names == ("400", "410")
    assert open_source(path).n_rows == 3


def test_names_of_a_model_make_a_heading_of_numbers(tmp_path):
    X = np.random.default_rng(0).poisson(4.0, (40, 3))
    fitted = write(tmp_path, "0,1,2,y\n" + "".join(f"{a},{b},{c},{a > c}\n" for a, b, c in X), "fit.csv")
    model = HistogramClassifier("chi2").fit_source(open_source(fitted))
    turned = write(tmp_path, "2,0,1\n" + "".join(f"{c},{a},{b}\n" for a, b, c in X))
    source = open_source(turned, like=model)
    np.testing.assert_array_equal(next(source.chunks(100)).X, X)
    with pytest.raises(DataError, match=r"rows\.csv: no column '1', which the model was fitted on"):
        open_source(write(tmp_path, "2,0,3\n5,6,7\n"), like=model)
    assert open_source(write(tmp_path, "5,6,7\n"), like=model).n_rows == 1  # no heading
    assert open_source(write(tmp_path, "0,0,2\n"), like=model).n_rows == 1


def test_heading_and_delimiter_can_be_given(tmp_path):
    path = write(tmp_path, "1 2\n3 4\n")
    assert CsvSource(path, delimiter=" ", header=True).n_rows == 1
    assert CsvSource(path, delimiter=" ", header=False).n_rows == 2
    with pytest.raises(ValueError, match="header must be one of"):
        CsvSource(path, header="no")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,y\n1,2,0\n3,x,1\n", r"rows\.csv, line 3, column 'b': 'x', expected a number"),
        ("a,b,y\n1,2,0\n\n3,,1\n", r"rows\.csv, line 4, column 'b': '', expected a number"),
        ("a,b,y\n1,NA,0\n", r"rows\.csv, line 2, column 'b': 'NA', expected a number"),
        ("a,b,y\n1,2,0\n3,1\n", r"rows\.csv, line 3: 2 fields, expected 3"),
        ("a,b,y\n1,2,0\n3,1,4,5\n", r"rows\.csv, line 3: 4 fields, expected 3"),
        ("id,b,y\nq,1,x\nr,2\n", r"rows\.csv, line 3: 2 fields, expected 3"),  # ids are not known by then
        ("a,b,y\n1,2,\n", r"rows\.csv: every label is missing"),
        ("a,b,y\n1,2,1\n1,2,?\n", r"rows\.csv, column 'y', row 1: '\?' among numbers such as '1'"),
        ("a,b,y\n1,2,nan\n", r"rows\.csv: every label is missing"),
        ("a,a,y\n1,2,1\n", "two columns are called 'a'"),
        ("y\n1\n", "no columns are left besides labels and ids"),
        (
            "post,y\nalpha ray,1\ngamma ray,0\n",
            r"use reading=WordCounts\('post'\), for molecules reading=MorganCounts\('post'\)",
        ),
        (
            f"a,b,y\n1,{'x' * 99},1\n2,3,0\n",
            r"line 2, column 'b': 'x{57}\.\.\.', expected a number.*exclude='b', .* reading=MorganCounts\('b'\)",
        ),
        ("a,b\n", "no rows, only a heading"),
        ("\n\n", "no rows, only blank lines"),
        ("1,1_000\n2,3\n", r"rows\.csv, line 1, column '1': '1_000', expected a number"),
    ],
)
def test_lines_at_fault(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        list(open_source(write(tmp_path, text)).chunks(10))


def test_faults_far_into_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "BLOCK_BYTES", 1000)
    lines = [f"{i},{i}" for i in range(5000)]
    lines[4321] = "1,one"
    with pytest.raises(DataError, match=r"line 4322, column '1': 'one'"):
        list(CsvSource(write(tmp_path, "\n".join(lines))).chunks(10))


def test_not_text(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"a,b\n1,\xff\n")
    with pytest.raises(DataError, match=r"rows\.csv: cannot be read \(.*utf-8"):
        list(open_source(tmp_path / "rows.csv").chunks(10))
    (tmp_path / "rows.csv").write_bytes(b"\xff,b\n1,2\n")
    with pytest.raises(DataError, match=r"rows\.csv, line 1: not text in UTF-8"):
        open_source(tmp_path / "rows.csv")
    (tmp_path / "rows.csv").write_bytes(b"\xff\xfe,b\n1,2\n")
    with pytest.raises(
        DataError, match=r"rows\.csv: its first bytes say UTF-16, but it is not text in UTF-16"
    ):
        open_source(tmp_path / "rows.csv")


@pytest.mark.parametrize("packed", [".gz", ".bz2", ".xz", ".zst"])
def test_cut_off(tmp_path, packed):
    rng = np.random.default_rng(0)
    path = write(tmp_path, "".join(f"{a},{b}\n" for a, b in rng.random((5000, 2))))
    path = compressed(path, packed)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(DataError, match=r"rows\.csv\.\w+.*cannot be (read|decompressed)"):
        list(open_source(path).chunks(100))


def test_small_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "BLOCK_BYTES", 100)
    for number, kind in enumerate(("CSV", "CSV, semicolons", "TSV, Zstandard")):
        (tmp_path / str(number)).mkdir()
        source = SOURCES[kind](tmp_path / str(number))
        np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in source.chunks(7)]), COUNTS)


@pytest.mark.parametrize(
    ("text", "meant"), [('"one\n{0}, ""two"""', 'one\n{0}, "two"'), ('a 5" disk {0}', 'a 5" disk {0}')]
)
def test_line_breaks_and_quotes_within_fields(tmp_path, monkeypatch, text, meant):
    monkeypatch.setattr(csv, "BLOCK_BYTES", 50)  # most end within a field
    lines = [f"{text.format(i)},{i},{'xy'[i % 2]}\n" for i in range(100)]
    source = open_source(write(tmp_path, "id,b,kind\n" + "".join(lines)), labels="kind")
    assert np.concatenate([chunk.X for chunk in source.chunks(9)])[:, 0].tolist() == [*range(100)]
    assert source.row_ids[99] == meant.format(99)
    assert source.labels().tolist() == ["x", "y"] * 50


def test_a_table_that_changes(tmp_path):
    path = write(tmp_path, "a,b\n" + "1,2\n" * LABELS.size)
    source = open_source(path)
    with path.open("a") as file:
        file.write("3,4\n")
    with pytest.raises(DataError, match="the file has changed since it was opened"):
        list(source.chunks(10))


def test_blocks_end_with_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("chimap.data.formats.csv.BLOCK_BYTES", 64)
    rows = np.arange(600.0).reshape(200, 3)
    text = "a,b,y\n" + "".join(
        ("\n" * 70 if i == 50 else "") + "{:g},{:g},{:g}\n".format(*row) for i, row in enumerate(rows)
    )
    (tmp_path / "rows.csv").write_text(text.rstrip())
    source = CsvSource(tmp_path / "rows.csv")
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in source.chunks(7)]), rows[:, :2])
    np.testing.assert_array_equal(source.labels(), rows[:, 2])
