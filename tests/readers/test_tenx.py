"""10x Genomics: names of genes, and what is wrong with folders and files."""

import gzip
import shutil

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.readers import Hdf5Source, open_source
from chimap.readers.tenx import TenXFolderSource

from .ecosystems import IDS, tenx_folder, tenx_hdf5
from .small_sources import COUNTS, LABELS


@pytest.fixture
def folder(tmp_path):
    """A folder without compression."""
    tenx_folder(tmp_path, packed=False)
    return tmp_path / "filtered_feature_bc_matrix"


def rewrite(path, change):
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


def test_symbols_that_several_genes_have_give_way_to_ids(folder):
    rewrite(folder / "features.tsv", lambda lines: [line.replace("bin 1\t", "bin 0\t") for line in lines])
    names = open_source(folder).column_names
    assert names[:3] == ("ENSG000", "ENSG001", "bin 2")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("barcodes.tsv", lambda lines: lines[:-1], r"12 features and 137 cells, but .* 136 in barcodes\.tsv"),
        ("features.tsv", lambda lines: lines[1:], r"there are 11 lines in features\.tsv"),
        ("barcodes.tsv", lambda lines: [lines[1], *lines[1:]], "'row 1' comes twice.* append the name of its run"),
        ("features.tsv", lambda lines: [lines[1], *lines[1:]], "'ENSG001' comes twice.* Take the file that"),
        ("matrix.mtx", lambda lines: lines[:-3], r"Truncated file.* cut off"),
        ("matrix.mtx", lambda lines: [*lines[:-1], "1 500 2\n"], r"Line \d+: Column index out of bounds"),
        ("matrix.mtx", lambda lines: [*lines[:-1], "1 x 2\n"], r"cannot be read .Line \d+: Invalid integer"),
        ("matrix.mtx", lambda lines: ["1 2 3\n", *lines], "Line 1: Not a Matrix Market file"),
        ("matrix.mtx", lambda lines: lines[:1], "Premature EOF"),
    ],
)
def test_what_does_not_fit(folder, name, change, message):
    rewrite(folder / name, change)
    with pytest.raises(DataError, match=message):
        list(open_source(folder).chunks(50))


def test_a_file_that_is_missing(folder):
    (folder / "features.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"no features\.tsv or genes\.tsv, with or without \.gz"):
        open_source(folder)


def test_a_folder_without_barcodes(folder):
    (folder / "barcodes.tsv").unlink()
    message = r"no barcodes\.tsv, with or without \.gz; there are features\.tsv, matrix\.mtx\. A run of 10x"
    with pytest.raises(FileNotFoundError, match=message):
        open_source(folder)


def prefix(folder, run):
    for name in ("matrix.mtx", "barcodes.tsv", "features.tsv"):
        shutil.copy(folder / name, folder / (run + name))


def test_names_that_begin_with_the_run(folder):
    expected = open_source(folder)
    prefix(folder, "GSM1_s1_")
    for name in ("matrix.mtx", "barcodes.tsv", "features.tsv"):
        (folder / name).unlink()
    (folder / "README.txt").write_text("of a repository\n")
    source = open_source(folder, LABELS)
    np.testing.assert_array_equal(next(source.chunks(200)).X.toarray(), COUNTS)
    assert source.row_ids.tolist() == IDS
    assert source.column_names == expected.column_names
    (folder / "GSM1_s1_features.tsv").rename(folder / "features.tsv")
    with pytest.raises(FileNotFoundError, match=r"no GSM1_s1_features\.tsv or GSM1_s1_genes\.tsv"):
        open_source(folder)


def test_several_runs_in_a_folder(folder):
    prefix(folder, "GSM1_")
    prefix(folder, "GSM2_")
    assert open_source(folder).name == folder.name  # of the names that Cell Ranger gives
    (folder / "matrix.mtx").unlink()
    with pytest.raises(DataError, match=r"several runs, GSM1_matrix\.mtx, GSM2_matrix\.mtx\. Move the three files"):
        open_source(folder)


def test_compressed_text_that_is_cut_off(folder):
    text = (folder / "matrix.mtx").read_bytes()
    (folder / "matrix.mtx").unlink()
    (folder / "matrix.mtx.gz").write_bytes(gzip.compress(text)[:-200])
    with pytest.raises(DataError, match=r"matrix\.mtx\.gz.* cannot be .*end-of-stream"):
        list(open_source(folder).chunks(50))


def test_patterns_have_ones(folder):
    rewrite(
        folder / "matrix.mtx",
        lambda lines: [
            lines[0].replace("integer", "pattern"),
            *lines[1:3],
            *(line.rpartition(" ")[0] + "\n" for line in lines[3:]),
        ],
    )
    np.testing.assert_array_equal(next(open_source(folder).chunks(200)).X.toarray(), COUNTS > 0)


def test_genomes_of_version_2_are_named(tmp_path):
    h5py = pytest.importorskip("h5py")
    tenx_hdf5(tmp_path, version=2)
    path = tmp_path / "counts.h5"
    with h5py.File(path, "a") as file:
        file.copy("GRCh38", "mm10")
    with pytest.raises(DataError, match=r"several genomes, GRCh38, mm10. Name one: 'counts\.h5::GRCh38'"):
        open_source(path)
    assert open_source(f"{path}::mm10", LABELS).row_ids.tolist() == IDS
    with pytest.raises(DataError, match="no group 'hg19' with barcodes; there are GRCh38, mm10"):
        open_source(f"{path}::hg19")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("matrix/shape", "no 'shape'; there are barcodes, data"),
        ("matrix/indices", r"no array 'indices'; .*there are barcodes, data"),
        ("matrix/features/id", "neither features/id and features/name nor genes"),
    ],
)
def test_arrays_that_are_missing(tmp_path, key, message):
    h5py = pytest.importorskip("h5py")
    tenx_hdf5(tmp_path)
    with h5py.File(tmp_path / "counts.h5", "a") as file:
        del file[key]
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "counts.h5")


def test_other_files_of_hdf5_stay_what_they_are(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = COUNTS
    assert isinstance(open_source(tmp_path / "rows.h5"), Hdf5Source)


def test_a_folder_that_changes(folder):
    source = TenXFolderSource(folder)
    shutil.copy(folder / "barcodes.tsv", folder / "more")
    with (folder / "barcodes.tsv").open("a") as file:
        file.write("row 138\n")
    with pytest.raises(DataError, match=r"barcodes\.tsv: the file has changed since it was opened"):
        list(source.chunks(50))
