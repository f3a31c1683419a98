"""How often a table as text is read: once to open it, once for the rows, and then not again."""

from __future__ import annotations

import io
import pickle
from collections import namedtuple
from contextlib import contextmanager

import numpy as np
import pytest

from chimap import HistogramClassifier, open_source
from chimap.readers import csv, row_file
from chimap.readers.io.files import DataFile

from ..cli.terminal import run_here

ROWS = np.random.default_rng(0).poisson(3.0, (90, 6)) * np.array([1.0, 1.0, 300.0, 0.5, 0.1, -1.0])
PADDING = "." * 30_000  # so that looks at some bytes are a small share of the file
SITES = np.where(np.arange(90) % 2, "fish", "tree")


class Counted(io.BytesIO):
    """Bytes that note, when they are closed, which share of them was read."""

    def __init__(self, content, shares):
        super().__init__(content)
        self.shares, self.n_read, self.start = shares, 0, 0

    def seek(self, *place):
        self.n_read += self.tell() - self.start
        self.start = super().seek(*place)
        return self.start

    def close(self):
        if not self.closed:
            self.shares.append((self.n_read + self.tell() - self.start) / len(self.getvalue()))
        super().close()


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write a table of many blocks; return its path, and the shares of it that were read."""
    monkeypatch.setattr(csv, "BLOCK_BYTES", 256)
    path = tmp_path / "rows.csv"
    lines = [
        f"s{i}{PADDING},{site}," + ",".join(map(str, row))
        for i, (site, row) in enumerate(zip(SITES, ROWS, strict=True))
    ]
    path.write_text("\n".join(["id,site,a,b,c,d,e,f", *lines, ""]))
    shares, opened = [], DataFile.open

    @contextmanager
    def counted(self):
        with opened(self) as file:
            yield Counted(file.read(), shares)

    monkeypatch.setattr(csv, "_LOOK_LINES", 5)
    monkeypatch.setattr(DataFile, "open", counted)
    return path, shares


def n_reads(shares):
    """How often the whole file was read; looks at its first lines do not count."""
    return sum(share > 0.5 for share in shares)


def fit(path, **settings):
    HistogramClassifier(random_state=0, **settings).fit_source(open_source(path, "site"))


def fit_by_command(path):
    model = path.with_suffix(".model")
    result = run_here("fit", path, "--labels", "site", "--kernel", "linear", "-o", model, cwd=path.parent)
    assert result.code == 0, result.err


FITS = {"chooses alpha": lambda path: fit(path, kernel="linear"), "command": fit_by_command, "default": fit}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_reads_the_file_twice(table, name):
    path, shares = table
    FITS[name](path)
    assert n_reads(shares) == 2


@pytest.mark.parametrize("labels", [None, "site"])
def test_a_table_of_samples_as_columns_is_read_twice(table, labels):
    path, shares = table
    path = path.with_suffix(".tsv")
    lines = [[f"otu{i}{PADDING}", *map(str, row)] for i, row in enumerate(np.abs(ROWS))]
    metadata = [] if labels is None else [["site", *SITES[:6]]]
    path.write_text("\n".join(map("\t".join, [["#OTU ID", *"abcdef"], *metadata, *lines])))
    source = open_source(path, labels)
    assert source.take(np.arange(6)).shape == (6, 90)
    assert n_reads(shares) == 2


def test_each_pass_has_the_same_rows(table):
    path, shares = table
    source = open_source(path, "site")
    next(iter(source.chunks(7)))  # a look at some rows
    for chunk_rows in (40, 7, 90):
        chunks = [chunk.X for chunk in source.chunks(chunk_rows)]
        np.testing.assert_array_equal(np.concatenate(chunks), ROWS)
        assert {chunk.dtype for chunk in chunks} == {np.dtype(np.float64)}
    assert n_reads(shares) == 2
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).take(np.arange(90)), ROWS)
    assert n_reads(shares) == 3


def test_without_room_for_the_rows_each_pass_reads_the_file(table, monkeypatch):
    path, shares = table
    monkeypatch.setattr(row_file.shutil, "disk_usage", lambda folder: namedtuple("Usage", "free")(2000))
    source = open_source(path, "site")
    for _ in range(2):
        np.testing.assert_array_equal(source.take(np.arange(90)), ROWS)
    assert n_reads(shares) >= 3


@pytest.mark.parametrize("values", [[0.0, -0.0], [np.inf, -np.inf], [2.0**16, 255.0], [0.1, 1e300], [1e-46, 3.0]])
def test_numbers_are_kept_to_the_last_bit(values):
    file, block = row_file.BlockFile(), np.array([values])
    assert file.add(block)
    (kept,) = file.blocks(np.dtype(np.float64))
    np.testing.assert_array_equal(kept.view(np.uint64), block.view(np.uint64))
