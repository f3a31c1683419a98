"""What a fit takes in memory, before it begins: the size of its sample, its passes, and whether features are kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chimap import _arrays
from chimap._validation import MemoryBudgetError
from chimap.data import Source
from chimap.engines import Job, chunk_rows_within
from chimap.engines.rows import KeptRows
from chimap.fit.feature_settings import Part, sizes_of
from chimap.fit.smooth import N_VECTORS
from chimap.moments import FoldMoments, fold_of_rows

_SAMPLE_ROWS, _SAMPLE_BYTES = 4096, 2**26
_LABEL_BYTES = 8  # a row, which a source holds of all rows


def sample_rows(n_bins: int) -> int:
    """How many rows of so many bins maps, gamma and the provisional mean are fitted on."""
    return min(_SAMPLE_ROWS, max(256, _SAMPLE_BYTES // max(1, 4 * n_bins)))


def sample_size(source: Source, parts: list[Part]) -> int:
    """Rows of the source that the features of these parts are fitted on."""
    size = max(sample_rows(source.n_features), sizes_of(parts).sample_rows)
    return min(size, source.n_rows)


def job_of(
    source: Source, parts: list[Part], n_targets: int, n_folds: int, dtype: np.dtype, *, normalises: bool
) -> Job:
    """One pass over the source, from features of these parts, fitted on a sample of it, to moments of folds.

    dtype: of the features. normalises: whether rows are divided by their sums.
    """
    sizes, n_sampled = sizes_of(parts), sample_size(source, parts)
    mapped = source.row_bytes * _arrays.conversion(source.is_sparse, source.dtype, dtype)
    return Job(
        sizes.features,
        n_targets,
        n_folds,
        sizes.mapped,
        sizes.frequencies,
        source.row_bytes,
        mapped,
        dtype.itemsize,
        source.held_bytes + _label_bytes(source),
        source.from_files,
        n_rows=source.n_rows,
        n_copies=normalises + (np.dtype(source.dtype) != dtype),
        n_sampled=n_sampled,
        fitting_bytes=max(part.fitting_bytes(n_sampled, mapped, dtype.itemsize) for part in parts),
        seeks=source.can_seek,
    )


def _label_bytes(source: Source) -> int:
    """Of the labels of all rows, which a source holds; text is sorted once, for the classes, beside them."""
    y = source.labels()
    if y is None or y.dtype.kind not in "US":
        return _LABEL_BYTES * source.n_rows
    return 3 * y.nbytes


def principal_features(parts: list[Part], n_principal: int, n_folds: int) -> int:
    """Features of the larger of two passes: one matrix a block of the first, all components' in the second.

    A block of fewer features keeps them all. Raises ValueError if none has so many.
    """
    each = [part.footprint.features for part in parts]
    if n_principal > max(each):
        of = "there are" if len(each) == 1 else "the largest block has"
        raise ValueError(f"n_principal={n_principal}, but {of} {max(each)} features. Give at most so many.")
    components = sum(min(n_principal, own) for own in each)
    return max(components, int(np.sqrt(np.square(each, dtype=float).sum() / n_folds)))


def plan(job: Job, budget: int, *, is_ridge: bool, may_keep: bool) -> tuple[Job, int]:
    """What the fit needs, and rows a chunk: with the features of all rows in memory if a loss is to pass over them
    and the budget allows.

    may_keep: False where a fit that goes on has not made the features of the rows before, and where other processes
    make them. Raises MemoryBudgetError with the smallest budget that would do.
    """
    if is_ridge:
        return job, chunk_rows_within(job, budget)
    job = replace(job, n_vectors=N_VECTORS)
    if not may_keep:
        return job, chunk_rows_within(job, budget)
    keeping = replace(job, n_kept=job.n_rows, kept_itemsize=job.itemsize)
    try:
        return keeping, chunk_rows_within(keeping, budget)
    except MemoryBudgetError:
        return job, chunk_rows_within(job, budget)


def room_for(job: Job, moments: FoldMoments, seed: int, dtype: np.dtype) -> KeptRows | None:
    """Memory for the features of all rows, where the plan has it."""
    if not job.n_kept:
        return None
    n_folds, whole = len(moments.folds), moments.folds[0]
    counts = np.bincount(fold_of_rows(0, job.n_kept, n_folds, seed), minlength=n_folds)
    return KeptRows(counts, whole.n_features, whole.n_targets, dtype)
