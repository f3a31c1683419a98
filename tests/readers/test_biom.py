"""BIOM: versions, and what is wrong with tables."""

import json
import pickle

import numpy as np
import pytest

from chimap._arrays import to_dense
from chimap._validation import DataError, MemoryBudgetError
from chimap.estimators import HistogramClassifier
from chimap.readers import CsvSource, open_source

from .ecosystems import IDS, biom_hdf5, biom_json, biom_table, biom_text
from .small_sources import COUNTS, LABELS

h5py = pytest.importorskip("h5py")
biom = pytest.importorskip("biom")


def edit(path, change):
    with h5py.File(path, "a") as file:
        change(file)


def no_matrices(file):
    del file["sample/matrix"]
    del file["observation/matrix"]


def same_samples(file):
    file["sample/ids"][1] = file["sample/ids"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.attrs.modify("format-version", (3, 0)), r"format-version 3\.0; expected 2"),
        (lambda file: file.attrs.__delitem__("format-version"), "format-version is missing; expected 2"),
        (lambda file: file.__delitem__("sample/ids"), "no sample/ids; there are observation, sample"),
        (no_matrices, "neither sample/matrix nor observation/matrix"),
        (same_samples, "ids of rows: 'row 0' comes twice, at 0 and 1.* Rename one of the samples"),
    ],
)
def test_what_is_wrong_in_version_2(tmp_path, change, message):
    biom_hdf5(tmp_path)
    edit(tmp_path / "table.biom", change)
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "table.biom")


def test_a_table_by_observations_alone(tmp_path):
    biom_hdf5(tmp_path)
    edit(tmp_path / "table.biom", lambda file: file.__delitem__("sample/matrix"))
    source = open_source(tmp_path / "table.biom", LABELS)
    expected = biom_table().matrix_data.T.toarray()
    assert (next(source.chunks(200)).X.toarray() == expected).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "Biological Observation Matrix 9.0"}, r"Matrix 9\.0; expected version 1"),
        ({"shape": [12, 99]}, r"shape \[12, 99\], but 12 rows and 137 columns"),
        ({"data": [[1, 2]]}, "'data' does not fit the shape"),
        ({"data": [[99, 2, 1]]}, "'data' does not fit the shape"),
        ({"data": [[0.5, 2, 1]]}, "an index is not a whole number"),
        ({"data": [[0, 2, 1], [0, None, 1]]}, "an index is not a whole number"),
        ({"data": [[0, 2, 1], [0, -1, 1]]}, r"entry 1: the indices 0 and -1"),
        ({"data": [[0, 2, "x"]]}, "'data' does not fit the shape .*could not convert"),
        ({"data": [[0, 2], [0, 2, 1]]}, "'data' does not fit the shape"),
        ({"data": 5}, r"does not fit the shape \[12, 137\] \(lists of shape \(\)"),
        ({"matrix_type": "dense", "data": [[1] * 137]}, r"lists of shape \(1, 137\)"),
        ({"matrix_type": "dense", "data": [[1] * 99] * 12}, r"lists of shape \(12, 99\)"),
        ({"shape": None}, "shape None, but 12 rows and 137 columns"),
        ({"rows": [{"name": "a"}] * 12}, r"rows, entry 0: \{'name': 'a'\}; expected an object with an 'id'"),
        ({"columns": [1]}, "columns, entry 0: 1; expected an object with an 'id'"),
        ({"matrix_type": "odd"}, "matrix_type 'odd'; expected sparse or dense"),
    ],
)
def test_what_is_wrong_in_version_1(tmp_path, change, message):
    biom_json(tmp_path)
    path = tmp_path / "table.biom"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=message):
        open_source(path)


def test_json_that_is_cut_off_or_lacks_a_key(tmp_path):
    biom_json(tmp_path)
    path = tmp_path / "table.biom"
    whole = path.read_text()
    path.write_text(whole[:-50])
    with pytest.raises(DataError, match=r"table\.biom: not JSON .*cut off"):
        open_source(path)
    path.write_text(json.dumps({key: value for key, value in json.loads(whole).items() if key != "rows"}))
    with pytest.raises(DataError, match="no rows; there are columns, data, date"):
        open_source(path)
    path.write_text("PK\x03\x04")
    with pytest.raises(DataError, match="which is not BIOM: neither HDF5"):
        open_source(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + "x", r"not JSON \(Extra data: line 1"),
        (lambda text: '{"data": [], ' + text[1:], r"the key 'data' comes twice"),
        (lambda text: text.replace("[[", "[[[", 1), "'data' does not fit|not JSON"),
        (lambda text: text.replace("],[", "],,[", 1), "not JSON"),
        (lambda text: "{" + "[" * 10**5, "not JSON"),
        (lambda text: text[: text.index("[[") + 30], "not JSON .*cut off"),
    ],
)
def test_json_with_a_fault(tmp_path, change, message):
    biom_json(tmp_path)
    path = tmp_path / "table.biom"
    path.write_text(change(path.read_text()))
    with pytest.raises(DataError, match=message):
        open_source(path)


@pytest.mark.parametrize("layout", [{}, {"indent": 1}, {"separators": (",", ":")}])
@pytest.mark.parametrize("dense", [False, True])
def test_the_layout_of_json_does_not_show(tmp_path, layout, dense):
    expected = biom_json(tmp_path, dense=dense)
    path = tmp_path / "table.biom"
    table = json.loads(path.read_text())
    table["rows"][0]["metadata"] = {"taxonomy": ["k__]]", {"data": [[1]]}, "\u00e9"]}
    last_first = dict(reversed(table.items()))
    path.write_text(json.dumps(last_first, **layout))
    source = open_source(path, LABELS)
    assert source.column_names == expected.column_names
    assert source.row_ids.tolist() == IDS
    np.testing.assert_array_equal(next(source.chunks(200)).X.toarray(), COUNTS)


def test_json_that_takes_much_memory_is_refused(tmp_path, monkeypatch):
    source = biom_json(tmp_path)
    assert source.held_bytes == 12 * (tmp_path / "table.biom").stat().st_size
    model = HistogramClassifier("chi2", memory=20_000)
    with pytest.raises(MemoryBudgetError, match="memory"):
        model.fit_source(source)
    monkeypatch.setattr("chimap.readers.biom._LARGEST_JSON", 1000)
    with pytest.raises(DataError, match=r"MiB of JSON.* biom convert -i .*table\.biom -o table\.biom --to-hdf5"):
        open_source(tmp_path / "table.biom")


def test_a_copy_in_another_process_reads_the_file(tmp_path):
    source = pickle.loads(pickle.dumps(biom_json(tmp_path)))
    np.testing.assert_array_equal(next(source.chunks(200)).X.toarray(), COUNTS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-30], r"line 14: \d+ fields, expected 138"),
        (lambda text: text.replace("\t0.0", "\tx", 1), r"line \d+ \('bin \d'\), field \d+ .*: 'x', expected a number"),
        (
            lambda text: text.replace("bin 1\t", "bin 0\t"),
            r"line 4: 'bin 0' is the name of line 3 too.* rename one, or add the two lines up",
        ),
        (
            lambda text: text.replace("row 1\t", "row 0\t", 1),
            "first line: 'row 0' comes twice.* Rename one of the samples",
        ),
        (lambda text: "".join(text.splitlines(True)[:2]), "no line of numbers below its heading"),
        (lambda text: text.splitlines(True)[0] + "a\t1\n", "no heading that begins with '#OTU ID'"),
    ],
)
def test_what_is_wrong_in_text(tmp_path, change, message):
    biom_text(tmp_path)
    path = tmp_path / "table.tsv"
    path.write_text(change(path.read_text()))
    with pytest.raises(DataError, match=message):
        open_source(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: "# Full OTU Counts\n#ASV ID" + text[text.index("\t") :] + "\n# the end\n",
    ],
)
def test_text_with_a_byte_order_mark_or_with_comments(tmp_path, change):
    biom_text(tmp_path)
    path = tmp_path / "table.tsv"
    path.write_text(change(path.read_text()), "utf-8")
    source = open_source(path)
    assert (source.row_ids[0], source.column_names[0]) == ("row 0", "bin 0")
    expected = biom_table().matrix_data.T.toarray()
    np.testing.assert_array_equal(to_dense(next(source.chunks(200)).X), expected)


def test_a_sample_is_not_taken_for_metadata(tmp_path):
    biom_text(tmp_path)
    path = tmp_path / "table.tsv"
    lines = path.read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("bin 0"))
    lines[place] = lines[place].rpartition("\t")[0] + "\tx"
    path.write_text("\n".join(lines))
    with pytest.raises(
        DataError, match=rf"line {place + 1} \('bin 0'\), field 138 \('row 136'\): 'x', expected a number"
    ):
        open_source(path)
    path.write_bytes(b"#OTU ID\ta\tb\nn\xe9\t1\t2\n")
    with pytest.raises(DataError, match=r"table\.tsv, line 2: not text in UTF-8"):
        open_source(path)


def test_other_tables_of_text_stay_what_they_are(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "rows.tsv").write_text("a\tb\n1\t2\n3\t4\n")
    assert isinstance(open_source(tmp_path / "rows.tsv"), CsvSource)


def test_an_estimator_takes_the_object():
    model = HistogramClassifier("chi2", random_state=0).fit(biom_table(), LABELS)
    assert model.predict(biom_table()).shape == LABELS.shape


def test_labels_of_samples_are_in_a_table_beside_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where nothing is called site, as the pages are once they are built
    biom_hdf5(tmp_path)
    lines = "\n".join(f"{name}\t{label}" for name, label in zip(IDS[::-1], LABELS[::-1], strict=True))
    (tmp_path / "metadata.tsv").write_text(f"#SampleID\tsite\n{lines}\n")
    source = open_source(tmp_path / "table.biom", f"{tmp_path}/metadata.tsv::site")
    np.testing.assert_array_equal(source.labels(), LABELS)
    with pytest.raises(DataError, match=r"no column and no file 'site'; it holds only counts.* metadata\.tsv::site\."):
        open_source(tmp_path / "table.biom", "site")
    with pytest.raises(DataError, match=r"line 1: 2 columns.* Name the column as .*metadata\.tsv::COLUMN"):
        open_source(tmp_path / "table.biom", f"{tmp_path}/metadata.tsv")
    (tmp_path / "one.tsv").write_text("site\n" + "\n".join(map(str, LABELS)))
    np.testing.assert_array_equal(open_source(tmp_path / "table.biom", f"{tmp_path}/one.tsv").labels(), LABELS)


def test_labels_are_metadata_of_the_samples_by_name():
    table = biom_table()
    sites = {name: {"body_site": "skin" if label > 0 else "gut"} for name, label in zip(IDS, LABELS, strict=True)}
    table.add_metadata({**sites, IDS[3]: {"day": 4}})
    source = open_source(table, "body_site")
    assert source.n_rows == LABELS.size - 1
    known = np.arange(LABELS.size) != 3
    np.testing.assert_array_equal(source.labels(), np.where(LABELS > 0, "skin", "gut")[known])
    model = HistogramClassifier("chi2", random_state=0).fit(table, "body_site")
    assert model.classes_.tolist() == ["gut", "skin"]
    message = r"no 'site' in the metadata of its samples; there are body_site, day\..*metadata\.tsv::site"
    with pytest.raises(DataError, match=message):
        HistogramClassifier("chi2").fit(table, "site")
    with pytest.raises(DataError, match="no 'body_site' in the metadata of its samples; there are none"):
        open_source(biom_table(), "body_site")


def test_labels_in_another_order_than_the_samples():
    pandas = pytest.importorskip("pandas")
    labels = pandas.Series(LABELS, index=IDS)
    model = HistogramClassifier("chi2", random_state=0).fit(biom_table(), labels)
    for use in (model.fit, model.score):
        with pytest.raises(DataError, match=r"row 0 is 'row 0' in the rows.*y\.loc\[table\.ids\(\)\]"):
            use(biom_table(), labels.iloc[::-1])


SITES = ["gut", "skin", "gut", None]
AGES = [3, 4, 5, 60]


def with_metadata(folder, kind):
    """A table whose samples have metadata: text with a gap, numbers, booleans, and lists, which are no labels."""
    metadata = [
        {"site": site, "age": age, "sick": age > 4, "lineage": ["a", "b"]}
        for site, age in zip(SITES, AGES, strict=True)
    ]
    counts = np.arange(12.0).reshape(3, 4)
    table = biom.Table(counts, ["o1", "o2", "o3"], ["a", "b", "c", "d"], sample_metadata=metadata)
    path = folder / "table.biom"
    if kind == "HDF5":
        with h5py.File(path, "w") as file:
            table.to_hdf5(file, "a test")
    elif kind == "JSON":
        path.write_text(table.to_json("a test"))
    return table if kind == "object" else path


@pytest.mark.parametrize("kind", ["HDF5", "JSON", "object"])
def test_metadata_of_the_samples_are_labels_and_groups(tmp_path, kind):
    table = with_metadata(tmp_path, kind)
    source = open_source(table, "site", aside="age")
    assert source.labels().tolist() == ["gut", "skin", "gut"]
    assert source.n_left_out == 1
    assert source.column("age").tolist() == [3, 4, 5]
    assert open_source(table, "sick").labels().tolist() == [False, False, True, True]
    assert open_source(table).labels() is None
    assert open_source(table).n_features == 3
    with pytest.raises(DataError, match=r"no .*'weight'.* age, sick, site"):
        open_source(table, "weight")


@pytest.mark.parametrize("kind", ["HDF5", "JSON"])
def test_metadata_are_listed_and_several_are_tasks(tmp_path, kind):
    path = with_metadata(tmp_path, kind)
    assert open_source(path).metadata == ("age", "sick", "site")
    assert open_source(path, "age,sick").labels().tolist() == [[3, 0], [4, 0], [5, 1], [60, 1]]
