"""Rows as vectors whose products are the kernel about its mean: what tests and pictures in the space of a kernel need.

Two rows a and b have the squared distance D^2(a, b) = K(a, a) + K(b, b) - 2 K(a, b). With n rows, their products about
the mean are G = -1/2 J D^2 J, J = I - 11'/n (Gower). A kernel is positive semi-definite, and so is G: it has a factor
G = Z Z' with real rows Z (n, r), and none of the negative eigenvalues that other distances, such as Bray and Curtis's,
may have. Every sum over pairs of rows is a sum over Z: that of squares along orthonormal columns Q is |Q'Z|^2.

Few rows have the exact factor. Many have features of landmarks (Nystrom), computed chunk by chunk.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack, solve_triangular

from chimap import _arrays
from chimap._memory import budget_for, parse_memory, room_in, whole_mebibytes
from chimap._messages import Message
from chimap._progress import Progress
from chimap._types import JSON, MatrixLike, Rows
from chimap._validation import DataError, MemoryBudgetError, check_choice, check_positive
from chimap.data import Source
from chimap.data.source import choose_rows, chunks_ahead
from chimap.data.views import ChosenRows
from chimap.features.landmarks import NystroemFeatures
from chimap.features.landmarks.choosing import sample_rows
from chimap.kernels import Kernel, as_kernel
from chimap.models.model import Model
from chimap.models.schema import RowSchema
from chimap.normalizations import CATALOGUE
from chimap.readers import open_source
from chimap.recipe.parts import FeatureBlock
from chimap.recipe.preparation import Preparation
from chimap.selection.shuffles import Shuffles

EXACT_ROWS = 4096  # rows that have the exact factor by default: its matrices take 400 MB, its operations seconds
LANDMARKS = 512  # of more rows, by default
_FEWEST_LANDMARKS = 16
_CHUNK_ROWS = 2048
_SHARE = 0.6  # of the memory that is left for the coordinates by landmarks; the rest is for chunks and permuted columns
_NORMALISATIONS = tuple(name for name, each in CATALOGUE.items() if not each.needs_labels)


@dataclass(frozen=True, eq=False)
class RowsInKernel:
    """The rows of a source as a kernel takes them, and the kernel.

    Parameters
    ----------
    source : Source
        The rows.
    kernel : Kernel
        The kernel, its parameters set to numbers.
    preparation : Preparation
        How rows are checked and normalised.
    described : str
        The kernel and the normalisation in words.
    schema : RowSchema
        The columns of the rows.
    """

    source: Source
    kernel: Kernel
    preparation: Preparation
    described: str
    schema: RowSchema

    @classmethod
    def of(
        cls,
        source: Source,
        model: Model | None,
        kernel: str | Kernel,
        normalize: str | None,
        gamma: float | str,
        seed: int,
    ) -> RowsInKernel:
        """Return rows with the kernel and normalisation of a model, or those named, which a sample of rows is for.

        Raises
        ------
        DataError
            If the model takes covariates.
        """
        if model is not None:
            if model.schema.covariates is not None:
                raise DataError("the model takes covariates beside the counts: fit one of the counts alone.")
            named = "no normalisation" if model.normalization is None else model.normalization.name
            about = f"{model.describe()['kernel']} of the model, {named}"
            return cls(model.schema.rows(source), model.kernel, model.preparation, about, model.schema)
        check_choice(normalize, "normalize", (None, *_NORMALISATIONS))
        exact, bins = as_kernel(kernel, gamma), np.arange(source.n_features)
        fitted = None if normalize is None else CATALOGUE[normalize].fitted(source)
        parts = [FeatureBlock("all", bins, NystroemFeatures(exact))]
        preparation = Preparation(parts, np.dtype(np.float64), fitted, columns=source.column_names)
        about = f"{exact.name}, {normalize or 'no normalisation'}"
        rows = cls(source, exact, preparation, about, RowSchema.of("the ordination", source))
        sample = rows.take(choose_rows(source.n_rows, sample_rows(LANDMARKS), seed))
        return replace(rows, kernel=exact.fitted(sample, seed))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    def facts(self) -> JSON:
        """Return the name of the data, their size and the kernel, for a page."""
        source = self.source
        return {"file": source.name, "rows": self.n_rows, "bins": source.n_features, "kernel": self.described}

    def chosen(self, places: np.ndarray) -> RowsInKernel:
        """Return the rows at increasing places."""
        return replace(self, source=ChosenRows(self.source, places, None))

    def matching(self, X: MatrixLike | Source | str | os.PathLike[str]) -> RowsInKernel:
        """Return other rows with the columns of these."""
        schema = self.schema
        opened = X if isinstance(X, Source) else open_source(X, like=schema, with_labels=False)
        return replace(self, source=schema.rows(opened))

    def prepared(self, rows: Rows, first_row: int | np.ndarray = 0, name: str = "X") -> Rows:
        """Return rows as the kernel takes them, in float64."""
        return _arrays.as_rows(self.preparation(rows, first_row, name), np.float64)

    def take(self, places: np.ndarray) -> Rows:
        """Return prepared rows at increasing places."""
        return self.prepared(self.source.take(places), places, self.source.name)

    def chunks(self) -> Iterator[tuple[slice, Rows]]:
        """Yield all prepared rows in order, with their places."""
        for chunk in chunks_ahead(self.source, _CHUNK_ROWS):
            places = slice(chunk.start, chunk.start + chunk.X.shape[0])
            yield places, self.prepared(chunk.X, chunk.start, self.source.name)

    @property
    def names(self) -> list[str]:
        """Names of the bins, or their numbers."""
        names = self.preparation.columns
        return [f"bin {place}" for place in range(self.source.n_features)] if names is None else [*map(str, names)]

    @property
    def row_names(self) -> np.ndarray:
        """Ids of the rows, or their numbers."""
        return np.arange(self.n_rows) if self.source.row_ids is None else np.asarray(self.source.row_ids)

    def sums_with(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return X'C (bins, k) for columns C (n, k), and the sums of squares of the bins, (bins,), in one pass."""
        sums, squares = np.zeros((self.source.n_features, columns.shape[1])), np.zeros(self.source.n_features)
        for places, X in self.chunks():
            sums += np.asarray(X.T @ columns[places])
            squares += np.asarray(_arrays.map_values(X, np.square).sum(axis=0)).ravel()
        return sums, squares

    def correlations(self, columns: np.ndarray) -> np.ndarray:
        """Return the correlation (bins, k) of each prepared bin with columns (n, k); 0 for bins that are constant."""
        n, centred = self.n_rows, columns - columns.mean(axis=0)
        sums, squares = self.sums_with(np.column_stack([centred, np.ones(n)]))
        means = sums[:, -1] / n
        spread = np.sqrt(np.maximum(squares - n * means**2, 0))
        spread[spread <= 1e-7 * np.sqrt(squares)] = np.inf
        lengths = np.linalg.norm(centred, axis=0)
        return np.asarray(sums[:, :-1] / spread[:, None] / np.where(lengths > 0, lengths, np.inf))


@dataclass(frozen=True, eq=False)
class KernelCoordinates:
    """Rows Z (n, r) about their mean, whose products are the kernel about its mean.

    Parameters
    ----------
    Z : ndarray of shape (n, r)
        The rows: float64 where they are exact, and float32 with landmarks.
    n_landmarks : int or None
        Number of landmarks; None where the products are exact.
    project : callable
        Returns the same coordinates (m, r) of other prepared rows, in float64.
    """

    Z: np.ndarray
    n_landmarks: int | None
    project: Callable[[Rows], np.ndarray]

    @classmethod
    def of(
        cls,
        rows: RowsInKernel,
        landmarks: int | None = None,
        memory: str | int = "1GiB",
        seed: int = 0,
        progress: Progress | None = None,
    ) -> KernelCoordinates:
        """Return the exact coordinates of few rows, and those by landmarks of many, or where landmarks are asked for.

        Raises
        ------
        MemoryBudgetError
            If the budget holds the coordinates of too few landmarks.
        """
        n, room, progress = rows.n_rows, room_in(parse_memory(memory)), progress or Progress()
        if landmarks is not None:
            check_positive(landmarks, "landmarks", integer=True)
        if landmarks is None and n <= EXACT_ROWS and 4 * 8 * n**2 <= room:
            progress.stage("kernel", None)
            return cls._exact(rows)
        held = int(_SHARE * room / (4 * n))
        if held < min(landmarks or _FEWEST_LANDMARKS, n):
            least = budget_for(4 * n * min(landmarks or _FEWEST_LANDMARKS, n) / _SHARE)
            raise MemoryBudgetError(
                Message(
                    "{memory=!s} does not hold the coordinates of {:,} rows: give at least {}, or fewer {landmarks}.",
                    memory,
                    n,
                    whole_mebibytes(least),
                )
            )
        return cls._by_landmarks(rows, min(landmarks or LANDMARKS, held, n), seed, progress)

    @classmethod
    def _exact(cls, rows: RowsInKernel) -> KernelCoordinates:
        """Factor G by a Cholesky factor with pivots, which ends where the rest is rounding."""
        X = rows.take(np.arange(rows.n_rows))
        D = np.asarray(rows.kernel.distance(X), dtype=np.float64)
        D = (D + D.T) / 2
        means = D.mean(axis=0)
        grand = float(means.mean())
        # symmetric, so that its transpose is in the order of LAPACK
        G = np.subtract((means[:, None] + means - grand) / 2, D / 2, out=D)
        rounding = 4 * rows.n_rows * np.finfo(np.float64).eps * float(G.diagonal().max())
        factor, pivots, rank, _ = lapack.dpstrf(G.T, tol=rounding, lower=1, overwrite_a=1)
        if rank == 0:
            raise DataError(
                f"{rows.source.name}: all rows are the same to the kernel {rows.kernel.name!r}, so that nothing can "
                "differ between groups. Check the columns that are bins, and the normalisation."
            )
        pivots = pivots - 1
        Z = np.empty((rows.n_rows, rank))
        Z[pivots] = np.tril(factor)[:, :rank]
        corner = factor[:rank, :rank].copy()

        def project(others: Rows) -> np.ndarray:
            # G of other rows with those of the pivots, of which their coordinates are the solution
            distances = np.asarray(rows.kernel.distance(others, X), dtype=np.float64)
            g = (distances.mean(axis=1, keepdims=True) + means - grand - distances) / 2
            return np.asarray(solve_triangular(corner, g[:, pivots[:rank]].T, lower=True).T)

        return cls(Z, None, project)

    @classmethod
    def _by_landmarks(cls, rows: RowsInKernel, n_landmarks: int, seed: int, progress: Progress) -> KernelCoordinates:
        """Compute features of landmarks, chunk by chunk, about their mean."""
        progress.stage("landmarks", None)
        drawn = choose_rows(rows.n_rows, sample_rows(n_landmarks), seed + 1)
        sample = _arrays.as_rows(rows.take(drawn), np.float32)
        with warnings.catch_warnings():  # fewer landmarks than were asked for are told as facts
            warnings.simplefilter("ignore")
            features = NystroemFeatures(rows.kernel, n_landmarks, random_state=seed).fit(sample)
        Z = np.empty((rows.n_rows, features._n_features_out), dtype=np.float32)
        total = np.zeros(Z.shape[1])
        progress.stage("rows", rows.n_rows)
        for places, X in rows.chunks():
            features.features_into(_arrays.as_rows(X, np.float32), Z[places])
            total += Z[places].sum(axis=0, dtype=np.float64)
            progress.advance(X.shape[0])
        mean = total / rows.n_rows
        Z -= mean.astype(np.float32)

        def project(others: Rows) -> np.ndarray:
            return _arrays.to_dense(features.mapped(_arrays.as_rows(others, np.float32))).astype(np.float64) - mean

        return cls(Z, features.landmarks_.shape[0], project)


def square_lengths(Z: np.ndarray) -> np.ndarray:
    """Return the squared lengths of rows, (n,), in float64."""
    return np.einsum("ij,ij->i", Z, Z, dtype=np.float64, casting="safe")


_NUMBERS = 2**22  # of permuted columns that are in memory at once


def permuted_squares(
    Z: np.ndarray,
    columns: np.ndarray,
    shuffles: Shuffles,
    n: int,
    seed: Sequence[int],
    progress: Progress,
    taken_out: Sequence[int] = (0,),
) -> np.ndarray:
    """Return |q_j' P Z_s|^2 for the columns q_j (k) in n random orders P of the rows, (n, s, k), in float64.

    Z_s are the rows without what the first s columns explain, Z - Q_s Q_s'Z, for each s of ``taken_out``. Permuting
    columns is as good as permuting rows, so that many orders are one product with Z, and Z_s takes only the small
    products of columns with columns more: q'P Z_s = q'P Z - (q'P Q_s) Q_s'Z.

    Parameters
    ----------
    Z : ndarray of shape (rows, r)
        Rows about their mean.
    columns : ndarray of shape (rows, k)
        Columns that add up to 0; those that are taken out are orthonormal.
    shuffles : Shuffles
        The orders to draw from.
    n : int
        How many are drawn.
    seed : sequence of int
        Seed of the draw.
    progress : Progress
        Advanced by the permutations.
    taken_out : sequence of int, default=(0,)
        Numbers s of columns.
    """
    rng, across = np.random.default_rng(seed), np.ascontiguousarray(columns.T, dtype=Z.dtype)
    k, n_rows = across.shape
    explained, most = across @ Z, max(taken_out)
    squares, step = np.empty((n, len(taken_out), k)), max(1, _NUMBERS // (n_rows * k))
    for first in range(0, n, step):
        some = min(step, n - first)
        permuted = np.empty((some, k, n_rows), dtype=Z.dtype)
        for each in permuted:
            np.take(across, shuffles.draw(rng), axis=1, out=each, mode="clip")
        permuted = permuted.reshape(some * k, n_rows)
        products, overlaps = permuted @ Z, permuted @ across[:most].T
        for i, s in enumerate(taken_out):
            left = products - overlaps[:, :s] @ explained[:s] if s else products
            squares[first : first + some, i] = square_lengths(left).reshape(some, k)
        progress.advance(some)
    return squares
