"""Rows kept for kernel values with other rows: BLAS multiplies dense columns, loops the rare columns of sparse rows."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from chimap import _arrays, _blas, _loops, _scaling, _threads
from chimap._types import CSR, Rows

_ROWS = 256  # rows whose kernel values one thread computes at once
_COLUMNS = 2048  # kernel values of a row that stay in its cache from the product to the exponential
_DENSE_FROM = 0.1  # share of filled rows above which a sparse column is cheaper as a dense one


@dataclass(frozen=True)
class Spread:
    """How far rows u (n, p) are from each other, by additive sums: of |u - o|^2 and u - o about some point o, (p,)."""

    n_rows: int
    squares: float
    sums: np.ndarray

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.n_rows + other.n_rows, self.squares + other.squares, self.sums + other.sums)

    @property
    def mean_distance(self) -> float:
        """Mean |u_i - u_j|^2 over pairs of different rows, by their variance; 0 where there are no pairs."""
        variance = self.squares / self.n_rows - np.square(self.sums / self.n_rows).sum()
        return float(2 * max(0.0, variance) * self.n_rows / max(1, self.n_rows - 1))


@dataclass(frozen=True)
class OtherRows:
    """Rows u (m, p) in the form of kept rows: dense columns (m, d) less their means, and the others in CSR (m, p).

    The CSR part is None where all columns are dense. ``squares`` (m,) are |u - means|^2.
    """

    dense: np.ndarray
    rare: CSR | None
    squares: np.ndarray


class KeptRows:
    """Rows u_j (n, p), kept for their products, or exp(-gamma |u - u_j|^2), with other rows.

    Columns with entries in many rows are stored dense, less their mean; a column of few entries costs only the pairs
    that share it. In word counts most columns are rare, and all their products together cost a thousandth of dense
    ones.

    The argument ``rows`` (n, p) is dense, and then owned by this object, or CSR.

    ``columns`` (d,) are the columns stored in ``dense`` (n, d), less ``means`` (d,). ``data``, ``rows`` and ``starts``
    hold the others in CSC, with all p columns (dense ones are empty there). ``squares`` (n,) are |u_j - means|^2.
    """

    n_columns: int
    columns: np.ndarray
    means: np.ndarray
    dense: np.ndarray
    data: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    squares: np.ndarray

    def __init__(self, rows: Rows):
        self.n_columns = rows.shape[1]
        self.columns = _frequent(rows)
        dense = _dense_columns(rows, self.columns)
        self.means = dense.mean(axis=0, dtype=np.float64).astype(rows.dtype)
        dense -= self.means
        self.dense = dense
        rare = _without(rows, self.columns).tocsc()
        self.data, self.rows, self.starts = rare.data, rare.indices, rare.indptr
        self.squares = _scaling.row_squares(dense) + _scaling.row_squares(rare)

    @property
    def n_rows(self) -> int:
        """Number of kept rows, n."""
        return int(self.dense.shape[0])

    @staticmethod
    def bytes_of(rows: Rows, n_terms: int) -> float:
        """Return the bytes that a kept row takes, for rows (n, bins) such as ``rows`` and n_terms features per bin."""
        frequent, size = _frequent(rows), rows.dtype.itemsize
        if not _arrays.is_sparse(rows):
            return float(n_terms * frequent.size * size)
        rare = np.count_nonzero(~np.isin(rows.indices, frequent)) / max(1, rows.shape[0])
        return float(n_terms * (frequent.size * size + rare * (size + rows.indices.itemsize)))

    def take(self, rows: np.ndarray) -> KeptRows:
        """Return the rows at the places ``rows``, about the same means."""
        subset = copy(self)
        subset.dense, subset.squares = self.dense[rows], self.squares[rows]
        if (rare := self._rare_rows) is not None:
            rare_subset = rare[rows].tocsc()
            subset.data, subset.rows, subset.starts = (
                rare_subset.data,
                rare_subset.indices,
                rare_subset.indptr,
            )
        return subset

    def values_into(self, rows: Rows, gamma: float | None, out: np.ndarray) -> None:
        """Write kernel values with other rows u (m, p) into out (m, n).

        They are exp(-gamma |u - u_j|^2), or (u - means)'(u_j - means) where gamma is None.
        """
        self.values_of(self.others(rows), gamma, out)

    def others(self, rows: Rows) -> OtherRows:
        """Return other rows (m, p), dense or CSR, about the same means."""
        dense = _dense_columns(rows, self.columns) - self.means
        squares = _scaling.row_squares(dense)
        if self.columns.size == self.n_columns:
            return OtherRows(dense, None, squares)
        rare = _without(rows, self.columns)
        # these squares include columns that kept rows lack
        return OtherRows(dense, rare, squares + _scaling.row_squares(rare))

    def values_of(self, others: OtherRows, gamma: float | None, out: np.ndarray) -> None:
        """Write kernel values with other rows into ``out``; see ``values_into``."""

        def part(first: int) -> None:
            block = slice(first, min(first + _ROWS, others.squares.size))
            self._values(
                others.dense[block], _slice_of(others.rare, block), others.squares[block], gamma, out[block]
            )

        _threads.tasks(range(0, others.squares.size, _ROWS), part)

    def gram_into(self, square: np.ndarray, gamma: float | None, *, add: bool = False) -> np.ndarray:
        """Write, or ``add``, values among these rows below the diagonal of ``square``; return the diagonal, float64.

        The part above the diagonal is overwritten with arbitrary values.
        """
        n, rare = self.n_rows, self._rare_rows

        def part(first: int) -> None:
            block = slice(first, min(first + _ROWS, n))
            total = square[block, : block.stop]
            out = np.empty_like(total) if add else total
            self._values(self.dense[block], _slice_of(rare, block), self.squares[block], gamma, out)
            if add:
                total += out

        _threads.tasks(reversed(range(0, n, _ROWS)), part)  # the longest rows first
        return np.asarray(self.squares if gamma is None else np.ones(n), dtype=np.float64)

    def _values(
        self, dense: np.ndarray, rare: CSR | None, squares: np.ndarray, gamma: float | None, out: np.ndarray
    ) -> None:
        """Write values of a few rows with the first out.shape[1] kept rows."""
        if self.columns.size:
            _blas.multiply(dense, self.dense[: out.shape[1]], out, transpose=True)
        else:
            out[:] = 0
        if rare is not None and rare.nnz and self.data.size:
            _loops.add_sparse_products(
                rare.data, rare.indices, rare.indptr, self.data, self.rows, self.starts, out
            )
        if gamma is not None:
            exponentials(out, squares, self.squares[: out.shape[1]], gamma)

    def combine(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sum_j v_j weights_j (p, t), and its product (t,) with the means.

        v are the rows less the means of dense columns.
        """
        coef = np.asarray(self._rare.T @ weights)
        coef[self.columns] = self.dense.T.astype(np.float64) @ weights
        return coef, self.means.astype(np.float64) @ coef[self.columns]

    def centred(self) -> np.ndarray:
        """Return the rows less the means of dense columns, (n, p) dense float64."""
        rows = self._rare.toarray().astype(np.float64)
        rows[:, self.columns] = self.dense
        return np.asarray(rows)

    def column_means(self) -> np.ndarray:
        """Return what ``centred`` subtracts, (p,) float64: 0 in rare columns."""
        means = np.zeros(self.n_columns)
        means[self.columns] = self.means
        return means

    __array_ufunc__ = None  # makes numpy leave ``array @ rows`` to __rmatmul__

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, p) of the rows."""
        return self.n_rows, self.n_columns

    def __rmatmul__(self, weights: np.ndarray) -> np.ndarray:
        """Return weights (m, n) times the rows less the means of dense columns, (m, p), by BLAS for dense columns."""
        if self.columns.size == self.n_columns:
            return np.asarray(weights @ self.dense)
        out = np.ascontiguousarray(weights @ self._rare)
        out[:, self.columns] = weights @ self.dense
        return out

    def spread(self) -> Spread:
        """Return the spread of these rows about the means of dense columns, for which dense columns add up to 0."""
        sums = np.bincount(
            np.repeat(np.arange(self.n_columns), np.diff(self.starts)), self.data, self.n_columns
        )
        return Spread(self.n_rows, float(self.squares.sum(dtype=np.float64)), sums)

    def spread_of(self, others: OtherRows) -> Spread:
        """Return the spread of other rows about the same means."""
        sums = np.zeros(self.n_columns)
        if others.rare is not None:
            sums += np.bincount(others.rare.indices, others.rare.data, self.n_columns)
        sums[self.columns] = others.dense.sum(axis=0, dtype=np.float64)
        return Spread(others.squares.size, float(others.squares.sum(dtype=np.float64)), sums)

    @property
    def _rare(self) -> sp.csc_matrix:
        """Columns that are not dense, in CSC (n, p)."""
        return sp.csc_matrix((self.data, self.rows, self.starts), (self.n_rows, self.n_columns))

    @property
    def _rare_rows(self) -> CSR | None:
        """The same in CSR; None where all columns are dense.

        An empty sparse matrix takes longer to build than 100 rows take to multiply.
        """
        return self._rare.tocsr() if self.data.size else None


def _slice_of(rows: CSR | None, chosen: slice) -> CSR | None:
    return None if rows is None else rows[chosen]


def exponentials(products: np.ndarray, ahead: np.ndarray, behind: np.ndarray, gamma: float) -> None:
    """Replace products u'v (m, n) by exp(-gamma |u - v|^2), given the squares |u|^2 (m,) and |v|^2 (n,)."""
    factor = products.dtype.type(gamma)
    ahead, behind = -factor * ahead[:, None], -factor * behind
    is_far = np.isneginf(ahead[:, 0])

    def rows(first: int) -> None:
        block = slice(first, first + _ROWS)
        for start in range(0, products.shape[1], _COLUMNS):
            part = products[block, start : start + _COLUMNS]
            with np.errstate(over="ignore", invalid="ignore"):
                part *= 2 * factor
                part += ahead[block]
                part += behind[start : start + _COLUMNS]
            part[is_far[block]] = -np.inf  # where the squares overflow, so may the products
            np.minimum(part, 0, out=part)  # rounding may make it positive for equal rows
            np.exp(part, out=part)

    _threads.tasks(range(0, products.shape[0], _ROWS), rows)


def exponentials_below(square: np.ndarray, squares: np.ndarray, gamma: float) -> None:
    """Replace products among n rows (n, n) by exponentials below the diagonal; see ``exponentials``.

    The part above the diagonal is overwritten with arbitrary values.
    """
    n = squares.size

    def part(first: int) -> None:
        block = slice(first, min(first + _ROWS, n))
        exponentials(square[block, : block.stop], squares[block], squares[: block.stop], gamma)

    _threads.tasks(reversed(range(0, n, _ROWS)), part)


def _frequent(rows: Rows) -> np.ndarray:
    """Return the columns that are kept dense; for dense rows all of them."""
    if not _arrays.is_sparse(rows):
        return np.arange(rows.shape[1])
    counts = np.bincount(rows.indices, minlength=rows.shape[1])
    return np.flatnonzero(counts >= max(1, _DENSE_FROM * rows.shape[0]))


def _dense_columns(rows: Rows, columns: np.ndarray) -> np.ndarray:
    """Return columns as a dense array; dense rows themselves where these are all columns."""
    if not _arrays.is_sparse(rows):
        return np.asarray(rows if columns.size == rows.shape[1] else rows[:, columns])
    return np.ascontiguousarray(rows[:, columns].toarray())


def _without(rows: Rows, columns: np.ndarray) -> CSR:
    """Return rows in CSR without the entries in some columns."""
    if not _arrays.is_sparse(rows):
        if columns.size == rows.shape[1]:
            return sp.csr_matrix(rows.shape, dtype=rows.dtype)
        return _without(sp.csr_matrix(rows), columns)  # these rows are dense but the kept ones came sparse
    kept = np.ones(rows.shape[1], dtype=bool)
    kept[columns] = False
    chosen = kept[rows.indices]
    ends = np.concatenate([[0], np.cumsum(chosen)])
    return _arrays.csr(rows.data[chosen], rows.indices[chosen], ends[rows.indptr], rows.shape)
