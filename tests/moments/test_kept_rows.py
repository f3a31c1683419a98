"""Memory for tiles of kernel values; the values themselves are tested with exact features."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from chimap.moments.kept_rows import Scratch


def test_memory_of_a_tile_is_used_again_by_its_thread_alone():
    scratch = Scratch()
    first = scratch.values(3, 5, np.dtype("float64"))
    first[:] = 1
    assert first.flags.c_contiguous
    smaller = scratch.values(4, 7, np.dtype("float32"))
    assert np.shares_memory(first, smaller)
    assert (smaller.shape, smaller.dtype) == ((4, 7), np.dtype("float32"))
    larger = scratch.values(9, 9, np.dtype("float64"))
    assert not np.shares_memory(first, larger)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(scratch.values, 9, 9, np.dtype("float64")).result()
    assert not np.shares_memory(larger, other)
