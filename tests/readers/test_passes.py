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

ROWS = np.random.default_rng(0).poisson(3.0, (90, 6)) * np.array([1.0, 1.0, 300.0, 0.5, 0.1, -1.0])
SITES = np.where(np.arange(90) % 2, "fish", "tree")


class Counted(io.BytesIO):
    """Bytes that note, when they are closed, which share of them was read."""

    def __init__(self, content, shares):
        super().__init__(content)
        self.shares = shares

    def close(self):
        if not self.closed:
            self.shares.append(self.tell() / len(self.getvalue()))
        super().close()


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write a table of many blocks; return its path, and the shares of it that were read."""
    monkeypatch.setattr(csv, "BLOCK_BYTES", 256)
    path = tmp_path / "rows.csv"
    lines = [f"s{i},{site}," + ",".join(map(str, row)) for i, (site, row) in enumerate(zip(SITES, ROWS, strict=True))]
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


def test_a_fit_that_chooses_alpha_reads_the_file_twice(table):
    path, shares = table
    HistogramClassifier("linear", random_state=0).fit_source(open_source(path, "site"))
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
