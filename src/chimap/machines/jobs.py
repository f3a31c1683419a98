"""The memory plan of a fit, made before the first row is mapped.

``planned_job`` computes the sizes of the largest pass (the ``Job``) from the method and the source. A collector
(``fit.collecting``) adds what it would like to keep in memory, and ``PassPlan.of_first`` takes what the budget allows
and derives the rows of a chunk. ``keeping_job`` does the same for solvers that need all features in memory, once the
features are fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import Rows
from chimap._validation import MemoryBudgetError
from chimap.data import Source
from chimap.data.label_kinds import is_text
from chimap.engines import Engine, Job, chunk_rows_within
from chimap.engines.memory import KeepingJob
from chimap.engines.rows import RowsInMemory
from chimap.features.base import FittedFeatures
from chimap.machines.method import Method
from chimap.machines.objective import PenalisedLoss
from chimap.machines.rows import PreparedRows, sample_size
from chimap.moments import FoldMoments, RowFolds
from chimap.recipe.parts import FeatureBlock, sizes_of

_SAMPLE_ERROR = 1.05  # the density of a sample may fall short of the density of all rows by this factor
_SPARSE_BELOW = 2 / 3  # density below which float64 CSR is smaller than float64, column indices included
_LABEL_BYTES = 8  # bytes of the label of a row; a source holds the labels of all rows


def job_of(
    source: Source, parts: list[FeatureBlock], n_targets: int, n_folds: int, dtype: np.dtype, *, normalises: bool
) -> Job:
    """Return the sizes of one pass over the source, from features of these parts to moments of folds.

    The features are fitted on a sample of the source and computed in ``dtype``. ``normalises`` says whether preparation
    makes another copy of the rows.
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
        fitting_bytes=max(part.features.fitting_bytes(n_sampled, mapped, dtype.itemsize) for part in parts),
        seeks=source.can_seek,
    )


def _label_bytes(source: Source) -> int:
    """Return the bytes of the labels of all rows, which a source holds; finding classes sorts a copy of text labels."""
    y = source.labels()
    if y is None or not is_text(y):
        return _LABEL_BYTES * source.n_rows
    return 3 * y.nbytes


def principal_features(parts: list[FeatureBlock], n_principal: int, n_folds: int) -> int:
    """Return the number of features whose moments take as much memory as the larger of two passes.

    The first pass has one matrix for each block, the second one matrix for the components of all blocks. A block of
    fewer features than ``n_principal`` keeps them all. Raise ValueError if no block has as many.
    """
    sizes = [part.footprint.features for part in parts]
    if n_principal > max(sizes):
        subject = "there are" if len(sizes) == 1 else "the largest block has"
        raise InputError(
            Message("{n_principal=!s}, but {} {} features. Give at most that many.", n_principal, subject, max(sizes))
        )
    components = sum(min(n_principal, size) for size in sizes)
    return max(components, int(np.sqrt(np.square(sizes, dtype=float).sum() / n_folds)))


def largest_job(method: Method, source: Source, n_targets: int, n_folds: int | None = None) -> Job:
    """Return the largest pass of a fit, with the memory that finding the weights takes.

    ``n_folds`` have sums of their own; None for those that choose.
    """
    n_folds = method.holding.n_folds if n_folds is None else n_folds
    parts = method.sized(source.n_features)
    job = job_of(source, parts, n_targets, n_folds, method.recipe.dtype, normalises=method.changes_rows)
    most = method.most_principal
    if most is not None:
        job = replace(job, n_features=principal_features(parts, most, n_folds))
        if isinstance(method.n_principal, tuple):  # moments of fewer components, besides those of all
            job = replace(job, solver_bytes=job.moments_bytes + 8 * job.n_features**2)
    return method.objective.footprint(job, parts)


def planned_job(method: Method, rows: PreparedRows, engine: Engine) -> Job:
    """Return the sizes of the largest pass of a fit, with what the engine and the solver hold besides it."""
    job = largest_job(method, rows.source, rows.codec.n_targets, rows.n_folds)
    return replace(job, n_waiting=engine.n_waiting, n_vectors=max(job.n_vectors, method.objective.solver.n_vectors))


@dataclass(frozen=True)
class PassPlan:
    """The sizes of a fit and the rows of a chunk.

    Parameters
    ----------
    job : Job
        Sizes of the largest pass.
    chunk_rows : int
        Rows of a chunk.
    """

    job: Job
    chunk_rows: int

    @classmethod
    def of_first(cls, jobs: Sequence[Job], budget: int, begun: int | None = None) -> PassPlan:
        """Plan the first job, of sizes of which the preferred come first, that fits in the memory budget in bytes.

        A fit that is resumed keeps the rows of a chunk that it has ``begun`` with. Raises MemoryBudgetError if even the
        last job is too large; the message gives the smallest budget that is enough.
        """
        for job in jobs[:-1]:
            try:
                return cls(job, begun or chunk_rows_within(job, budget))
            except MemoryBudgetError:
                continue
        return cls(jobs[-1], begun or chunk_rows_within(jobs[-1], budget))


def room_for(job: Job, moments: FoldMoments, folds: RowFolds, dtype: np.dtype) -> RowsInMemory | None:
    """Return memory for the features of all rows, or None if the plan does not keep them."""
    if not job.n_kept:
        return None
    whole = moments.folds[0]
    counts = np.bincount(folds(0, job.n_kept), minlength=folds.n_folds)
    return RowsInMemory(counts, whole.n_features, whole.n_targets, dtype)


def keeping_job(
    job: Job, source: Source, sample: Rows, features: FittedFeatures, objective: PenalisedLoss, leaves_folds: bool
) -> KeepingJob:
    """Return the memory that keeping these fitted features of all rows takes, estimated on a sample of prepared rows.

    ``leaves_folds``: see ``KeepingJob``.

    The features are stored as CSR if features of zeros are zero and CSR is smaller or the source is sparse. Solvers
    skip zeros in either form.
    """
    density, is_sparse = 1.0, False
    if features.keeps_zeros:
        mapped_sample = _arrays.to_sparse(features.mapped(_arrays.to_sparse(sample)))
        density = mapped_sample.nnz / max(1, mapped_sample.shape[0] * mapped_sample.shape[1])
        is_sparse = source.is_sparse or density < _SPARSE_BELOW
    if is_sparse and sample.shape[0] < source.n_rows:
        density = min(1.0, _SAMPLE_ERROR * density)
    n_features = features._n_features_out
    n_stored = int((density if is_sparse else 1.0) * source.n_rows * n_features)
    job = replace(job, n_features=n_features, n_vectors=objective.solver.n_vectors)
    return KeepingJob.of(job, n_stored, is_sparse, objective.solver.copies_features, leaves_folds)
