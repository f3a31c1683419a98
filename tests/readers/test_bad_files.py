"""Bad input is refused with the file, the place in it, and what to do."""

import gzip
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.readers import NpySource, NpzSource, SvmlightSource, open_source

from .small_sources import compressed


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1, None]]), r"dtype object.*X\.astype\(float\)"),
        ([["a", "b"]], "expected numbers, got dtype <U1"),
        ([[1, 2], [3]], "not a table of numbers"),
        (np.ones(3), r"got shape \(3,\)\. Use X\.reshape"),
        (np.float64(3), r"got shape \(\)"),
        (np.ones((0, 3)), r"empty, shape \(0, 3\)"),
        (np.ones((3, 0)), r"empty, shape \(3, 0\)"),
        (np.ones((2, 2), complex), "expected numbers, got dtype complex128"),
        (sp.csr_matrix(np.ones((2, 2), complex)), "expected numbers, got dtype complex128"),
        (np.ma.masked_equal([[1, 2]], 2), "masked"),
    ],
)
def test_arrays(X, message):
    with pytest.raises(DataError, match=message):
        ArraySource(X)


def test_npy_cut_off(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.ones((100, 5)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(DataError, match=r"rows\.npy: cut off.*\(100, 5\) of float64, 4128 bytes, the file has 4120"):
        NpySource(path)
    path.write_bytes(whole[:50])
    with pytest.raises(DataError, match=r"rows\.npy: not an \.npy array, or cut off"):
        NpySource(path)


def test_npy_that_shrinks_while_it_is_read(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.ones((1000, 5)))
    chunks = NpySource(path).chunks(20)
    next(chunks)
    os.truncate(path, 30_000)
    with pytest.raises(DataError, match=r"rows\.npy, rows \d+0 to \d+0: .* bytes are missing; the file has changed"):
        list(chunks)


def test_npy_is_never_unpickled(tmp_path):
    np.save(tmp_path / "rows.npy", np.array([[1, "a"]], object))
    with pytest.raises(DataError, match="never unpickled"):
        NpySource(tmp_path / "rows.npy")
    np.savez(tmp_path / "rows.npz", X=np.array([[1, "a"]], object))
    with pytest.raises(DataError, match=r"rows\.npz::X: .*never unpickled"):
        NpzSource(tmp_path / "rows.npz")


def test_npz_without_rows_lists_members_and_shows_the_syntax(tmp_path):
    np.savez(tmp_path / "m.npz", x_train=np.eye(3), y_train=np.arange(3))
    with pytest.raises(DataError, match=r"m\.npz: no array X .*it holds x_train, y_train\. .*'m\.npz::x_train'"):
        NpzSource(tmp_path / "m.npz")
    with pytest.raises(DataError, match=r"m\.npz: no array 'z'; it holds x_train, y_train"):
        NpzSource(tmp_path / "m.npz::z")
    with pytest.raises(DataError, match=r"m\.npz: no array 'z'; it holds x_train, y_train"):
        NpzSource(tmp_path / "m.npz::x_train", "::z")


def test_npz_cut_off_or_not_one(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).random((50, 20)))
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(DataError, match=r"rows\.npz: not an \.npz archive, or cut off"):
        NpzSource(path)
    path.write_text("hello")
    with pytest.raises(DataError, match=r"rows\.npz: not an \.npz archive, or cut off"):
        NpzSource(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("held", [True, False])
def test_npz_with_damaged_member(tmp_path, monkeypatch, method, held):
    if not held:
        monkeypatch.setattr("chimap.readers.io.numpy_files.HELD_BYTES", 0)
    np.save(tmp_path / "X.npy", np.random.default_rng(0).random((500, 20)))
    with zipfile.ZipFile(tmp_path / "rows.npz", "w", method) as file:
        file.write(tmp_path / "X.npy", "X.npy")
    content = bytearray((tmp_path / "rows.npz").read_bytes())
    for place in range(len(content) // 2, len(content) // 2 + 16):
        content[place] ^= 0x5A
    (tmp_path / "rows.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"rows\.npz::X: cannot be read .*copy or write it again"):
        list(NpzSource(tmp_path / "rows.npz").chunks(64))


def test_npz_in_fortran_order(tmp_path):
    np.savez(tmp_path / "rows.npz", X=np.asfortranarray(np.ones((4, 3))))
    with pytest.raises(DataError, match=r"rows\.npz::X: stored in Fortran order.*ascontiguousarray"):
        NpzSource(tmp_path / "rows.npz")


def test_npz_of_other_sparse_formats(tmp_path):
    for X in (sp.csc_matrix(np.eye(3)), sp.coo_matrix(np.eye(3))):
        sp.save_npz(tmp_path / "rows.npz", X)
        with pytest.raises(DataError, match=rf"rows\.npz: .*format '{X.format}'.*Save X\.tocsr\(\)"):
            NpzSource(tmp_path / "rows.npz")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indices": [0, 3, 1]}, "row 1: column 3 lies outside the 3 columns"),
        ({"indices": [0, -1, 1]}, "row 1: column -1 lies outside"),
        ({"indices": [0.0, 1.0, 2.0]}, "indices: expected whole numbers"),
        ({"indptr": [0, 2, 1, 3]}, "indptr: decreases at row 1"),
        ({"indptr": [0, 1, 3]}, "indptr: 3 entries for 3 rows; expected 4"),
        ({"indptr": [0, 1, 2, 4]}, "do not fit together: indptr runs from 0 to 4"),
        ({"data": [1.0, 2.0]}, r"data and indices have shapes \(2,\) and \(3,\)"),
        ({"shape": [3]}, "2 axes or more"),
        ({"y": [1, 2]}, "2 labels for 3 rows"),
    ],
)
def test_csr_parts_that_do_not_fit(tmp_path, changed, message):
    parts = {"data": [1.0, 2.0, 3.0], "indices": [0, 1, 2], "indptr": [0, 1, 2, 3], "shape": [3, 3]}
    np.savez(tmp_path / "rows.npz", **(parts | changed))
    with pytest.raises(DataError, match=message) as caught:
        list(NpzSource(tmp_path / "rows.npz").chunks(2))
    assert "rows.npz" in str(caught.value)


@pytest.mark.parametrize(
    ("third", "message"),
    [
        ("1 1:0.5 2:x", "value 'x' of column 2"),
        ("1 1:0.5 2:", "value '' of column 2"),
        ("1 1:0.5 2:1:3", "value '1:3' of column 2"),
        ("1 1:0.5 2:1_000", "value '1_000' of column 2"),
        ("1 1:0.5 1_0:1", "column '1_0'"),
        ("1_0 1:0.5", "label '1_0', expected one finite number"),
        ("1 3:0.5 2:1", "column 2 after column 3; columns must increase"),
        ("1 2:0.5 2:1", "column 2 after column 2; columns must increase"),
        ("1 a:0.5", "column 'a' in 'a:0.5'"),
        ("1 -2:0.5", "column '-2' in '-2:0.5'"),
        ("1 99999999999:0.5", "column '99999999999'"),
        ("1 3 4:5", "'3', expected column:value"),
        ("1:3 2:4", "the label is missing, the line starts with '1:3'"),
        ("cat 2:4", "label 'cat', expected one finite number"),
        ("1,2 2:4", "label '1,2', expected one finite number"),
        ("-inf 2:4", "label '-inf', expected one finite number"),
        ("", "blank.*needs its label"),
        ("1 9:1", "column 9, but n_features=4"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 2**20])
def test_svmlight_names_line_and_token(tmp_path, monkeypatch, third, message, block_bytes):
    monkeypatch.setattr("chimap.readers.svmlight.BLOCK_BYTES", block_bytes)
    path = tmp_path / "rows.svm"
    path.write_text(f"1 1:1 2:1\n# a_comment\n{third}\n-1 4:1")
    with pytest.raises(DataError, match=rf"rows\.svm, line 3: {message}"):
        SvmlightSource(path, n_features=4)


def test_svmlight_column_zero_when_counting_from_one(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n1 0:1\n")
    assert SvmlightSource(path).n_features == 2
    with pytest.raises(DataError, match=r"rows\.svm, line 2: column 0, but columns count from 1"):
        SvmlightSource(path, zero_based=False)


def test_svmlight_gzip_cut_off(tmp_path):
    text = "".join(f"1 {i}:0.{i}\n" for i in range(1, 5000)).encode()
    for damage in (lambda c: c[:-2000], lambda c: c[:-4] + b"abcd", lambda c: b"1 1:1\n" + c):
        (tmp_path / "rows.svm.gz").write_bytes(damage(gzip.compress(text)))
        with pytest.raises(DataError, match=r"rows\.svm\.gz, after line \d+: cannot be decompressed"):
            SvmlightSource(tmp_path / "rows.svm.gz")


def test_svmlight_of_no_rows_and_of_no_text(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("# nothing\n\n")
    with pytest.raises(DataError, match=r"rows\.txt: no rows"):
        SvmlightSource(path)
    np.save(tmp_path / "rows.npy", np.ones((3, 3)))
    path.write_bytes((tmp_path / "rows.npy").read_bytes())
    with pytest.raises(DataError, match=r"rows\.txt, after line 1: not text"):
        SvmlightSource(path)


def test_svmlight_that_changes_after_it_was_opened(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n2 2:1\n")
    source = SvmlightSource(path)
    for content in ("1 1:1\n", "1 1:1\n2 2:1\n3 1:1\n", "1 1:1\n2 9:1\n"):
        path.write_text(content)
        with pytest.raises(DataError, match=r"rows\.svm: the file has changed"):
            list(source.chunks(5))


@pytest.mark.parametrize("packed", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_text_that_is_damaged_or_cut_off(tmp_path, packed):
    path = tmp_path / "rows.svm"
    rng = np.random.default_rng(0)
    path.write_text("".join(f"1 1:{a} 2:{b}\n" for a, b in rng.random((5000, 2))))
    path = compressed(path, packed)
    whole = path.read_bytes()
    for content in (whole[:-30], whole[: len(whole) // 3]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"rows\.svm\.\w+, after line \d+: cannot be decompressed"):
            SvmlightSource(path)
    path.write_bytes(whole[:5000] + bytes(200) + whole[5200:])
    with pytest.raises(DataError, match=r"rows\.svm\.\w+, (after )?line \d+: "):  # found by sum or by sense
        SvmlightSource(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cr.csv", b"a,b,y\r1,2,0\r3,4,1\r", "a CR within the line"),
        ("long.csv", b"a,b,y\n1,2,0\n" + b"7" * 2**25 + b",3,1\n", "a line of more than 16 MiB"),
        ("long.csv.gz", gzip.compress(b"a,b,y\n1,2,0\n" + b" " * 2**25, 1), "a line of more than 16 MiB"),
        (
            "notes.svm.gz",
            gzip.compress(b"1 1:2\n" + (b"#" + b"x" * 2**20 + b"\n") * 64, 6),
            "unpacks to more than 300 times its size",
        ),
        ("blank.svm.gz", gzip.compress(b"1 1:2\n" + b"\n" * 2**25, 1), "more than 16 MiB of blanks in a row"),
        ("blank.csv.gz", gzip.compress(b"a,y\n1,2\n" + b"\n" * 2**25, 1), "more than 16 MiB of blanks in a row"),
        ("wide.svm", b"1 2147483646:1\n0 1:2\n", "column 2,147,483,646 makes rows of .* columns; at most"),
    ],
)
def test_text_that_would_fill_the_memory(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}.*{message}"):
        open_source(tmp_path / name)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shape": [120, 10**12]}, "promises 1,000,000,000,000 columns"),
        ({"indptr": [0.5, 1.5, 2.5, 3.5]}, "indptr: expected whole numbers"),
        ({"shape": [3.5, 3]}, "shape: expected whole numbers"),
    ],
)
def test_csr_parts_of_other_numbers(tmp_path, changed, message):
    parts = {"data": [1.0, 2.0, 3.0], "indices": [0, 1, 2], "indptr": [0, 1, 2, 3], "shape": [3, 3]}
    np.savez(tmp_path / "rows.npz", **(parts | changed))
    with pytest.raises(DataError, match=rf"rows\.npz.*{message}"):
        open_source(tmp_path / "rows.npz")


@pytest.mark.parametrize("ending", ["feather", "parquet"])
def test_an_arrow_table_without_columns(tmp_path, ending):
    pyarrow = pytest.importorskip("pyarrow")
    path, table = tmp_path / f"rows.{ending}", pyarrow.table({})
    if ending == "feather":
        with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, path)
    with pytest.raises(DataError, match=rf"rows\.{ending}.*no columns"):
        open_source(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(3))
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as file:
        file.write(tmp_path / "X.npy", "X.npy")
        file.write(tmp_path / "X.npy", "X.npy")
    with pytest.raises(DataError, match=r"rows\.npz: two members are called 'X\.npy'"):
        NpzSource(tmp_path / "rows.npz")


def test_rows_that_can_be_named_are_listed_and_open(tmp_path):
    S = sp.csr_matrix(np.eye(3))
    parts = {f"gut_{k}": getattr(S, k) for k in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "two.npz", **parts, other=np.ones((3, 2)), y=[0, 1, 0])
    with pytest.raises(DataError, match=r"Name the rows as 'two\.npz::gut_' or 'two\.npz::other'"):
        open_source(tmp_path / "two.npz")
    np.testing.assert_array_equal(next(open_source(f"{tmp_path}/two.npz::gut_").chunks(3)).X.toarray(), np.eye(3))
