"""What a fit takes in memory, before it begins: the size of its sample, its passes, and whether features are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap._validation import MemoryBudgetError
from chimap.backends.base import RowFeatures
from chimap.data import Source
from chimap.engines import Engine, Job, chunk_rows_within
from chimap.engines.memory import CHUNK_UNIT, KeepingJob
from chimap.engines.rows import KeptRows
from chimap.features.additive.base import keeps_zeros, mapped
from chimap.fit.design import Part, sample_size, sizes_of
from chimap.fit.recipe import Objective, Recipe
from chimap.fit.rows import PreparedRows
from chimap.moments import FoldMoments, RowFolds
from chimap.selection.tried import TRIED_ROWS

_SAMPLE_ERROR = 1.05  # what a sample's density may fall short of that of all rows by
_SPARSE_BELOW = 2 / 3  # density under which float64 CSR, with its columns, is the smaller
_LABEL_BYTES = 8  # a row, which a source holds of all rows


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


def largest_job(recipe: Recipe, source: Source, n_targets: int) -> Job:
    """The largest pass of a fit, with what finding the weights takes."""
    parts = recipe.design.sized(source.n_features)
    job = job_of(source, parts, n_targets, recipe.n_folds, recipe.dtype, normalises=recipe.changes_rows)
    most = recipe.most_principal
    if most is not None:
        job = replace(job, n_features=principal_features(parts, most, recipe.n_folds))
        if isinstance(recipe.n_principal, tuple):  # moments of some coordinates beside those of all
            job = replace(job, solver_bytes=job.moments_bytes + 8 * job.n_features**2)
    return recipe.objective.footprint(job, parts)


@dataclass(frozen=True)
class Plan:
    """What a fit takes, and rows a chunk. job: sizes, with the features of all rows in memory if a loss passes over
    them and the budget allows."""

    job: Job
    chunk_rows: int

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        rows: PreparedRows,
        engine: Engine,
        *,
        may_keep: bool,
        chunk_rows: int | None = None,
    ) -> Plan:
        """Of a recipe within its budget; chunk_rows: of a fit that goes on.

        may_keep: False where a fit that goes on has not made the features of the rows before, and where other
        processes make them. Raises MemoryBudgetError with the smallest budget that would do.
        """
        job = largest_job(recipe, rows.source, rows.codec.n_targets)
        if recipe.objective.needs == "features" and recipe.n_principal is None:
            return cls(job, CHUNK_UNIT)  # planned once the features are there
        asked = recipe.holding.asked
        tries = asked == "holdout" or (asked == "gcv" and rows.folds.n_held == 1)
        job = replace(
            job, n_waiting=engine.n_waiting, n_vectors=max(job.n_vectors, recipe.objective.n_vectors)
        )
        if recipe.objective.needs == "rows" and may_keep:
            keeping = replace(job, n_kept=job.n_rows, kept_itemsize=job.itemsize)
            try:
                return cls(keeping, chunk_rows or chunk_rows_within(keeping, recipe.budget))
            except MemoryBudgetError:
                pass  # they are computed again at each pass
        if tries:
            trying = replace(job, n_tried=min(TRIED_ROWS, rows.source.n_rows))
            try:
                return cls(trying, chunk_rows or chunk_rows_within(trying, recipe.budget))
            except MemoryBudgetError:
                if asked == "holdout":
                    raise
        return cls(job, chunk_rows or chunk_rows_within(job, recipe.budget))


def room_for(job: Job, moments: FoldMoments, folds: RowFolds, dtype: np.dtype) -> KeptRows | None:
    """Memory for the features of all rows, where the plan has it."""
    if not job.n_kept:
        return None
    whole = moments.folds[0]
    counts = np.bincount(folds(0, job.n_kept), minlength=folds.n_folds)
    return KeptRows(counts, whole.n_features, whole.n_targets, dtype)


def keeping_job(
    job: Job, source: Source, sample: Rows, features: RowFeatures, objective: Objective
) -> KeepingJob:
    """What keeping these fitted features of all rows takes, judged by a sample of prepared rows.

    They are CSR where zeros have features of zeros and that takes less: solvers pass over zeros in any case.
    """
    density, is_sparse = 1.0, False
    if keeps_zeros(features):
        mapped_sample = _arrays.to_sparse(mapped(features, _arrays.to_sparse(sample)))
        density = mapped_sample.nnz / max(1, mapped_sample.shape[0] * mapped_sample.shape[1])
        is_sparse = source.is_sparse or density < _SPARSE_BELOW
    if is_sparse and sample.shape[0] < source.n_rows:
        density = min(1.0, _SAMPLE_ERROR * density)
    n_features = features._n_features_out
    n_stored = int((density if is_sparse else 1.0) * source.n_rows * n_features)
    job = replace(job, n_features=n_features, n_vectors=objective.n_vectors)
    return KeepingJob.of(job, n_stored, is_sparse, is_copied=objective.loss == "hinge")
