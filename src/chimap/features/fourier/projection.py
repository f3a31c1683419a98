"""Projections onto frequencies: a matrix, or fast Walsh-Hadamard transforms that need none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _arrays, _loops, _products, _threads
from chimap._types import Rows


@dataclass(frozen=True, eq=False)
class Matrix:
    """x -> W'x for frequencies W (n_inputs, m)."""

    matrix: np.ndarray

    @property
    def n_inputs(self) -> int:
        """Entries of x."""
        return int(self.matrix.shape[0])

    @property
    def n_frequencies(self) -> int:
        """m."""
        return int(self.matrix.shape[1])

    def scaled(self, factor: float) -> Matrix:
        """Frequencies times a factor, in place."""
        matrix = self.matrix
        matrix *= matrix.dtype.type(factor)
        return self

    def astype(self, dtype: np.dtype) -> Matrix:
        """The same in another floating type."""
        return self if self.matrix.dtype == dtype else Matrix(self.matrix.astype(dtype))

    def project(self, rows: Rows, buffer: np.ndarray, out: np.ndarray) -> None:
        """out[:, :m] = rows @ W for rows (n, n_inputs), dense or CSR, of the dtype of out (n, m or more), which is
        C-contiguous; buffer (n, n_inputs) is for CSR."""
        _products.project(rows, self.matrix, buffer, out)


@dataclass(frozen=True, eq=False)
class Hadamard:
    """x -> the first m of diag(l) H S_3 H S_2 H S_1 x, block after block: O(m log n_inputs) a row, and no matrix.

    H is the Walsh-Hadamard transform of order p, the power of two from n_inputs on (x is padded by zeros); S are
    diagonals of signs, drawn for each block of p frequencies; l brings the lengths of Gaussian vectors. Within a block
    the frequencies are orthogonal over the p padded inputs.

    signs: (blocks, 3, p) int8. lengths: (m,), the normalisation of the transforms included.

    Source: Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, Orthogonal random features, sec. 4 (structured).
    """

    signs: np.ndarray
    lengths: np.ndarray
    n_inputs: int

    @property
    def n_frequencies(self) -> int:
        """m."""
        return int(self.lengths.size)

    @property
    def matrix(self) -> np.ndarray:
        """The frequencies as a matrix (n_inputs, m), made for the asking."""
        out = np.empty((self.n_inputs, self.n_frequencies), dtype=self.lengths.dtype)
        self.project(np.eye(self.n_inputs, dtype=out.dtype), out, out)
        return out

    def scaled(self, factor: float) -> Hadamard:
        """Frequencies times a factor."""
        return Hadamard(self.signs, self.lengths * self.lengths.dtype.type(factor), self.n_inputs)

    def astype(self, dtype: np.dtype) -> Hadamard:
        """The same in another floating type."""
        return (
            self
            if self.lengths.dtype == dtype
            else Hadamard(self.signs, self.lengths.astype(dtype), self.n_inputs)
        )

    def project(self, rows: Rows, buffer: np.ndarray, out: np.ndarray) -> None:
        """As ``Matrix.project``."""
        if _arrays.is_sparse(rows):
            rows = rows.toarray(out=buffer)
        signs = self.signs.astype(out.dtype)
        work = self.signs.shape[0] * self.signs.shape[2] * 3 * self.signs.shape[2].bit_length()
        _threads.over_rows(
            rows.shape[0],
            work,
            lambda part: _loops.structured_projection(rows[part], signs, self.lengths, out[part]),
        )


Projection = Matrix | Hadamard
