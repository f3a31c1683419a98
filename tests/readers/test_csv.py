"""CSV: headings, delimiters, labels, and the line that is at fault."""

import os

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.readers import CsvSource, csv, open_source

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
            r"use reading=WordCounts\('post'\), for molecules reading=MoleculeBlocks\('post'\)",
        ),
        (
            f"a,b,y\n1,{'x' * 99},1\n2,3,0\n",
            r"line 2, column 'b': 'x{57}\.\.\.', expected a number.*exclude='b', .* reading=MoleculeBlocks\('b'\)",
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
    with pytest.raises(DataError, match=r"rows\.csv, line 2: not text in UTF-8"):
        list(open_source(tmp_path / "rows.csv").chunks(10))
    (tmp_path / "rows.csv").write_bytes(b"\xff,b\n1,2\n")
    with pytest.raises(DataError, match=r"rows\.csv, line 1: not text in UTF-8"):
        open_source(tmp_path / "rows.csv")
    (tmp_path / "rows.csv").write_bytes(b"\xff\xfe,b\n1,2\n")
    with pytest.raises(DataError, match=r"rows\.csv, line [12]: not text in utf-16"):
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


@pytest.mark.parametrize("end", ['3,"4', '3,"', '"3,4\n'])
@pytest.mark.parametrize("block_bytes", [8, 1 << 20])
def test_a_file_that_ends_within_a_quoted_field(tmp_path, monkeypatch, end, block_bytes):
    monkeypatch.setattr(csv, "BLOCK_BYTES", block_bytes)
    path = write(tmp_path, "a,b\n" + "1,2\n" * 20 + end)
    with pytest.raises(DataError, match=r"rows\.csv: cannot be read .*cut off"):
        list(open_source(path).chunks(10))


def test_a_transposed_file_that_ends_within_a_quoted_field(tmp_path):
    text = "bin,s,t\n" + "".join(f'"g ""{i}""",{i},2\n' for i in range(20))
    whole = open_source(write(tmp_path, text + 'g,3,"4"\n'), transpose=True)
    assert whole.n_features == 21
    with pytest.raises(DataError, match=r"rows\.csv: cannot be read .*cut off"):
        open_source(write(tmp_path, text + 'g,3,"4'), transpose=True)


def test_a_table_that_changes(tmp_path):
    path = write(tmp_path, "a,b\n" + "1,2\n" * LABELS.size)
    source = open_source(path)
    with path.open("a") as file:
        file.write("3,4\n")
    with pytest.raises(DataError, match="the file has changed since it was opened"):
        list(source.chunks(10))


def test_blocks_end_with_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("chimap.readers.csv.BLOCK_BYTES", 64)
    rows = np.arange(600.0).reshape(200, 3)
    text = "a,b,y\n" + "".join(
        ("\n" * 70 if i == 50 else "") + "{:g},{:g},{:g}\n".format(*row) for i, row in enumerate(rows)
    )
    (tmp_path / "rows.csv").write_text(text.rstrip())
    source = CsvSource(tmp_path / "rows.csv")
    np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in source.chunks(7)]), rows[:, :2])
    np.testing.assert_array_equal(source.labels(), rows[:, 2])


# --- as other programs write tables


def rows_of(source):
    return np.concatenate([chunk.X for chunk in source.chunks(2)]).tolist()


def in_r(names, *lines):
    """Lines as R's write.table writes them by default: quoted text, and one heading less than fields."""
    return "\n".join([" ".join(f'"{name}"' for name in names), *lines]) + "\n"


@pytest.mark.parametrize("name", ["rows.txt", "rows.dat"])
def test_a_table_of_r(tmp_path, name):
    text = in_r(["otu1", "otu2", "site"], '"s1" 3 0.5 "bog"', '"s2" 0 1e-05 "meadow"')
    source = open_source(write(tmp_path, text, name), "site")
    assert source.column_names == ("otu1", "otu2")
    assert source.row_ids.tolist() == ["s1", "s2"]
    assert source.labels().tolist() == ["bog", "meadow"]
    assert rows_of(source) == [[3, 0.5], [0, 1e-5]]


@pytest.mark.parametrize(("sep", "name"), [("\t", "rows.tsv"), (",", "rows.csv"), ("\t", "rows.txt")])
def test_row_names_of_r_with_another_separator(tmp_path, sep, name):
    lines = [["a", "b"], ["1", "5", "6"], ["2", "7", "8"]]  # row names of a data frame without any
    source = open_source(write(tmp_path, "\n".join(map(sep.join, lines)), name))
    assert source.row_ids.tolist() == ["1", "2"]
    assert rows_of(source) == [[5, 6], [7, 8]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2,3\n", "line 2: 3 fields, expected 2"),  # one row is no evidence
        ("a,b\nx,2,3\ny,4,5\nz,6\n", "line 4: 2 fields, expected 3"),
        ("a,b\n1,2\n3,4,5\n", "line 3: 3 fields, expected 2"),
    ],
)
def test_ragged_rows_are_no_row_names(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        list(open_source(write(tmp_path, text)).chunks(10))


@pytest.mark.parametrize("text", ["a,b\n1,2,\n3,4,\n", "a,b,\n1,2,\n3,4,\n"])
def test_a_delimiter_at_the_end_of_lines_is_no_column(tmp_path, text):
    source = open_source(write(tmp_path, text))
    assert source.column_names == ("a", "b")
    assert rows_of(source) == [[1, 2], [3, 4]]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16(tmp_path, monkeypatch, encoding):
    monkeypatch.setattr(csv, "BLOCK_BYTES", 20)
    text = "id\tgr\u00fcn\tart\nx\u4e00\t1\tb\u00e4r\ny\t2.5\tw\u00f6lfin\n"  # Excel, "Unicode text"
    mark = b"" if encoding == "utf-16" else "\ufeff".encode(encoding)
    for name in ("rows.tsv", "rows.txt"):
        (tmp_path / name).write_bytes(mark + text.encode(encoding))
        source = open_source(tmp_path / name, "art")
        assert source.column_names == ("gr\u00fcn",)
        assert source.row_ids.tolist() == ["x\u4e00", "y"]
        assert source.labels().tolist() == ["b\u00e4r", "w\u00f6lfin"]
        assert rows_of(source) == [[1], [2.5]]


@pytest.mark.parametrize("name", ["rows.csv", "rows.txt", "rows.tsv"])
def test_a_line_that_names_the_separator(tmp_path, name):
    source = open_source(write(tmp_path, "sep=;\na, b;c\n1;2\n", name))
    assert source.column_names == ("a, b", "c")
    assert rows_of(source) == [[1, 2]]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("id;a;b\nx;0,5;12\ny;1.234,25;-3\n", [[0.5, 12], [1234.25, -3]]),
        ("id;a;b\nx;1 234,5;1.234\ny;,5;7\n", [[1234.5, 1234], [0.5, 7]]),
        ("id;a;b\nx;1\u202f234;1'234'567\ny;1,5e-3;7\n", [[1234, 1234567], [0.0015, 7]]),
        ("id;a;b\nx;1,234.5;1\ny;0.5;7\n", [[1234.5, 1], [0.5, 7]]),  # decimal points after all
        ("id;a;b\nx;1,234;1\ny;2,5;7\n", [[1.234, 1], [2.5, 7]]),
        ("id;a;b\nx;1.234;1\ny;2.5;7\n", [[1.234, 1], [2.5, 7]]),  # as programs write them
    ],
)
def test_decimal_commas_and_marks_between_thousands(tmp_path, text, rows):
    source = open_source(write(tmp_path, text))
    assert rows_of(source) == rows
    assert source.row_ids.tolist() == ["x", "y"]
    assert any("have decimal" in note for note in source.notes) == ("," in text or "\u202f" in text)


def test_decimal_commas_without_ids_or_names(tmp_path):
    assert rows_of(open_source(write(tmp_path, "a;b\n0,5;1,5\n0,7;2,5\n0,9;1\n"))) == [[0.5, 1.5], [0.7, 2.5], [0.9, 1]]
    assert rows_of(open_source(write(tmp_path, "0,5;1,5\n0,7;2,5\n"))) == [[0.5, 1.5], [0.7, 2.5]]


@pytest.mark.parametrize("delimiter", ["\t", "|"])
def test_decimal_commas_between_tabs_where_only_they_explain_a_number(tmp_path, delimiter):
    text = "id;a;b;y\nr1;0,5;12;1,5\nr2;1.234,25;-3;2\n".replace(";", delimiter)
    source = open_source(write(tmp_path, text, "rows.txt"), "y")
    assert rows_of(source) == [[0.5, 12], [1234.25, -3]]
    assert source.labels().tolist() == [1.5, 2]
    assert any("such as '0,5', have decimal commas" in note for note in source.notes)
    thousands = write(tmp_path, text.replace("0,5", "1,234").replace("1.234,25", "7").replace("1,5", "1"), "other.txt")
    with pytest.raises(DataError, match=r"line 2, column 'a': '1,234', expected a number"):
        rows_of(open_source(thousands, exclude="y"))


def test_decimal_commas_in_ids_and_labels(tmp_path):
    path = write(tmp_path, "code;a;target;kind\n1,50;0,5;3,5;1,2\n2,50;1,5;-1;x,y\n1.000;2;1.000,5;1,3\n")
    source = open_source(path, "kind", id="code", exclude="target")
    assert source.row_ids.tolist() == ["1,50", "2,50", "1.000"]
    assert source.labels().tolist() == ["1,2", "x,y", "1,3"]
    source = open_source(path, "target", id="code", exclude="kind")
    assert source.labels().tolist() == [3.5, -1, 1000.5]
    assert any("the labels, such as '1.000,5'" in note for note in source.notes)
    commas = write(tmp_path, 'a,kind\n1,"0,5"\n2,"1,5"\n', "commas.csv")
    assert open_source(commas, "kind").labels().tolist() == ["0,5", "1,5"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a;b\n0,5;1\n0,7;2\n1.5;3\n",
            r"line 4, column 'a': '1\.5', but other numbers, such as '0,5', have decimal commas",
        ),
        ("a;b\n1,234.5;1\n0,75;2\n1,000.5;2\n", r"line 3, column 'a': '0,75', but .* '1,234\.5', have decimal points"),
        ("a;b\n0,5;1\n0,7;x\n", r"line 3, column 'b': 'x', expected a number"),
        ("a;b\n0,5;1\n0,7;\n", r"line 3, column 'b': '', expected a number"),
        ("a;b\n0,5;12.34.56\n", r"line 2, column 'b': '12\.34\.56', expected a number"),
    ],
)
def test_mixed_decimals(tmp_path, text, message):
    with pytest.raises(DataError, match=rf"rows\.csv, {message}"):
        list(open_source(write(tmp_path, text)).chunks(10))


@pytest.mark.parametrize(
    ("lines", "names", "n_rows"),
    [
        # wavelengths above spectra
        ([[400 + 2 * j for j in range(9)], *[[0.5, 0.1, 0.7] * 3 for _ in range(4)]], ["400", "416"], 4),
        # ids of OTUs above counts
        ([[*range(4479944, 4479953)], *[[0, 3, 0, 0, 1, 0, 0, 1, 0] for _ in range(5)]], ["4479944", "4479952"], 5),
        ([[9, 13, 2, 40, 3, 7, 88, 1, 5], *[[0, 3, 0, 0, 1, 0, 0, 1, 0] for _ in range(5)]], ["9", "5"], 5),
        # the label has a name, which no number beneath it is
        ([[400, 402, "y"], [1, 2, 0], [3, 4, 1], [3, 5, 1]], ["400", "402"], 3),
        ([[400, 402, 404, 406], *[[0.5, 0, 0.7, 0.75] for _ in range(4)]], ["400", "406"], 4),
        # these are rows
        ([[1, 2, 3, 4], *[[0.5, 2, 3, 4.5] for _ in range(4)]], None, 5),
        ([[4, 2, 3, 1], *[[0.5, 2.5, 3.5, 4.5] for _ in range(4)]], None, 5),
        ([[1, 2, 3, 4], *[[0, 0, 0, 0] for _ in range(4)]], None, 5),
        ([[9, 13, 2, 40, 3, 7, 88, 1, 5], *[[8, 3, 1, 10, 11, 0, 5, 19, 4] for _ in range(5)]], None, 6),
        ([[1, 2, 3, 4, 5, 6, 7, 8, 9], *[[2, 3, 4, 5, 6, 7, 8, 9, 10] for _ in range(5)]], None, 6),
        ([[1, 2, 3], [5, 5, 5], [0, 0, 1], [0, 0, 2]], None, 4),
    ],
)
def test_a_heading_of_numbers_above_rows_that_look_different(tmp_path, lines, names, n_rows):
    source = open_source(write(tmp_path, "\n".join(",".join(map(str, line)) for line in lines)))
    assert source.n_rows == n_rows
    assert (
        (source.column_names is None) if names is None else [source.column_names[0], source.column_names[-1]] == names
    )
    assert any("taken for names of the columns" in note for note in source.notes) == (names is not None)


def test_wavelengths_with_decimal_commas_between_semicolons(tmp_path):
    rows = "".join(f"P{i};0,{i};0,25;{'ab'[i % 2]}\n" for i in range(4))
    source = open_source(write(tmp_path, f"Probe;400,5;402,5;Klasse\n{rows}"), "Klasse")
    assert source.column_names == ("400,5", "402,5")
    assert source.labels().tolist() == ["a", "b", "a", "b"]
    np.testing.assert_array_equal(next(source.chunks(4)).X[:, 0], [0, 0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("# written on Monday\n# by hand\na,b\n1,2\n", ("a", "b")),
        ("#a,b\n1,2\n", ("#a", "b")),  # the heading itself
        ("# a, remark\n#a,b,c\n1,2,3\n", ("#a", "b", "c")),
    ],
)
def test_comments_above_the_heading(tmp_path, text, kept):
    source = open_source(write(tmp_path, text))
    assert source.column_names == kept
    assert source.n_rows == 1


@pytest.mark.parametrize(
    "text", ["1 1:0.5 3:2\n0 2:1\n", "# of scikit-learn\n1 1:0.5\n", "1 qid:3 1:0.5\n", "1,2 1:0.5\n"]
)
def test_svmlight_text_is_no_table(tmp_path, text):
    assert not csv.is_text_table(str(write(tmp_path, text, "rows.txt")))
