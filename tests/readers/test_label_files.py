"""Labels in files beside the rows: compressed, in archives, at addresses, and with the endings that people use."""

import bz2
import gzip
import zipfile

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.readers import open_source

pandas = pytest.importorskip("pandas")

IDS = [f"s{i}" for i in range(12)]
SITES = ["gut", "skin", "gut"] * 4
COUNTS = np.arange(24.0).reshape(12, 2) + 1
META = pandas.DataFrame({"sample": IDS, "site": SITES}).iloc[::-1]


@pytest.fixture
def rows(tmp_path):
    frame = pandas.DataFrame(COUNTS, columns=["a", "b"])
    frame.insert(0, "sample", IDS)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


@pytest.mark.parametrize("pack", [(".gz", gzip.compress), (".bz2", bz2.compress)])
@pytest.mark.parametrize(
    ("name", "content"),
    [("labels.txt", "\n".join(SITES)), ("labels.csv", "site\n" + "\n".join(SITES)), ("labels.tsv", "\n".join(SITES))],
)
def test_compressed_files_of_labels(tmp_path, name, content, pack):
    path = tmp_path / (name + pack[0])
    path.write_bytes(pack[1](content.encode()))
    assert open_source(COUNTS, str(path)).labels().tolist() == SITES
    path.write_bytes(pack[1](content.encode())[:-20])
    with pytest.raises(DataError, match=rf"{name}.*damaged or cut off; copy it again"):
        open_source(COUNTS, str(path))
    path.write_bytes(content.encode())
    with pytest.raises(DataError, match=rf"{name}.*damaged or cut off; copy it again"):
        open_source(COUNTS, str(path))


def test_missing_labels_in_a_compressed_file(tmp_path):
    (tmp_path / "y.txt.gz").write_bytes(gzip.compress(b"1\n?\n2\n"))
    assert open_source(np.eye(3), str(tmp_path / "y.txt.gz"), missing="?").labels().tolist() == [1, 2]


def write_parquet(path):
    pytest.importorskip("pyarrow")
    META.to_parquet(path, index=False)


WRITERS = {
    "meta.txt": lambda path: META.rename(columns={"sample": "#SampleID"}).to_csv(path, sep="\t", index=False),
    "meta.txt.gz": lambda path: META.to_csv(path, sep="\t", index=False),
    "meta.tsv": lambda path: META.to_csv(path, sep="\t", index=False),
    "meta.csv.bz2": lambda path: META.to_csv(path, index=False),
    "meta.parquet": write_parquet,
    "meta.feather": lambda path: META.reset_index(drop=True).to_feather(path),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("where", ["folder", "memory", "zip"])
def test_tables_that_are_joined(rows, tmp_path, name, where):
    WRITERS[name](tmp_path / name)
    address = str(tmp_path / name)
    if where == "memory":
        fsspec = pytest.importorskip("fsspec")
        address = f"memory://{tmp_path.name}-{name}"
        fsspec.filesystem("memory").pipe(f"/{tmp_path.name}-{name}", (tmp_path / name).read_bytes())
    if where == "zip":
        pytest.importorskip("fsspec")
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            archive.write(tmp_path / name, name)
        address = f"zip://{name}::{tmp_path}/all.zip"
    source = open_source(rows, f"{address}::site", id="sample")
    assert source.labels().tolist() == SITES
    assert source.row_ids.tolist() == IDS


def test_tables_that_are_packed_as_a_whole_are_refused(rows, tmp_path):
    (tmp_path / "meta.parquet.gz").write_bytes(gzip.compress(b"PAR1"))
    with pytest.raises(DataError, match=r"compressed as a whole\. Unpack it: gunzip .*meta\.parquet\.gz"):
        open_source(rows, f"{tmp_path}/meta.parquet.gz::site", id="sample")


def test_damaged_and_ambiguous_tables_are_refused(rows, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "meta.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"meta\.parquet: cannot be read"):
        open_source(rows, f"{tmp_path}/meta.parquet::site", id="sample")
    twice = pyarrow.table([IDS, SITES, SITES], names=["sample", "site", "site"])
    parquet.write_table(twice, tmp_path / "meta.parquet")
    with pytest.raises(DataError, match=r"two columns are called 'site'"):
        open_source(rows, f"{tmp_path}/meta.parquet::site", id="sample")


def test_columns_of_other_files_are_refused_with_a_remedy(tmp_path):
    (tmp_path / "meta.xlsx").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"only tables \(\.csv, .*write it as one of these: pandas\.read_excel"):
        open_source(COUNTS, f"{tmp_path}/meta.xlsx::site")


def test_a_design_of_mothur_is_no_list_of_labels(rows, tmp_path):
    (tmp_path / "stool.design").write_text("".join(f"{name}\t{site}\n" for name, site in zip(IDS, SITES, strict=True)))
    with pytest.raises(DataError, match=r"stool\.design, line 1: 2 columns; expected a single one"):
        open_source(rows, tmp_path / "stool.design")


@pytest.mark.parametrize("heading", ["1,2,3", "100.5,101.5,102.5"])
@pytest.mark.parametrize("of_labels", ["site\n", ""])
def test_labels_tell_that_the_first_line_of_numbers_is_a_heading(heading, of_labels, tmp_path):
    labels = ["bog", "fen"] * 10
    (tmp_path / "rows.csv").write_text(f"{heading}\n" + "".join(f"{i % 3},{i % 3},4\n" for i in range(20)))
    (tmp_path / "labels.csv").write_text(of_labels + "".join(f"{label}\n" for label in labels))
    source = open_source(tmp_path / "rows.csv", tmp_path / "labels.csv")
    assert source.column_names == tuple(heading.split(","))
    assert source.labels().tolist() == labels
    assert "first line is taken for names" in source.notes[-1]


def test_notes_of_a_heading_that_labels_tell_of_are_of_its_names(tmp_path):
    (tmp_path / "rows.csv").write_text("7,8,9\n" + "".join(f"s{i},{i % 3},4\n" for i in range(20)))
    (tmp_path / "labels.csv").write_text("bog\nfen\n" * 10)
    notes = open_source(tmp_path / "rows.csv", tmp_path / "labels.csv").notes
    assert [note.partition(": ")[2][:22] for note in notes] == ["the first column, '7',", "the first line is take"]


def test_labels_of_every_row_make_no_heading(tmp_path):
    (tmp_path / "rows.csv").write_text("1,2,3\n" + "".join(f"{i % 3},{i % 3},4\n" for i in range(20)))
    (tmp_path / "labels.csv").write_text("bog\n" + "bog\nfen\n" * 10)
    assert open_source(tmp_path / "rows.csv", tmp_path / "labels.csv").n_rows == 21
