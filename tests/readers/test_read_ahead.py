"""Reading ahead: the same chunks, one ahead, errors in their place, no thread left."""

import gc
import threading
import time

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.data.source import chunks_ahead
from chimap.engines.memory import Job
from chimap.readers import NpySource

from .small_sources import COUNTS, LABELS, npy


class Watched(ArraySource):
    """Notes which chunks have been read, on which thread, and whether it was closed; fails at a chunk if asked."""

    from_files = True

    def __init__(self, fails_at=None):
        super().__init__(COUNTS, LABELS)
        self.read, self.threads, self.is_closed, self.fails_at = [], set(), False, fails_at

    def chunks(self, chunk_rows):
        try:
            for number, chunk in enumerate(super().chunks(chunk_rows)):
                self.threads.add(threading.current_thread())
                if number == self.fails_at:
                    raise DataError(f"chunk {number} is broken")
                self.read.append(number)
                yield chunk
        finally:
            self.is_closed = True


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("chimap-read")]


def wait_for(condition):
    for _ in range(1000):
        if condition():
            return True
        time.sleep(0.002)
    return False


def test_chunks_are_those_of_the_source(tmp_path):
    source = npy(tmp_path, COUNTS)
    for ahead, plain in zip(chunks_ahead(source, 10), source.chunks(10), strict=True):
        np.testing.assert_array_equal(ahead.X, plain.X)
        np.testing.assert_array_equal(ahead.y, plain.y)
        assert ahead.start == plain.start
    assert not readers()


def test_exactly_one_chunk_is_ahead():
    source = Watched()
    for number, _ in enumerate(chunks_ahead(source, 10)):
        last = min(number + 1, 13)
        assert wait_for(lambda last=last: source.read[-1] == last)
        time.sleep(0.002)
        assert source.read == list(range(last + 1))
    assert threading.current_thread() not in source.threads
    assert source.is_closed
    assert not readers()


def test_an_error_comes_in_place_of_its_chunk():
    source, seen = Watched(fails_at=3), []
    with pytest.raises(DataError, match="chunk 3 is broken"):
        seen.extend(chunk.start for chunk in chunks_ahead(source, 10))
    assert seen == [0, 10, 20]
    assert not readers()


def test_an_early_stop_ends_the_thread_and_closes_the_files():
    source = Watched()
    for chunk in chunks_ahead(source, 10):
        if chunk.start == 30:
            break
    gc.collect()
    assert source.is_closed
    assert not readers()
    source, chunks = Watched(), None
    chunks = chunks_ahead(source, 10)
    next(chunks)
    with pytest.raises(KeyboardInterrupt):
        chunks.throw(KeyboardInterrupt)
    assert source.is_closed
    assert not readers()


def test_only_what_reads_files_is_read_ahead():
    source = Watched()
    source.from_files = False
    next(chunks_ahead(source, 10))
    assert source.threads == {threading.current_thread()}


def test_the_chunk_ahead_and_what_is_held_count_in_the_budget():
    def job(**more):
        return Job(64, 1, 1, 0, 0, 1000.0, 1000.0, 4, **more)

    assert job(reads_ahead=True).pass_bytes(2048) - job().pass_bytes(2048) == 1000 * 2048
    assert job(held_bytes=5e6).pass_bytes(2048) - job().pass_bytes(2048) == 5_000_000
    assert job(held_bytes=5e6).peak_bytes(1024) >= job().peak_bytes(1024) + 5_000_000


def test_a_fit_that_reads_ahead_is_the_fit_from_memory(tmp_path):
    np.save(tmp_path / "rows.npy", COUNTS.astype(np.float32))
    models = [
        HistogramClassifier("chi2", random_state=0).fit_source(source)
        for source in (NpySource(tmp_path / "rows.npy", LABELS), ArraySource(COUNTS.astype(np.float32), LABELS))
    ]
    np.testing.assert_array_equal(models[0].feature_coef_, models[1].feature_coef_)
