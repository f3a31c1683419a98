"""QIIME 2: metadata as its users write it, and artifacts that are laid out as its archives are."""

import pickle
import zipfile

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.readers import open_source

h5py = pytest.importorskip("h5py")
biom = pytest.importorskip("biom")

UUID = "3b0a8c5e-5f0b-4d41-8b3c-0c7a4f1e2d99"
SAMPLES = ["0012", "12", "s.3", "s.4"]
COUNTS = np.arange(12.0).reshape(4, 3)
METADATA = (
    "# from the sequencing centre\n"
    "\n"
    "sample-id\t body-site \tyear\tplate\tpH\t\t\n"
    "#q2:types\tcategorical\tnumeric\tcategorical\n"
    "s.3\tgut\t2008\t007\t7.50\t\t\t\n"
    "\t\t\t\n"
    "#s.9\tskin\n"
    " 0012 \tskin\t2009.0\t8\n"
    "12\tgut\t\t8\t6.10\n"
    '"s.4"\t"left palm"\t2008\t\t 7\n'
)


def table_file(path):
    with h5py.File(path, "w") as file:
        biom.Table(COUNTS.T, ["o1", "o2", "o3"], SAMPLES).to_hdf5(file, "a test")
    return path


def artifact(path, kind, data):
    """A zip archive as QIIME 2 writes it: a folder named by the UUID, version, type and provenance beside the data."""
    about = f"uuid: {UUID}\ntype: {kind}\nformat: BIOMV210DirFmt\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{UUID}/VERSION", "QIIME 2\narchive: 5\nframework: 2024.5.0\n")
        archive.writestr(f"{UUID}/metadata.yaml", about)
        archive.writestr(f"{UUID}/provenance/metadata.yaml", about)
        archive.writestr(f"{UUID}/checksums.md5", "")
        for inner, content in data.items():
            archive.writestr(f"{UUID}/data/{inner}", content)
    return path


@pytest.fixture
def table(tmp_path):
    content = table_file(tmp_path / "table.biom").read_bytes()
    return artifact(tmp_path / "table.qza", "FeatureTable[Frequency]", {"feature-table.biom": content})


@pytest.fixture
def metadata(tmp_path):
    (tmp_path / "metadata.tsv").write_text(METADATA)
    return tmp_path / "metadata.tsv"


def test_the_feature_table_of_an_artifact(table):
    source = open_source(table)
    assert source.row_ids.tolist() == SAMPLES
    assert source.column_names == ("o1", "o2", "o3")
    for opened in (source, pickle.loads(pickle.dumps(source))):
        np.testing.assert_array_equal(next(opened.chunks(9)).X.toarray(), COUNTS)
    assert source.fingerprint() == open_source(table).fingerprint()


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ("body-site", ["skin", "gut", "gut", "left palm"]),
        ("year", [2009, 2008, 2008]),  # blank in the row of 12
        ("plate", ["8", "8", "007"]),  # categorical, although some are numbers
        ("pH", [6.1, 7.5, 7.0]),
    ],
)
def test_metadata_as_people_write_it(table, metadata, column, labels):
    source = open_source(table, f"{metadata}::{column}")
    assert source.labels().tolist() == labels
    assert source.n_left_out == 4 - len(labels)


def test_metadata_gives_groups(table, metadata):
    source = open_source(table, f"{metadata}::pH", aside=[f"{metadata}::body-site"])
    assert source.column(f"{metadata}::body-site").tolist() == ["gut", "gut", "left palm"]


@pytest.mark.parametrize("heading", ["#SampleID", "#OTU ID", "SampleID", "Sample ID", "FEATURE-ID"])
def test_headings_of_ids(table, tmp_path, heading):
    (tmp_path / "m.txt").write_text(f"{heading}\tsite\n# a remark\n12\tgut\ns.3\tskin\n")
    assert open_source(table, f"{tmp_path}/m.txt::site").labels().tolist() == ["gut", "skin"]


def test_other_tables_stay_what_they_are(table, tmp_path):
    path = tmp_path / "m.tsv"
    path.write_text("id\tsite\n12\tgut\n#3\tskin\ns.3\n")
    with pytest.raises(DataError, match=r"m\.tsv, line 4: 1 fields, expected 2"):
        open_source(table, f"{path}::site")
    path.write_text("id\tsite\n#q2:types\tcategorical\n12\t1\n#3\tskin\ns.3\t2\n")
    assert open_source(table, f"{path}::site").labels().tolist() == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sample-id\ta\n12\tx\ty\n", r"line 2: 3 cells, but the heading has 2"),
        ("sample-id\ta\n#q2:types\tnumber\n12\tx\n", r"line 2: 'number' is the type of 'a'; expected categorical or"),
        ("sample-id\ta\n#q2:types\tnumeric\n12\tx\n", r"column 'a': 'x', but #q2:types says that it is numeric"),
        ("sample-id\t\ta\n12\tx\ty\n", r"line 1: column 1 of the heading has no name"),
        ("sample-id\ta\ta\n12\tx\ty\n", r"line 1: two columns are called 'a'"),
        ("sample-id\ta\n\tx\n", r"line 2: no id in 'sample-id'"),
        ("sample-id\ta\n# none\n", r"no rows, only a heading"),
        ("sample-id\tb\n12\tx\n", r"no column 'a'"),
        ("sample-id\ta\n12\tx\n12\ty\n", r"the id 12 comes twice"),
        ("sample-id\ta\n12\t\udcff\n", r"line 2: not text in UTF-8"),
    ],
)
def test_metadata_that_cannot_be_used(table, tmp_path, text, message):
    (tmp_path / "m.tsv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=message):
        open_source(table, f"{tmp_path}/m.tsv::a")


def test_an_artifact_of_biom_1(tmp_path, metadata):
    content = biom.Table(COUNTS.T, ["o1", "o2", "o3"], SAMPLES).to_json("a test")
    path = artifact(tmp_path / "old.qza", "FeatureTable[Frequency]", {"feature-table.biom": content})
    source = open_source(path, f"{metadata}::body-site")
    assert source.name == "old.qza"
    assert (source.row_ids.tolist(), source.column_names) == (SAMPLES, ("o1", "o2", "o3"))
    for opened in (source, pickle.loads(pickle.dumps(source))):
        np.testing.assert_array_equal(next(opened.chunks(9)).X.toarray(), COUNTS)
    assert source.labels().tolist() == ["skin", "gut", "gut", "left palm"]
    broken = artifact(tmp_path / "b.qza", "FeatureTable[Frequency]", {"feature-table.biom": content[:-9]})
    with pytest.raises(DataError, match=r"data/feature-table\.biom::.*b\.qza: not JSON"):
        open_source(broken)


@pytest.mark.parametrize(
    ("kind", "inner", "text", "column", "labels"),
    [
        ("ImmutableMetadata", "metadata.tsv", METADATA, "body-site", ["skin", "gut", "gut", "left palm"]),
        ("SampleData[AlphaDiversity]", "alpha-diversity.tsv", "\tpd\n12\t1.5\n0012\t2\n", "pd", [2.0, 1.5]),
        (
            "SampleData[TrueTargets]",
            "true_targets.tsv",
            "SampleID\tsite\n12\tgut\ns.3\tskin\n",
            "site",
            ["gut", "skin"],
        ),
    ],
)
def test_an_artifact_of_metadata(table, tmp_path, kind, inner, text, column, labels):
    path = artifact(tmp_path / "m.qza", kind, {inner: text})
    assert open_source(table, f"{path}::{column}").labels().tolist() == labels
    with pytest.raises(DataError, match=r"m\.qza.*no column 'other'"):
        open_source(table, f"{path}::other")


def test_an_artifact_that_is_no_metadata(table):
    with pytest.raises(
        DataError, match=r"of type FeatureTable\[Frequency\], which has no table data/\*\.tsv. Give Imm"
    ):
        open_source(table, f"{table}::site")


def test_artifacts_without_a_feature_table(tmp_path):
    tree = artifact(tmp_path / "tree.qza", "Phylogeny[Rooted]", {"tree.nwk": "(a,b);"})
    with pytest.raises(DataError, match=r"tree\.qza: an artifact of type Phylogeny\[Rooted\].*Give a FeatureTable"):
        open_source(tree)
    with zipfile.ZipFile(tmp_path / "other.qza", "w") as archive:
        archive.writestr("a/b.txt", "c")
    with pytest.raises(DataError, match=r"no data/feature-table\.biom as in artifacts of QIIME 2; there are b\.txt"):
        open_source(tmp_path / "other.qza")


def test_an_artifact_that_is_damaged(table, tmp_path):
    content = table.read_bytes()
    table.write_bytes(content[:-100])
    with pytest.raises(DataError, match=r"table\.qza: not a zip archive .*cut off"):
        open_source(table)
    damaged = artifact(tmp_path / "b.qza", "FeatureTable[Frequency]", {"feature-table.biom": b"not HDF5"})
    with pytest.raises(DataError, match=r"b\.qza, data/feature-table\.biom: cannot be read"):
        open_source(damaged)


def test_an_artifact_that_unpacks_to_more_than_tables_do(tmp_path):
    blank = artifact(tmp_path / "b.qza", "FeatureTable[Frequency]", {"feature-table.biom": bytes(2**27)})
    with pytest.raises(DataError, match="unpacks to more than 300 times its size"):
        open_source(blank)


@pytest.mark.parametrize("written", [["12.0", "7.0"], [12.0, 7.0], ["12", "7"]])
def test_ids_that_a_table_wrote_as_floats(tmp_path, written):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"id": written, "a": [1.0, 2.0], "b": [0.0, 1.0]}).to_csv(tmp_path / "rows.csv", index=False)
    pandas.DataFrame({"id": [7, 12], "site": ["gut", "skin"]}).to_parquet(tmp_path / "m.parquet")
    source = open_source(tmp_path / "rows.csv", f"{tmp_path}/m.parquet::site", id="id")
    assert source.labels().tolist() == ["skin", "gut"]


def test_ids_with_zeros_in_front_are_not_numbers(tmp_path):
    (tmp_path / "rows.csv").write_text("id,a,b\n0012,1,0\n7.10,0,1\n12,1,1\n")
    (tmp_path / "m.csv").write_text("id,site\n12,gut\n0012,skin\n7.1,palm\n")
    source = open_source(tmp_path / "rows.csv", f"{tmp_path}/m.csv::site", id="id")
    assert source.row_ids.tolist() == ["0012", "12"]
    assert source.labels().tolist() == ["skin", "gut"]
