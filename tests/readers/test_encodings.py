"""Text files in other encodings than UTF-8: every reader of text, with the encoding named and without."""

from __future__ import annotations

import json

import numpy as np
import pytest

from chimap import open_source
from chimap._validation import DataError
from chimap.readers import WordCounts, read_labels
from chimap.readers.io.encodings import text_in

from ..cli.terminal import run_here

ENCODINGS = ["utf-8", "utf-8-sig", "cp1252", "latin-1", "cp1250", "mac-roman", "utf-16", "utf-32"]
BINS, SITES = ["größe", "b"], ["Köln", "Wüste", "Köln"]
COUNTS = np.array([[3.0, 1], [0, 4], [2, 2]])


def rows(folder, encoding):
    lines = [",".join(["id", *BINS, "site"])] + [
        f"s{place}ä,{row[0]:g},{row[1]:g},{site}" for place, (row, site) in enumerate(zip(COUNTS, SITES, strict=True))
    ]
    return saved(folder / "rows.csv", "\n".join(lines), encoding)


def saved(path, text, encoding):
    path.write_bytes(text.encode(encoding))
    return path


def samples_as_columns(folder, encoding):
    lines = ["name\ts0ä\ts1ä\ts2ä", "\t".join(["site", *SITES])]
    lines += ["\t".join([name, *(f"{value:g}" for value in COUNTS[:, place])]) for place, name in enumerate(BINS)]
    return saved(folder / "table.tsv", "\n".join(lines), encoding), "site"


def joined(folder, encoding):
    meta = "\n".join(["id,site", *(f"s{place}ä,{site}" for place, site in enumerate(SITES))])
    return rows(folder, encoding), f"{saved(folder / 'meta.csv', meta, encoding)}::site"


def joined_of_qiime(folder, encoding):
    meta = "\n".join(["sample-id\tsite", *(f"s{place}ä\t{site}" for place, site in enumerate(SITES))])
    return rows(folder, encoding), f"{saved(folder / 'meta.tsv', meta, encoding)}::site"


def beside(ending):
    def made(folder, encoding):
        return rows(folder, encoding), str(saved(folder / f"labels{ending}", "\n".join(SITES), encoding))

    return made


TABLES = {
    "a column": lambda folder, encoding: (rows(folder, encoding), "site"),
    "samples as columns": samples_as_columns,
    "a joined table": joined,
    "metadata of QIIME": joined_of_qiime,
    "lines of labels": beside(".txt"),
    "a file of labels": beside(".csv"),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("table", TABLES)
def test_every_reader_of_text_reads_every_encoding(table, encoding, tmp_path):
    data, labels = TABLES[table](tmp_path, encoding)
    has_mark = encoding in ("utf-8", "utf-8-sig", "utf-16")
    source = open_source(data, labels, encoding=None if has_mark else encoding, columns=BINS)
    assert source.column_names == tuple(BINS)
    assert source.labels().tolist() == SITES
    assert source.row_ids.tolist() == ["s0ä", "s1ä", "s2ä"]
    assert source.column(str(labels)).tolist() == SITES
    np.testing.assert_array_equal(source.take(np.arange(3)), COUNTS)


@pytest.mark.parametrize("table", TABLES)
def test_without_its_name_the_first_line_in_another_encoding_is_named(table, tmp_path):
    data, labels = TABLES[table](tmp_path, "cp1252")
    with pytest.raises(
        DataError, match=r"not text in UTF-8.*as in cp1252, where it is 'ö'.* encoding='cp1252'|, line "
    ):
        open_source(data, labels)


@pytest.mark.parametrize("line", [1, 2, 700])
def test_the_line_is_counted(line, tmp_path):
    lines = ["a,b,kind", *["1,2,x", "3,1,y"] * 400]
    lines[line - 1] = "ä,b,kind" if line == 1 else "2,2,ä"
    path = saved(tmp_path / "rows.csv", "\n".join(lines), "cp1252")
    with pytest.raises(DataError, match=rf"rows\.csv, line {line}: not text in UTF-8 \(byte 0xe4 in position"):
        open_source(path, "kind")
    with pytest.raises(DataError, match=rf"labels\.txt, line {line}: not text in UTF-8"), text_in(None):
        read_labels(saved(tmp_path / "labels.txt", "\n".join(lines), "cp1252"), len(lines))


def test_a_wrong_encoding_names_the_line_too(tmp_path):
    path = saved(tmp_path / "rows.csv", "a,b,kind\n1,2,x\n2,3,\x81\n", "latin-1")
    with pytest.raises(DataError, match=r"rows\.csv, line 3: not text in cp1252 \(.*0x81"):
        open_source(path, "kind", encoding="cp1252")
    for name in ("klingon", "rot13"):
        with pytest.raises(ValueError, match=f"encoding='{name}'|encoding must be"):
            open_source(path, "kind", encoding=name)


def test_texts_and_records_are_read_in_their_encoding(tmp_path):
    (tmp_path / "texts" / "x").mkdir(parents=True)
    for place, text in enumerate(["größe über größe", "größe"]):
        saved(tmp_path / "texts" / "x" / f"{place}.txt", text, "cp1252")
    saved(tmp_path / "rows.csv", "text,kind\ngröße über größe,é\ngröße,x\n", "cp1252")
    saved(tmp_path / "rows.jsonl", "\n".join(json.dumps({"text": "größe"}, ensure_ascii=False) for _ in "ab"), "cp1252")
    for name in ("texts", "rows.csv", "rows.jsonl"):
        source = open_source(tmp_path / name, reading=WordCounts("text", min_count=1), encoding="cp1252")
        assert "größe" in source.column_names
        assert not source.unread


def test_the_command_line_names_the_encoding(tmp_path):
    lines = ["größe,b,kind", *["1,9,ä", "8,1,y"] * 20]
    saved(tmp_path / "rows.csv", "\n".join(lines), "cp1252")
    saved(tmp_path / "new.csv", "\n".join(lines), "utf-8")
    fit = ["fit", "rows.csv", "--labels", "kind", "--kernel", "chi2", "--alpha", "1", "-o", "a.model"]
    refused = run_here(*fit, cwd=tmp_path)
    assert refused.code != 0
    assert "rows.csv, line 1: not text in UTF-8" in refused.err
    assert "--encoding cp1252" in refused.err
    assert run_here(*fit, "--encoding", "cp1252", cwd=tmp_path).code == 0
    assert run_here("predict", "a.model", "new.csv", "-o", "p.csv", cwd=tmp_path).code == 0
    assert "ä" in (tmp_path / "p.csv").read_text(encoding="utf-8")
