"""Laws of sources: the same rows and labels whatever the kind of source and however they are cut."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from chimap._arrays import to_dense
from chimap.data import ArraySource
from chimap.readers import NpzSource, svmlight
from chimap.readers.io import numpy_files as archive

from .ecosystems import ECOSYSTEMS
from .small_sources import COUNTS, LABELS, N_FEATURES, N_ROWS, SOURCES


@pytest.fixture(scope="module", params=[*SOURCES, *ECOSYSTEMS])
def source(request, tmp_path_factory):
    """Each kind of source over COUNTS and LABELS, which no test changes."""
    return (SOURCES | ECOSYSTEMS)[request.param](tmp_path_factory.mktemp("source"))


@pytest.mark.covering(1)
@pytest.mark.parametrize("chunk_rows", [1, 7, N_ROWS - 1, N_ROWS, 10_000])
def test_chunks_give_all_rows_in_order(source, chunk_rows):
    chunks = list(source.chunks(chunk_rows))
    assert [c.start for c in chunks] == list(range(0, N_ROWS, chunk_rows))
    assert all(c.X.shape[0] == min(chunk_rows, N_ROWS - c.start) for c in chunks)
    np.testing.assert_array_equal(np.concatenate([to_dense(c.X) for c in chunks]), COUNTS)
    np.testing.assert_array_equal(np.concatenate([c.y for c in chunks]), LABELS)


def test_what_a_source_says_is_what_it_gives(source):
    chunk = next(source.chunks(50))
    assert (source.n_rows, source.n_features) == (N_ROWS, N_FEATURES)
    assert source.has_labels
    assert source.labels().dtype == np.int64
    np.testing.assert_array_equal(source.labels(), LABELS)
    assert chunk.X.dtype == source.dtype
    assert source.dtype in (np.float32, np.float64)
    assert sp.issparse(chunk.X) == source.is_sparse
    if source.is_sparse:
        assert chunk.X.format == "csr"
        assert chunk.X.has_canonical_format
        assert chunk.X.indices.dtype == chunk.X.indptr.dtype == np.int32
    else:
        assert chunk.X.flags.c_contiguous
        assert source.row_bytes == chunk.X.nbytes / 50


def test_chunks_can_be_read_again_and_side_by_side(source):
    for first, second in zip(source.chunks(30), source.chunks(30), strict=True):
        np.testing.assert_array_equal(to_dense(first.X), to_dense(second.X))


def test_a_chunk_of_no_rows_is_refused(source):
    with pytest.raises(ValueError, match="chunk_rows must be a positive whole number"):
        list(source.chunks(0))


def test_take_gives_the_rows_asked_for(source):
    rows = np.array([0, 5, 6, 7, 100, N_ROWS - 1])
    np.testing.assert_array_equal(to_dense(source.take(rows)), COUNTS[rows])


def test_sample_is_drawn_by_the_seed_alone(source):
    sample = source.sample(20, 0)
    assert sample.shape == (20, N_FEATURES)
    assert sample.dtype == source.dtype
    assert sp.issparse(sample) == source.is_sparse
    np.testing.assert_array_equal(to_dense(sample), to_dense(source.sample(20, 0)))
    assert np.any(to_dense(sample) != to_dense(source.sample(20, 1)))
    np.testing.assert_array_equal(to_dense(source.sample(1000)), COUNTS)


def test_fingerprint_is_plain_and_repeatable(source):
    assert json.loads(json.dumps(source.fingerprint())) == source.fingerprint()


def test_sources_can_be_sent_to_other_processes(source):
    twin = pickle.loads(pickle.dumps(source))
    assert twin.fingerprint() == source.fingerprint()
    np.testing.assert_array_equal(to_dense(next(twin.chunks(N_ROWS)).X), COUNTS)


def test_blocks_of_lines_do_not_show(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK_BYTES", 100)
    for kind in ("svmlight, from 0", "svmlight, gzip", "svmlight, Zstandard"):
        test_chunks_give_all_rows_in_order(SOURCES[kind](tmp_path), 7)


def test_large_archives_are_streamed(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "HELD_BYTES", 0)
    for kind in ("npz", "npz, compressed", "npz, csr parts, compressed"):
        source = SOURCES[kind](tmp_path)
        assert not source._rows._archive._held
        test_chunks_give_all_rows_in_order(source, 7)


def test_arrays_are_not_copied():
    X = np.ones((100, 4))
    assert all(np.shares_memory(chunk.X, X) for chunk in ArraySource(X).chunks(30))


def test_small_integers_become_float32_and_large_ones_float64():
    for dtype, expected in (("bool", "f4"), ("int16", "f4"), ("float16", "f4"), ("int32", "f8"), ("uint64", "f8")):
        assert next(ArraySource(np.ones((2, 2), dtype)).chunks(2)).X.dtype == expected


def test_a_data_frame_is_an_array():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    source = ArraySource(frame, pandas.Series(["x", "y"]))
    np.testing.assert_array_equal(next(source.chunks(2)).X, [[1, 0.5], [2, 1.5]])
    assert source.labels().tolist() == ["x", "y"]


def test_fingerprint_changes_with_rows_labels_and_name_of_the_member(tmp_path):
    X = np.eye(6, dtype=np.float32)
    prints = []
    for Xi, y in ((X, np.zeros(6)), (X, np.ones(6)), (2 * X, np.zeros(6)), (X[:5], np.zeros(5))):
        np.savez(tmp_path / "x.npz", X=Xi, Z=Xi, y=y)
        prints.append(NpzSource(tmp_path / "x.npz").fingerprint())
    prints.append(NpzSource(tmp_path / "x.npz::Z").fingerprint())
    assert len({json.dumps(p, sort_keys=True) for p in prints}) == len(prints)


def test_svmlight_takes_qid_comments_labels_of_any_number_and_rows_without_columns(tmp_path):
    path = tmp_path / "rows.dat"
    path.write_text("# a file\n0.5 qid:3 1:2 3:1 # first\r\n-1\n+2 2:1e-3\n\n \n")
    source = svmlight.SvmlightSource(path, n_features=5)
    np.testing.assert_array_equal(
        next(source.chunks(9)).X.toarray(), [[2, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1e-3, 0, 0, 0]]
    )
    np.testing.assert_array_equal(source.labels(), [0.5, -1, 2])


def test_svmlight_parses_no_block_of_blank_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK_BYTES", 100)
    path = tmp_path / "rows.svm"
    path.write_text("1 1:2\n" + "\n" * 1000)
    parse, parsed = svmlight._parse, []
    monkeypatch.setattr(svmlight, "_parse", lambda block, *rest: parsed.append(block) or parse(block, *rest))
    source = svmlight.SvmlightSource(path)
    assert [chunk.X.toarray().tolist() for chunk in source.chunks(9)] == [[[2.0]]]
    assert len(parsed) == 2  # once when it was opened, once for its rows
