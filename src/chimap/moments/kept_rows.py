"""Rows kept for kernel values with other rows: BLAS multiplies dense columns, loops the rare columns of sparse rows."""

from __future__ import annotations

import threading
from copy import copy
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.sparse as sp

from chimap import _arrays, _blas, _loops, _threads
from chimap._types import CSR, Rows, Shape

_ROWS = 256  # rows whose kernel values one thread computes at once
_TILE_ROWS, _TILE_COLUMNS = 512, 1024  # kernel values that stay in cache from the product to their use
_TILES_OF_A_THREAD = 8  # of few other rows
_SHARED_ENTRY = 100.0  # dense columns whose products take as long as those of an entry that two rows share in others
_DENSE_FROM = 0.1  # share of filled rows above which a sparse column is cheaper as a dense one
_MOST_FILLED, _INDEX_BYTES = 0.5, 4  # share of filled entries from which dense rows are no larger than CSR with indices


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


@dataclass(frozen=True, eq=False)
class FilledShares:
    """The share of rows in which each column is filled, (p,): it decides whether rows are kept dense or in CSR.

    are_small: whether nearly all entries are small whole numbers, such as counts.
    """

    shares: np.ndarray
    are_small: bool = False

    @property
    def is_sparse(self) -> bool:
        """Whether rows take less memory in CSR, of which each entry has an index."""
        return bool(self.shares.mean() < _MOST_FILLED)

    @property
    def dense_columns(self) -> float:
        """The dense columns whose products take as long as those of kept rows."""
        if not self.is_sparse:
            return float(self.shares.size)
        is_frequent = self.shares >= _DENSE_FROM
        return float(is_frequent.sum() + _SHARED_ENTRY * np.square(self.shares[~is_frequent]).sum())

    def row_bytes(self, itemsize: int) -> float:
        """Return the bytes of a kept row of numbers of this size."""
        if not self.is_sparse:
            return float(self.shares.size * itemsize)
        is_frequent = self.shares >= _DENSE_FROM
        return float(is_frequent.sum() * itemsize + self.shares[~is_frequent].sum() * (itemsize + _INDEX_BYTES))


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
    columns: Annotated[np.ndarray, Shape("d")]
    means: Annotated[np.ndarray, Shape("d")]
    dense: Annotated[np.ndarray, Shape("n", "d")]
    data: Annotated[np.ndarray, Shape("entries")]
    rows: Annotated[np.ndarray, Shape("entries")]
    starts: Annotated[np.ndarray, Shape("ends")]
    squares: Annotated[np.ndarray, Shape("n")]

    def __init__(self, rows: Rows):
        self.n_columns = rows.shape[1]
        self.columns = _frequent(rows)
        dense = _dense_columns(rows, self.columns)
        self.means = dense.mean(axis=0, dtype=np.float64).astype(rows.dtype)
        dense -= self.means
        self.dense = dense
        rare = _without(rows, self.columns).tocsc()
        self.data, self.rows, self.starts = rare.data, rare.indices, rare.indptr
        self.squares = _arrays.row_squares(dense) + _arrays.row_squares(rare)

    def keeper(self, n_rows: int) -> RowKeeper:
        """Return an object that collects ``n_rows`` other rows about the same means, in any order."""
        return RowKeeper(self, n_rows)

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

    def take(self, rows: np.ndarray | slice) -> KeptRows:
        """Return the rows at the places ``rows``, about the same means."""
        subset = copy(self)
        subset.__dict__.pop("_made", None)
        subset.dense, subset.squares = self.dense[rows], self.squares[rows]
        if (rare := self._rare_rows) is not None:
            rare_subset = rare[rows].tocsc()
            subset.data, subset.rows, subset.starts = (rare_subset.data, rare_subset.indices, rare_subset.indptr)
        return subset

    def clustered(self, centres: KeptRows, rounds: int) -> KeptRows:
        """Return the means of the rows that are nearest to each of the centres, after some of Lloyd's rounds.

        A centre that no row is nearest to stays.
        """
        for _ in range(rounds):
            nearest = np.concatenate([centres._nearest_to(part, self) for part in _arrays.slices(self.n_rows, _ROWS)])
            counts = np.bincount(nearest, minlength=centres.n_rows)
            entries = (1 / counts[nearest]).astype(self.dense.dtype), (nearest, np.arange(self.n_rows))
            means = sp.csr_matrix(entries, shape=(centres.n_rows, self.n_rows))
            stays = sp.diags_array((counts == 0).astype(self.dense.dtype), format="csr")
            moved = copy(self)
            moved.__dict__.pop("_made", None)
            moved.dense = np.asarray(means @ self.dense + stays @ centres.dense)
            rare = sp.csc_matrix(means @ self._rare + stays @ centres._rare)
            moved.data, moved.rows, moved.starts = rare.data, rare.indices, rare.indptr
            moved.squares = _arrays.row_squares(moved.dense) + _arrays.row_squares(rare)
            centres = moved
        return centres

    def _nearest_to(self, places: slice, others: KeptRows) -> np.ndarray:
        """Return the places (m,) of these rows that are nearest to some of the others, about the same means."""
        some = others.at(places)
        values = np.empty((some.squares.size, self.n_rows), self.squares.dtype)
        self.values_of(some, None, values)
        values -= self.squares / 2
        return values.argmax(axis=1)

    def first_equal(self) -> np.ndarray:
        """Return the place of the first row that equals each row, (n,)."""
        rare = self._rare_rows
        return _arrays.first_equal([self.dense] if rare is None else [self.dense, rare])

    def values_into(self, rows: Rows, gamma: float | None, out: np.ndarray) -> None:
        """Write kernel values with other rows u (m, p) into out (m, n).

        They are exp(-gamma |u - u_j|^2), or (u - means)'(u_j - means) where gamma is None.
        """
        self.values_of(self.others(rows), gamma, out)

    def joined(self, rows: Rows) -> KeptRows:
        """Return these rows and then others (m, p), dense or CSR, about the same means."""
        others = self.in_full(rows)
        both = copy(self)
        both.__dict__.pop("_made", None)
        both.dense = np.concatenate([self.dense, others.dense])
        both.squares = np.concatenate([self.squares, others.squares])
        if others.rare is not None:
            rare = sp.vstack([self._rare, others.rare], format="csc")
            both.data, both.rows, both.starts = rare.data, rare.indices, rare.indptr
        return both

    def others(self, rows: Rows) -> OtherRows:
        """Return other rows (m, p), dense or CSR, about the same means."""
        is_full = self.columns.size == self.n_columns
        if is_full or _arrays.is_sparse(rows) or np.delete(rows, self.columns, axis=1).any():
            return self.in_full(rows)
        dense = _dense_columns(rows, self.columns) - self.means
        return OtherRows(dense, None, _arrays.row_squares(dense))

    def in_full(self, rows: Rows) -> OtherRows:
        """Return other rows with their rare columns, even if these are empty, so that pieces of rows can be joined."""
        dense = _dense_columns(rows, self.columns) - self.means
        squares = _arrays.row_squares(dense)
        if self.columns.size == self.n_columns:
            return OtherRows(dense, None, squares)
        rare = _without(rows, self.columns)
        # these squares include columns that kept rows lack
        return OtherRows(dense, rare, squares + _arrays.row_squares(rare))

    def values_of(self, others: OtherRows, gamma: float | None, out: np.ndarray) -> None:
        """Write kernel values with other rows into ``out``; see ``values_into``."""

        def part(first: int) -> None:
            block = slice(first, min(first + _ROWS, others.squares.size))
            self._values(others.dense[block], _slice_of(others.rare, block), others.squares[block], gamma, out[block])

        _threads.tasks(range(0, others.squares.size, _ROWS), part)

    def add_outputs(
        self, others: OtherRows, gamma: float | None, weights: np.ndarray, out: np.ndarray, by: slice | None = None
    ) -> None:
        """Add sum_j k(u_i, u_j) weights_j over kept rows j to out (m, t), float64, for other rows u (m, p).

        k are the values of ``values_into``. They are made, used and forgotten tile by tile, so that only a tile is in
        memory, in cache. Values and products are in the dtype of the weights, and sums of tiles in float64.

        Parameters
        ----------
        others : OtherRows
            The other rows.
        gamma : float or None
            See ``values_into``.
        weights : ndarray of shape (n, t)
            Weights of these kept rows.
        out : ndarray of shape (m, t), float64
            Outputs to add to.
        by : slice or None, default=None
            The kept rows to sum over; None for all.
        """
        by = slice(0, self.n_rows) if by is None else by
        m, n = others.squares.size, by.stop - by.start
        tiles = range(-(-n // _TILE_COLUMNS))

        def add(block: slice, some: range, total: np.ndarray) -> None:
            dense, rare, squares = others.dense[block], _slice_of(others.rare, block), others.squares[block]
            part = np.empty(total.shape, weights.dtype)
            for tile in some:
                place = slice(tile * _TILE_COLUMNS, min((tile + 1) * _TILE_COLUMNS, n))
                tile_values = _scratch.values(squares.size, place.stop - place.start, weights.dtype)
                self._values(dense, rare, squares, gamma, tile_values, by.start, tile)
                _blas.multiply(tile_values, weights[place], part)
                total += part

        blocks = _arrays.slices(m, _TILE_ROWS)
        if len(blocks) >= _threads.count():
            _threads.tasks(blocks, lambda block: add(block, tiles, out[block]))
            return
        ranges = [tiles[i : i + _TILES_OF_A_THREAD] for i in range(0, len(tiles), _TILES_OF_A_THREAD)]
        totals = [np.zeros(out.shape) for _ in ranges]
        _threads.tasks(range(len(ranges)), lambda k: add(slice(0, m), ranges[k], totals[k]))
        for total in totals:
            out += total

    def at(self, places: slice) -> OtherRows:
        """Return kept rows in the form of other rows, without a copy of their dense columns."""
        return OtherRows(self.dense[places], _slice_of(self._rare_rows, places), self.squares[places])

    def gram_into(self, square: np.ndarray, gamma: float | None, *, add: bool = False) -> np.ndarray:
        """Write, or ``add``, values among these rows below the diagonal of ``square``; return the diagonal, float64.

        The part above the diagonal is overwritten with arbitrary values.
        """
        n, rare = self.n_rows, self._rare_rows

        def part(first: int) -> None:
            block = slice(first, min(first + _ROWS, n))
            total = square[block, : block.stop]
            # Not in place: exponentials of rows with gaps take ten times as long.
            out = _scratch.values(block.stop - block.start, block.stop, total.dtype)
            self._values(self.dense[block], _slice_of(rare, block), self.squares[block], gamma, out)
            if add:
                total += out
            else:
                total[:] = out

        _threads.tasks(reversed(range(0, n, _ROWS)), part)  # the longest rows first
        return np.asarray(self.squares if gamma is None else np.ones(n), dtype=np.float64)

    def _values(
        self,
        dense: np.ndarray,
        rare: CSR | None,
        squares: np.ndarray,
        gamma: float | None,
        out: np.ndarray,
        start: int = 0,
        tile: int | None = None,
    ) -> None:
        """Write values of a few rows with out.shape[1] kept rows: from ``start`` on, or those of a tile from there."""
        first = start if tile is None else start + tile * _TILE_COLUMNS
        place = slice(first, first + out.shape[1])
        if self.columns.size:
            own = self.dense[place].astype(out.dtype, copy=False)
            _blas.multiply(dense.astype(out.dtype, copy=False), own, out, transpose=True)
        else:
            out[:] = 0
        if rare is not None and rare.nnz and self.data.size:
            ends = (self.starts[:-1], self.starts[1:]) if tile is None else self._tile_starts(start)[tile : tile + 2]
            _loops.add_sparse_products(rare.data, rare.indices, rare.indptr, self.data, self.rows, *ends, first, out)
        if gamma is not None:
            ahead, behind = (some.astype(out.dtype, copy=False) for some in (squares, self.squares[place]))
            exponentials(out, ahead, behind, gamma)

    def _tile_starts(self, start: int) -> np.ndarray:
        """Return where the entries of each tile from row ``start`` on begin in each sparse column, (tiles + 1, p).

        They are kept for later calls with the same start.
        """
        made: tuple[int, np.ndarray] | None = self.__dict__.get("_made")
        if made is None or made[0] != start:
            shape = -(-(self.n_rows - start) // _TILE_COLUMNS), self.n_columns
            columns = np.repeat(np.arange(self.n_columns), np.diff(self.starts))
            later = self.rows >= start
            places = ((self.rows[later] - start) // _TILE_COLUMNS).astype(np.int64) * self.n_columns
            counts = np.bincount(places + columns[later], minlength=shape[0] * shape[1]).reshape(shape)
            begin = self.starts[:-1] + np.bincount(columns[~later], minlength=self.n_columns)
            made = self._made = (start, np.vstack([np.zeros((1, shape[1]), np.int64), counts.cumsum(axis=0)]) + begin)
        return made[1]

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
        sums = np.bincount(np.repeat(np.arange(self.n_columns), np.diff(self.starts)), self.data, self.n_columns)
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


class Scratch(threading.local):
    """Memory of each thread for a tile of kernel values.

    The system clears the pages of new memory, which takes a tenth of the time of the products that are written there.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def values(self, n_rows: int, n_columns: int, dtype: np.dtype) -> np.ndarray:
        """Return memory for (n_rows, n_columns) values, row by row; the next call of the thread returns the same."""
        n_bytes = n_rows * n_columns * np.dtype(dtype).itemsize
        if self._memory.size < n_bytes:
            self._memory = np.empty(n_bytes, np.uint8)
        return self._memory[:n_bytes].view(dtype).reshape(n_rows, n_columns)


_scratch = Scratch()


class RowKeeper:
    """Collects rows u (n, p) that come in pieces, for ``KeptRows`` about the means of others: one copy of each row.

    Parameters
    ----------
    like : KeptRows
        Gives the means, and the columns that are stored dense.
    n_rows : int
        Number of rows n.
    """

    def __init__(self, like: KeptRows, n_rows: int):
        self._like = like
        self._dense = np.empty((n_rows, like.columns.size), like.dense.dtype)
        self._squares = np.empty(n_rows, like.squares.dtype)
        self._rare: list[CSR] = []
        self._places: list[np.ndarray] = []

    def put(self, places: np.ndarray, rows: Rows) -> None:
        """Keep rows (m, p), dense or CSR, at these places (m,)."""
        others = self._like.in_full(rows)
        self._dense[places], self._squares[places] = others.dense, others.squares
        if others.rare is not None:
            self._rare.append(others.rare)
            self._places.append(places)

    def kept(self) -> KeptRows:
        """Return the rows, once all are there."""
        kept = copy(self._like)
        kept.__dict__.pop("_made", None)
        kept.dense, kept.squares = self._dense, self._squares
        if self._rare:
            order = np.argsort(np.concatenate(self._places))
            rare = sp.csc_matrix(_arrays.take_rows(_arrays.stack_rows(self._rare), order))
            kept.data, kept.rows, kept.starts = rare.data, rare.indices, rare.indptr
        return kept


def _slice_of(rows: CSR | None, chosen: slice) -> CSR | None:
    return None if rows is None else rows[chosen]


def exponentials(products: np.ndarray, ahead: np.ndarray, behind: np.ndarray, gamma: float) -> None:
    """Replace products u'v (m, n) by exp(-gamma |u - v|^2), given the squares |u|^2 (m,) and |v|^2 (n,)."""
    factor = products.dtype.type(gamma)

    def rows(first: int) -> None:
        block = slice(first, first + _ROWS)
        _loops.distances_to_values(products[block], ahead[block], behind, factor)

    _threads.tasks(range(0, products.shape[0], _ROWS), rows)


def exponentials_below(square: np.ndarray, squares: np.ndarray, gamma: float) -> None:
    """Replace products among n rows (n, n) by exponentials below the diagonal; see ``exponentials``.

    The part above the diagonal is overwritten with arbitrary values.
    """
    n = squares.size

    def part(first: int) -> None:
        block = slice(first, min(first + _ROWS, n))
        values = np.ascontiguousarray(square[block, : block.stop])  # of rows with gaps they take ten times as long
        exponentials(values, squares[block], squares[: block.stop], gamma)
        square[block, : block.stop] = values

    _threads.tasks(reversed(range(0, n, _ROWS)), part)


def _frequent(rows: Rows) -> np.ndarray:
    """Return the columns that are kept dense; for dense rows all that are not empty."""
    if not _arrays.is_sparse(rows):
        return np.flatnonzero(rows.any(axis=0))
    counts = np.bincount(rows.indices, minlength=rows.shape[1])
    return np.flatnonzero(counts >= max(1, _DENSE_FROM * rows.shape[0]))


def _dense_columns(rows: Rows, columns: np.ndarray) -> np.ndarray:
    """Return columns as a dense array; dense rows themselves where these are all columns."""
    if not _arrays.is_sparse(rows):
        return np.asarray(rows if columns.size == rows.shape[1] else rows[:, columns])
    return np.ascontiguousarray(rows[:, columns].toarray())


def _without(rows: Rows, columns: np.ndarray) -> CSR:
    """Return rows in CSR without the entries in some columns."""
    kept = np.ones(rows.shape[1], dtype=bool)
    kept[columns] = False
    if not _arrays.is_sparse(rows):
        others = np.flatnonzero(kept)
        rare = sp.csr_matrix(rows[:, others])
        return _arrays.csr(rare.data, others[rare.indices].astype(rare.indices.dtype), rare.indptr, rows.shape)
    chosen = kept[rows.indices]
    ends = np.concatenate([[0], np.cumsum(chosen)])
    return _arrays.csr(rows.data[chosen], rows.indices[chosen], ends[rows.indptr], rows.shape)
