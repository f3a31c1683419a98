"""Machines of a trial: each learns from the rows of a split, at any strength and gamma, and outputs for the others.

``race.shared`` makes them, and finds their best setting. ``KernelMachine`` works on a
kernel matrix whose products are computed once for all settings; ``MarginMachine`` runs LIBLINEAR on explicit features.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar, Protocol

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.engines.rates import RATES
from chimap.features.additive.base import AdditiveMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.exact import KeptRows, Spread, exponentials, exponentials_below
from chimap.features.weighted import Half, Relevance, output_mixtures
from chimap.kernels import Kernel
from chimap.losses import Loss
from chimap.moments import of_entries
from chimap.solvers.exact import DualSolution, ExactSolver
from chimap.solvers.kernel_matrix import MatrixMachine, exact_machine, is_iterated
from chimap.solvers.liblinear import SEARCH_TOLERANCE, margins, usual_alpha

_REPEATS = 4  # random divisions of the rows into halves
_MOST_VALUES = 2**22  # kernel values of the rows to score that are kept from one strength to the next
_SCORED = 512  # rows that are scored together if there are more values than that
MAPPED_BYTES = 2**24  # size of the block of rows to score that is mapped at once, if dense
_FEWEST_MAPPED = 256  # rows of such a block at least, however wide they are
_LOOKED = 100  # rows at which gradients are averaged: they differ more between outputs than between rows

Split = tuple[np.ndarray, np.ndarray]  # (rows to learn from, rows to score)


class TrialMachine(Protocol):
    """A machine that learns from the rows of a split, at any strength and gamma.

    ``seconds`` is the time of its last outputs. ``work`` estimates the time of all that it has done, in seconds of two
    ordinary cores, from the number of operations.
    """

    seconds: float
    work: float

    @property
    def begins_at(self) -> int:
        """The strength from which a search goes down by decades, in half decades of the scale."""
        ...

    def scale(self) -> float:
        """Return the unit of strengths."""
        ...

    def outputs(self, alpha: float, octaves: int) -> np.ndarray | None:
        """Return outputs (m, t) for the rows to score, less the target shift; None if the system is singular."""
        ...

    def relevance(self, alpha: float, octaves: int, seed: int) -> Relevance:
        """Return how relevant the mapped coordinates are. Raises TypeError for machines without gradients."""
        ...


@dataclass(frozen=True)
class MappedRows:
    """Rows of a sample that are mapped on demand: all mapped rows together would be the largest matrix of a race."""

    map: AdditiveMap | IdentityMap
    rows: Rows

    def at(self, places: np.ndarray) -> Rows:
        """Return the mapped rows at these places."""
        return self.map.mapped(_arrays.take_rows(self.rows, places))

    def blocks(self, places: np.ndarray) -> Iterator[tuple[slice, Rows]]:
        """Yield the mapped rows at these places in blocks, each with its slice of ``places``."""
        size = self.map._n_features_out * self.rows.dtype.itemsize
        step = max(_FEWEST_MAPPED, MAPPED_BYTES // size)
        for first in range(0, places.size, step):
            block = slice(first, min(first + step, places.size))
            yield block, self.at(places[block])


@dataclass(frozen=True, eq=False)
class Products:
    """Products u_i'u_j of mapped rows to learn from, and their products with the rows to score.

    ``square`` (n, n) holds the former below the diagonal, ``squares`` |u_i|^2, and ``cross`` (m, n) the latter.
    ``spread`` is that of both kinds of rows, ``seconds`` the time that ``cross`` took, or would take for as many rows
    if there are none to score, and ``work`` as in ``TrialMachine``. Of a kernel without a map they are its values
    themselves, and ``train`` and ``spread`` are None.
    """

    square: np.ndarray
    squares: np.ndarray
    cross: np.ndarray
    cross_squares: np.ndarray
    train: KeptRows | None
    spread: Spread | None
    seconds: float
    work: float

    @classmethod
    def of(cls, rows: MappedRows, split: Split) -> Products:
        """Return the products of the rows of a split, under the map of an additive kernel."""
        train, test = KeptRows(rows.at(split[0])), split[1]
        dtype, spread, seconds = train.squares.dtype, train.spread(), 0.0
        cross, cross_squares = np.empty((test.size, train.n_rows), dtype), np.empty(test.size, dtype)
        for block, mapped_block in rows.blocks(test):
            others = train.others(mapped_block)
            cross_squares[block] = others.squares
            spread += train.spread_of(others)
            began = time.perf_counter()
            train.values_of(others, None, cross[block])
            seconds += time.perf_counter() - began
        square, began = np.empty((train.n_rows, train.n_rows), dtype), time.perf_counter()
        train.gram_into(square, None)
        seconds = seconds if test.size else 2 * (time.perf_counter() - began)  # half of the matrix is computed
        counts, share = np.diff(train.starts).astype(float), test.size / max(1, train.n_rows)
        pairs = float(counts @ counts) * (0.5 + share)
        work = 2 * train.columns.size * (square.size / 2 + cross.size) / RATES.trial_products + pairs / RATES.pairs
        return cls(square, train.squares, cross, cross_squares, train, spread, seconds, work)

    @classmethod
    def of_values(cls, kernel: Kernel, rows: Rows, split: Split) -> Products:
        """Return the values of a kernel without a map, for the rows of a split."""
        train, test = (_arrays.take_rows(rows, part) for part in split)
        began = time.perf_counter()
        square = kernel(train)
        halfway = time.perf_counter()
        cross = kernel(test, train) if split[1].size else np.empty((0, split[0].size), square.dtype)
        seconds = time.perf_counter() - halfway if split[1].size else halfway - began
        filled = _arrays.stored_values(rows).size / max(1, rows.shape[0])
        work = filled * (square.size + cross.size) / RATES.entries
        return cls(square, kernel.diagonal(train), cross, kernel.diagonal(test), None, None, seconds, work)


@dataclass(frozen=True, eq=False)
class ProductValues:
    """``KernelValues`` of the rows to learn from, out of their products; ``gamma`` is None for the products as such."""

    products: Products
    gamma: float | None

    @property
    def _n_features_out(self) -> int:
        return self.products.squares.size

    @property
    def is_centred(self) -> bool:
        """Whether the values may be lifted by a constant: products are about a mean."""
        return self.gamma is None

    def gram_into(self, square: np.ndarray) -> np.ndarray:
        """See ``RowKernel``."""
        np.copyto(square, self.products.square)
        if self.gamma is None:
            return self.products.squares.astype(np.float64)
        exponentials_below(square, self.products.squares, self.gamma)
        return np.ones(self.products.squares.size)

    def change_octaves(self, square: np.ndarray, before: int, after: int) -> None:
        """See ``RowKernel``: from the products, which are exact."""
        if before != after and self.gamma is not None:
            np.copyto(square, self.products.square)
            exponentials_below(square, self.products.squares, self.gamma * 2.0**after)


class KernelMachine(TrialMachine):
    """An exact machine on the matrix of an additive kernel or, if gamma is given, of its exponential form.

    It is the machine of ``solvers.kernel_matrix``, with rows to score.
    """

    # matrices of kernel values that ``relevance`` makes: mirrored, and of halves
    RELEVANCE: ClassVar[float] = 2.5

    def __init__(
        self,
        products: Products,
        gamma: float | None,
        Y: np.ndarray,
        row_weights: np.ndarray | None,
        loss: str | Loss = "square",
    ):
        self.products, self.gamma, self.Y, self.row_weights = products, gamma, Y, row_weights
        self._make = exact_machine(loss).tried
        self._machine: MatrixMachine | None = None
        self._octaves: int | None = None
        self.seconds = self.work = 0.0

    @staticmethod
    def n_values(n: int, m: int) -> int:
        """Return how many kernel values are in memory with n rows to learn from and m to score.

        They are the matrix and the products it is made of, the products with the rows to score, and as many of their
        exponentials as are kept.
        """
        return n * (2 * n + m + (m if n * m <= _MOST_VALUES else min(m, _SCORED)))

    @property
    def begins_at(self) -> int:
        return self._at(0).begins_at

    def scale(self) -> float:
        """Return the mean scatter of a row, the unit of strengths."""
        return max(self._at(0).scale(), float(np.finfo(np.float32).eps))

    def outputs(self, alpha: float, octaves: int) -> np.ndarray | None:
        ridge = self._at(octaves)
        before = ridge.operations
        solution = ridge.solve(alpha)
        self.work += (ridge.operations - before) / RATES.trial_factors
        if solution is None:
            return None
        return self._of_others(solution) + solution.intercept

    def _of_others(self, solution: DualSolution) -> np.ndarray:
        """Return the outputs (m, t), float64, of the rows to score, less the intercept.

        Exponentials that are not kept are computed for a block of rows at a time: a second matrix of them would be the
        largest of a race.
        """
        cross, began = self._cross, time.perf_counter()
        weights = solution.weights.astype(self.products.cross.dtype)
        if cross is not None:
            out = cross @ weights
        else:
            m = self.products.cross.shape[0]
            blocks = [slice(first, min(first + _SCORED, m)) for first in range(0, m, _SCORED)]
            out = np.concatenate([self._values(rows) @ weights for rows in blocks])
        self.seconds = self._preparing + time.perf_counter() - began
        return np.asarray(out, dtype=np.float64)

    def _values(self, rows: slice) -> np.ndarray:
        """Return the kernel values of a slice of the rows to score."""
        products = self.products
        self.work += products.cross[rows].size / RATES.trial_exponentials
        values = products.cross[rows].copy()
        exponentials(values, products.cross_squares[rows], products.squares, self._gamma)
        return values

    def relevance(self, alpha: float, octaves: int, seed: int) -> Relevance:
        """Return how relevant the mapped coordinates are, from machines on random halves of the rows."""
        ridge, machine = self._at(octaves), self._machine
        kept, n, rng = self.products.train, self.Y.shape[0], np.random.default_rng(seed)
        assert kept is not None  # a kernel without a map has no gradients
        assert machine is not None
        values = np.tril(ridge.square, -1)
        values += values.T
        values[np.diag_indices(n)] = machine.lifted
        gradients = list[Relevance]()
        mixtures = output_mixtures(self.Y.shape[1], rng)
        for _ in range(_REPEATS):
            order = rng.permutation(n)
            halves = [
                self._half(np.sort(half), values, machine.lifted, kept, alpha, mixtures)
                for half in (order[: n // 2], order[n // 2 :])
            ]
            gradients.append(Relevance.of(*halves))
        return reduce(add, gradients)

    def _half(
        self,
        rows: np.ndarray,
        values: np.ndarray,
        diagonal: np.ndarray,
        kept: KeptRows,
        alpha: float,
        mixtures: np.ndarray,
    ) -> Half:
        """Fit a machine on half of the rows, and return what its gradients are computed from."""
        weights = None if self.row_weights is None else self.row_weights[rows]
        square = np.ascontiguousarray(values[np.ix_(rows, rows)])
        solution = self._make(square, diagonal[rows], self.Y[rows], weights).solve(alpha)
        # A half whose matrix is singular to rounding contributes no evidence about the bins.
        weights_of_rows = np.zeros((rows.size, mixtures.shape[0])) if solution is None else solution.weights
        coef = (weights_of_rows @ mixtures).astype(values.dtype)
        at = np.ones((1, rows.size), values.dtype) if self.gamma is None else values[:_LOOKED, rows]
        return Half(kept.take(rows), coef, at)

    def _at(self, octaves: int) -> ExactSolver:
        """Return the solver for this gamma, with the kernel values of the rows to score."""
        products = self.products
        if octaves != self._octaves:
            self._octaves, began = octaves, time.perf_counter()
            self._cross = products.cross if self.gamma is None else None
            if self.gamma is not None:
                self._gamma = self.gamma * 2.0**octaves
                if products.cross.size <= _MOST_VALUES:
                    self._cross = self._values(slice(None))
                self.work += products.square.size / 2 / RATES.trial_exponentials
            self._preparing = products.seconds + (0.0 if self.gamma is None else time.perf_counter() - began)
        if self._machine is None:
            values = ProductValues(products, self.gamma)
            self._machine = MatrixMachine(values, self.Y, self.row_weights, products.square.dtype, self._make)
        return self._machine.at(octaves)


class LeftOutMachine(KernelMachine):
    """The same machine of all rows, whose outputs are those for each row when it, or its group, is left out.

    Leaving out a row of one class shifts the mean of the targets, and with it the intercept, towards the other. All
    outputs of weak machines then rank the classes the wrong way round: a constant one has an AUC of 0. So the mean of
    the targets stays that of all rows: with it the output of row i is f_-i(x_i) + (y_i - mean y) w_i / (W - w_i), W
    being the sum of the row weights w; what the machine learns besides the mean has not seen the row.

    Parameters
    ----------
    products, gamma, Y, row_weights, loss
        See ``KernelMachine``; the products are those of all rows, with none to score.
    groups : sequence of arrays or None
        Adjacent rows that are left out together; the groups cover all rows in order. None for single rows.
    """

    def __init__(
        self,
        products: Products,
        gamma: float | None,
        Y: np.ndarray,
        row_weights: np.ndarray | None,
        loss: str | Loss,
        groups: Sequence[np.ndarray] | None,
    ):
        super().__init__(products, gamma, Y, row_weights, loss)
        weights = np.ones(Y.shape[0]) if row_weights is None else row_weights
        entry_weights = np.where(np.isnan(Y), 0.0, of_entries(weights))
        mean = np.average(np.nan_to_num(Y), axis=0, weights=entry_weights)
        pull, total = entry_weights * (np.nan_to_num(Y) - mean), entry_weights.sum(axis=0)
        starts = np.arange(Y.shape[0]) if groups is None else np.array([group[0] for group in groups])
        sizes = np.diff(np.append(starts, Y.shape[0]))
        rest = total - np.add.reduceat(entry_weights, starts)
        shifts = np.add.reduceat(pull, starts) / np.where(rest > 0, rest, 1.0)
        self._shifts, self._groups = np.repeat(shifts, sizes, axis=0), groups
        if is_iterated(loss):  # outputs are no means of targets
            self._shifts = np.zeros_like(Y)

    def outputs(self, alpha: float, octaves: int) -> np.ndarray | None:
        ridge = self._at(octaves)
        before = ridge.operations
        solution = ridge.solve(alpha)
        if solution is not None:
            left_out, self.seconds = self._left_out(ridge, solution), self._preparing
        # A row that is left out costs as much as its share of the factor.
        self.work += 2 * (ridge.operations - before) / RATES.trial_factors
        if solution is None or np.isnan(left_out[~np.isnan(self.Y)]).any():
            return None
        return np.asarray(np.nan_to_num(self.Y) - np.nan_to_num(left_out) + self._shifts)

    def _left_out(self, ridge: ExactSolver, solution: DualSolution) -> np.ndarray:
        """Return the residuals (n, t) of left-out rows; NaN where a target is missing, or rounding hides it."""
        if self._groups is None:
            return ridge.leave_one_out(solution)
        return np.concatenate(ridge.leave_out(solution, self._groups))


class MarginMachine(TrialMachine):
    """LIBLINEAR on explicit features ``Z``, applied to the features ``others`` of the rows to score."""

    begins_at: ClassVar[int] = 0  # LIBLINEAR takes many times as long at smaller strengths

    def __init__(self, Z: Rows, others: Rows, Y: np.ndarray, row_weights: np.ndarray | None, seed: int, loss: str):
        self.Z, self.others, self.Y, self.seed, self.loss = Z, others, np.nan_to_num(Y), seed, loss
        self.row_weights = np.ones(Y.shape[0]) if row_weights is None else row_weights
        self.seconds = self.work = 0.0

    def scale(self) -> float:
        """Return the unit of strengths."""
        return usual_alpha(self.Z, self.row_weights)

    def outputs(self, alpha: float, octaves: int) -> np.ndarray:
        outputs = margins(self.Z, self.Y, self.row_weights, alpha, SEARCH_TOLERANCE, self.seed, self._count, self.loss)
        began = time.perf_counter()
        out = np.asarray(self.others @ outputs.coef + outputs.intercept, dtype=np.float64)
        self.seconds = time.perf_counter() - began
        return out

    def relevance(self, alpha: float, octaves: int, seed: int) -> Relevance:
        raise TypeError("bins can only be weighted by a machine on a kernel matrix")

    def _count(self, passes: int) -> None:
        self.work += passes * _arrays.stored_values(self.Z).size / RATES.visits
