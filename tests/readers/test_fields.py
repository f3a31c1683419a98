"""Rows made of a column: words of texts, molecules, counts in JSON; what is learned, what is kept, what is refused."""

import bz2
import csv
import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from chimap import HistogramRegressor
from chimap._validation import DataError
from chimap.model_files.model_file import decode, encode
from chimap.readers import open_source, row_file
from chimap.readers.molecules import AtomPairCounts, MorganCounts, MorganKeys, TorsionCounts
from chimap.readers.named_counts import NamedCounts
from chimap.readers.records import records_of
from chimap.readers.words import WordCounts

TEXTS = [
    'The red fox, "quick" and red',
    "a lazy hen\nsleeps on the red barn",
    "fox and hen; hen and fox",
    "the barn of the lazy fox",
    "nothing",
] * 30
KINDS = ["fox", "hen", "fox", "hen", "none"] * 30
SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN"]
IDS = [f"text {i}" for i in range(len(TEXTS))]


def write_csv(folder, name="texts.csv", delimiter=","):
    with (folder / name).open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["id", "body", "kind"])
        writer.writerows(zip(IDS, TEXTS, KINDS, strict=True))
    return folder / name


def write_parquet(folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"id": IDS, "body": TEXTS, "kind": KINDS}), folder / "texts.parquet", row_group_size=40)
    return folder / "texts.parquet"


def write_jsonl(folder):
    records = [dict(zip(("id", "body", "kind"), r, strict=True)) for r in zip(IDS, TEXTS, KINDS, strict=True)]
    text = "\n".join(map(json.dumps, records))
    (folder / "texts.jsonl.bz2").write_bytes(bz2.compress(text.encode()))
    return folder / "texts.jsonl.bz2"


WRITERS = {
    "CSV": write_csv,
    "TSV": lambda folder: write_csv(folder, "texts.tsv", "\t"),
    "Parquet": write_parquet,
    "JSON lines, bzip2": write_jsonl,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_words_are_those_of_count_vectorizer(kind, tmp_path):
    expected = CountVectorizer(min_df=2)
    X = expected.fit_transform(TEXTS)
    source = WordCounts("body").source(str(WRITERS[kind](tmp_path)), "kind")
    assert source.column_names == tuple(expected.get_feature_names_out())
    assert source.row_ids.tolist() == IDS
    assert source.labels().tolist() == KINDS
    rows = np.concatenate([chunk.X.toarray() for chunk in source.chunks(37)])
    np.testing.assert_array_equal(rows, X.toarray())
    np.testing.assert_array_equal(source.take(np.array([3, 99])).toarray(), X[[3, 99]].toarray())


def test_a_word_that_is_called_as_a_column_set_aside_is_counted(tmp_path):
    rows = [("red fox", "fox"), ("fox and hen", "hen")]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("body", "fox"), *rows])
    source = open_source(
        str(tmp_path / "a.csv"), aside="fox", with_labels=False, reading=WordCounts("body", min_count=1)
    )
    assert source.column_names == ("and", "fox", "hen", "red")


def test_texts_with_several_labels_are_read_as_in_the_fit(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text("text,stars,helpful\n" + "".join(f"{['good', 'bad'][i % 2]} food,{i},{i % 3}\n" for i in range(8)))
    model = HistogramRegressor("chi2", features="additive").fit_source(
        open_source(path, "stars,helpful", reading=WordCounts("text"))
    )
    other = tmp_path / "others.csv"
    other.write_text("text,stars,helpful\ngood good food,1,2\nwine,3,4\n")
    source = open_source(other, "stars,helpful", like=model)
    assert source.task_names == ("stars", "helpful")
    np.testing.assert_array_equal(source.take([0, 1]).toarray(), [[0, 1, 2], [0, 0, 0]])  # of bad, food, good


def test_a_folder_of_texts(tmp_path):
    for number, (text, kind) in enumerate(zip(TEXTS, KINDS, strict=True)):
        (tmp_path / kind).mkdir(exist_ok=True)
        (tmp_path / kind / f"{number:03}.txt").write_text(text)
    source = WordCounts().source(str(tmp_path))
    assert sorted(source.labels().tolist()) == sorted(KINDS)
    assert source.row_ids[0] == "fox/000.txt"
    assert source.n_features == CountVectorizer(min_df=2).fit(TEXTS).get_feature_names_out().size


def test_folders_train_and_test_are_parts_and_no_labels(tmp_path):
    for part, kind in product(("train", "test"), ("pos", "neg")):
        folder = tmp_path / part / kind
        folder.mkdir(parents=True)
        (folder / "1.txt").write_text(f"{kind} film")
    source = open_source(tmp_path, reading=WordCounts(), aside=["split"])
    assert sorted(source.labels().tolist()) == ["neg", "neg", "pos", "pos"]
    assert sorted(source.column("split").tolist()) == ["test", "test", "train", "train"]
    (tmp_path / "readme.txt").write_text("a text of its own")
    assert "train/pos" in open_source(tmp_path, reading=WordCounts()).labels()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "byte 8 is 0"),
        ("renard à côté".encode("latin-1"), "not text in UTF-8: byte 0xe0 in position 7"),
        ("a red fox".encode("utf-16-be"), "byte 0 is 0, as in files that are not text"),
        (b"BM\x46\x00\x00", "byte 3 is 0, as in files that are not text"),
    ],
)
def test_a_folder_of_texts_with_a_file_that_is_none(content, reason, tmp_path):
    (tmp_path / "fox").mkdir()
    (tmp_path / "fox" / "a.txt").write_text("a red fox")
    (tmp_path / "fox" / "b.txt").write_text("\ufeffred fox")  # as editors on Windows begin a text
    assert WordCounts().source(str(tmp_path)).column_names == ("fox", "red")
    (tmp_path / "fox" / "logo.png").write_bytes(content)
    source = WordCounts().source(str(tmp_path))
    assert source.column_names == ("fox", "red")
    assert [*source.unread] == [2]
    assert reason in source.unread[2]
    fitted = open_source(str(tmp_path), reading=WordCounts())
    assert fitted.row_ids.tolist() == ["fox/a.txt", "fox/b.txt"]
    assert fitted.n_left_out == 1
    assert f"1 of 3 records cannot be read: 'fox/logo.png' ({source.unread[2]}). They are left out" in fitted.notes[0]


def test_the_most_frequent_words_are_kept_and_a_vocabulary_is_not_learned_anew():
    source = replace(WordCounts(), most_words=2).source(TEXTS)
    assert source.column_names == ("fox", "the")
    again = source.reading.source(["the the wolf", "wolf"])
    assert again.column_names == source.column_names
    np.testing.assert_array_equal(next(again.chunks(2)).X.toarray(), [[0, 2], [0, 0]])


@pytest.mark.parametrize(
    "reading",
    [
        WordCounts("body", ("a", "b"), 3, 1000, "symbols", (2, 3), "2GiB"),
        WordCounts("body", ("bucket 1", "bucket 7"), n_buckets=8),
        MorganCounts("s", 3, 64, salts="largest", rdkit="2024.03.1", reference=(1, 2)),
        MorganKeys("s", 1, (3, 2**32 - 1)),
        AtomPairCounts("s", 64),
        TorsionCounts("s", 64),
        NamedCounts("c", ("x",)),
    ],
)
def test_readings_are_kept_in_model_files(reading):
    arrays = {}
    assert decode(json.loads(json.dumps(encode(reading, "reading", arrays))), arrays) == reading


BAD_TEXTS = ["red fox", None, "a hen", 3, "red hen", float("nan"), "the fox"]


def test_texts_that_are_missing_are_left_out_and_told():
    source = open_source(BAD_TEXTS, list("abababa"), reading=WordCounts())
    assert (source.n_rows, source.n_left_out) == (4, 3)
    assert source.labels().tolist() == list("aaaa")
    (note,) = source.notes
    assert note == (
        "list: 3 of 7 records cannot be read: record 1 (no text), record 3 (it is 3, expected text), "
        "record 5 (no text). They are left out."
    )
    assert source.places_in_file().tolist() == [0, 2, 4, 6]


def test_data_of_which_most_cannot_be_read_are_refused():
    with pytest.raises(DataError, match=r"4 of 6 records cannot be read: .*, \.\.\.\. Is this the column"):
        open_source(["red fox", None, None, None, None, "red"], list("ababab"), reading=WordCounts())


def test_lines_of_another_encoding_are_left_out(tmp_path):
    lines = ["id,text,kind", "a,a red fox,fox", "b,caf\u00e9 et th\u00e9,hen", 'c,"the red, fox",fox', "d,a hen,hen"]
    encodings = ["ascii", "ascii", "latin-1", "ascii", "ascii"]
    path = tmp_path / "texts.csv"
    path.write_bytes(b"\n".join(line.encode(how) for line, how in zip(lines, encodings, strict=True)))
    source = open_source(path, "kind", reading=WordCounts())
    assert source.row_ids.tolist() == ["a", "c", "d"]
    assert "1 of 4 records cannot be read: 'b' (not text in UTF-8: byte 0xe9 in position 3, as in" in source.notes[0]
    for column, text in (("kind", "x,a red fox,caf\u00e9"), ("id", "caf\u00e9,a red fox,hen")):
        path.write_bytes("\n".join([*lines[:2], text]).encode("latin-1"))
        with pytest.raises(DataError, match=rf"column '{column}', record 1: not text in UTF-8: byte 0xe9"):
            open_source(path, "kind", reading=WordCounts())


def test_records_of_json_in_another_encoding_are_left_out(tmp_path):
    lines = [json.dumps({"text": text, "kind": "x"}) for text in ("a red fox", "red hen")]
    latin = '{"text": "caf\u00e9", "kind": "x"}'.encode("latin-1")
    (tmp_path / "t.jsonl").write_bytes(b"\n".join([lines[0].encode(), latin, lines[1].encode()]))
    source = open_source(tmp_path / "t.jsonl", "kind", reading=WordCounts())
    assert source.n_rows == 2
    assert "1 of 3 records cannot be read: record 1 (not text in UTF-8: byte 0xe9 in position 3" in source.notes[0]
    (tmp_path / "t.jsonl").write_text(lines[0] + '\n{"text": "caf\u00e9 \\ud83d\\ude00 red", "kind": "x"}\n')
    assert open_source(tmp_path / "t.jsonl", "kind", reading=WordCounts()).column_names == ("red",)


def test_ids_and_labels_of_another_encoding_are_refused(tmp_path):
    rows = {"id": ["a", "b"], "x": [1.0, 5.0], "z": [2.0, 1.0]}
    (tmp_path / "m.csv").write_bytes("id,kind\na,caf\u00e9\nb,th\u00e9\n".encode("latin-1"))
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match=r"m\.csv, column 'kind', record 0: not text in UTF-8: byte 0xe9 in position 3"):
        open_source(pandas.DataFrame(rows), f"{tmp_path}/m.csv::kind", id="id")


@pytest.mark.parametrize("heading", ["BODY", "Body", "body"])
def test_the_heading_is_found_whatever_its_case(tmp_path, heading):
    (tmp_path / "t.csv").write_text(f"{heading},kind\na red fox,x\nred hen,z\n")
    source = open_source(tmp_path / "t.csv", "kind", reading=WordCounts("body"))
    assert source.column_names == ("red",)
    assert source.reading.column == heading
    (tmp_path / "new.csv").write_text("bOdY\nred\n")
    assert open_source(tmp_path / "new.csv", reading=source.reading).n_rows == 1


def test_a_heading_that_two_columns_have_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("BODY,Body\na,b\n")
    with pytest.raises(DataError, match=r"'BODY' and 'Body' may both be the column 'body'"):
        open_source(tmp_path / "t.csv", reading=WordCounts("body"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([None, None], "no word is in 2 texts or more, and one of them cannot be read: no text"),
        ([3, 4], "no word is in 2 texts or more, and one of them cannot be read: it is 4, expected text"),
        (["red", "fox"], "no word is in 2 texts or more"),
        ([], "no word is in 2 texts or more"),
    ],
)
def test_texts_that_cannot_be_used(values, message):
    with pytest.raises(DataError, match=message):
        WordCounts().source(values)


def test_columns_that_are_not_there(tmp_path):
    path = str(write_csv(tmp_path))
    with pytest.raises(DataError, match=r"texts\.csv: no column 'text'; there are id, body, kind"):
        WordCounts().source(path)
    np.save(tmp_path / "rows.npy", np.eye(3))
    with pytest.raises(DataError, match=r"rows\.npy: a column was named, but only files that end in \.csv"):
        records_of(str(tmp_path / "rows.npy"))


def test_tables_of_text_that_are_damaged(tmp_path):
    path = write_csv(tmp_path)
    path.write_text(path.read_text() + "text 150,only two\n")
    with pytest.raises(DataError, match=r"line \d+: 2 fields, expected 3 as in the first line"):
        WordCounts("body").source(str(path))
    path.write_text('id,body,kind\na,"cut off')
    with pytest.raises(DataError, match=r"cannot be read .*cut off"):
        WordCounts("body").source(str(path))
    path.write_text("id,body,kind\na,red fox,\na,red fox,u\n")
    with pytest.raises(DataError, match=r"column 'id': the id a comes twice, in rows 0 and 1.* name another column"):
        WordCounts("body").source(str(path), "kind")
    path.write_text("id,body,kind\na,red fox,\nb,red fox,u\n")
    source = open_source(path, "kind", reading=WordCounts("body"))
    assert source.row_ids.tolist() == ["b"]
    assert source.labels().tolist() == ["u"]


def test_a_table_that_changes(tmp_path):
    path = write_csv(tmp_path)
    source = WordCounts("body").source(str(path))
    path.write_text(path.read_text() + "x,red,fox\n")
    with pytest.raises(DataError, match="the file has changed since it was opened"):
        list(source.chunks(50))


def write_counts(folder, *counts, **more):
    records = [{"id": f"r{i}", "counts": c, "label": i % 2, **more} for i, c in enumerate(counts)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder / "rows.jsonl"


def test_counts_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(row_file, "BUCKET_BYTES", 1)
    source = open_source(write_counts(tmp_path, {"b": 2, "a": 1.5}, {}, {"c": 7, "a": 0}))
    assert source.column_names == ("a", "b", "c")
    assert source.row_ids.tolist() == ["r0", "r1", "r2"]
    assert source.labels().tolist() == [0, 1, 0]
    np.testing.assert_array_equal(next(source.chunks(9)).X.toarray(), [[1.5, 2, 0], [0, 0, 0], [0, 0, 7]])
    others = source.reading.source(str(write_counts(tmp_path, {"c": 1, "z": 9})))
    np.testing.assert_array_equal(next(others.chunks(9)).X.toarray(), [[0, 0, 1]])


def test_lists_of_counts_are_dense(tmp_path):
    source = open_source(write_counts(tmp_path, [1, 0, 2], [0, 0, 0]))
    np.testing.assert_array_equal(next(source.chunks(9)).X, [[1, 0, 2], [0, 0, 0]])
    assert not source.is_sparse


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (({"a": 1}, None), "record 1: 'counts' is missing; expected"),
        (({"a": 1}, [1]), r"record 1: 'counts' is \[1\]; expected \{\"name\": 2\}"),
        (({"a": 1}, {"a": "x"}), "record 1: 'a' counts 'x', expected a finite number"),
        (({"a": 1}, {"a": float("nan")}), "record 1: 'a' counts nan, expected a finite number"),
        (({"a": 1}, {"a": True}), "record 1: 'a' counts True, expected a finite number"),
        (([1, 2], [1]), "record 1: a list of 1 counts, expected 2 as in the first"),
        (({}, {}), "no counts in 'counts' of any record"),
    ],
)
def test_counts_that_cannot_be_used(tmp_path, counts, message):
    with pytest.raises(DataError, match=message):
        open_source(write_counts(tmp_path, *counts))


@pytest.mark.parametrize("name", [None, "label", "kind"])
def test_labels_that_the_first_record_lacks(tmp_path, name):
    records = [
        {"counts": {"a": 1}},
        {"counts": {"b": 2}, name or "label": "x"},
        {name or "label": "y", "counts": {"c": 1}},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, records)))
    source = open_source(tmp_path / "rows.jsonl", name)
    assert source.labels().tolist() == ["x", "y"]
    assert source.n_left_out == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"counts": {"a": 1}}\n{"counts": {"a"', r"line 2: not JSON .*cut off"),
        ('{"counts": {"a": 1, "b": 2, "a": 3}}\n', r"line 1: the key 'a' comes twice in one object"),
        ('{"counts": {"a": 1}}\n[1]\n', "line 2: list, expected an object"),
        ('{"count": {"a": 1}}\n', "no record has 'counts'; there are count"),
        ("\n\n", "no records, only blank lines"),
    ],
)
def test_lines_that_cannot_be_read(tmp_path, text, message):
    (tmp_path / "rows.jsonl").write_text(text)
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "rows.jsonl")


def test_semicolons_and_padded_headings(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text('id; review ;stars\na;"good; fast";5\nb;slow, bad;1\nc;good, solid;5\n', "utf-8")
    source = open_source(path, "stars", reading=WordCounts("review"))
    assert source.column_names == ("good",)
    assert source.labels().tolist() == [5, 1, 5]
    assert source.row_ids.tolist() == ["a", "b", "c"]
    (tmp_path / "utf16.csv").write_bytes("\ufeffid;review\na;gut gut\nb;gut schlecht\n".encode("utf-16-le"))
    assert open_source(tmp_path / "utf16.csv", reading=WordCounts("review")).column_names == ("gut",)
