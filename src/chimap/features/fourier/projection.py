"""Projections onto frequencies: by a matrix, or by fast Walsh-Hadamard transforms that need none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol, Self, TypeVar

import numpy as np

from chimap import _arrays, _blas, _loops, _threads
from chimap._types import Rows, Shape


class Numbers(Protocol):
    """An array of any library, or what stands for one in a graph."""

    def __mul__(self, factor: float, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...


N = TypeVar("N", bound=Numbers)


@dataclass(frozen=True, eq=False)
class Matrix:
    """The projection x -> W'x onto frequencies W (n_inputs, m)."""

    matrix: Annotated[np.ndarray, Shape("inputs", "outputs")]

    @property
    def n_inputs(self) -> int:
        """Number of entries of x."""
        return int(self.matrix.shape[0])

    @property
    def n_frequencies(self) -> int:
        """Number of frequencies, m."""
        return int(self.matrix.shape[1])

    def scaled(self, factor: float) -> Matrix:
        """Multiply the frequencies by a factor, in place, and return this object."""
        matrix = self.matrix
        matrix *= matrix.dtype.type(factor)
        return self

    def astype(self, dtype: np.dtype) -> Matrix:
        """Return the same projection in another floating type."""
        return self if self.matrix.dtype == dtype else Matrix(self.matrix.astype(dtype))

    def project(self, rows: Rows, buffer: np.ndarray, out: np.ndarray) -> None:
        """Write rows @ W into out[:, :m].

        ``rows`` (n, n_inputs) are dense or CSR and have the dtype of ``out`` (n, m or more), which is C-contiguous.
        ``buffer`` (n, n_inputs) is used for CSR rows.
        """
        _blas.project(rows, self.matrix, buffer, out)

    def addends(self, inputs: N) -> list[N]:
        """Return what is multiplied by W and added up, for float32 inputs (n, n_inputs) of anything that does sums."""
        return [inputs]


@dataclass(frozen=True, eq=False)
class Hadamard:
    """The projection x -> the first m of diag(l) H S_3 H S_2 H S_1 x, block after block, which stores no matrix.

    It takes O(m log n_inputs) operations for each row. H is the Walsh-Hadamard transform of order p, the smallest power
    of two from n_inputs on (x is padded with zeros). Each S is a diagonal of signs, drawn for each block of p
    frequencies; l gives the frequencies the lengths of Gaussian vectors. Within a block the frequencies are orthogonal
    over the p padded inputs.

    ``signs`` has shape (blocks, 3, p), int8; ``lengths`` has shape (m,) and includes the normalisation of the
    transforms.

    Source: Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, Orthogonal random features, sec. 4 (structured).
    """

    signs: Annotated[np.ndarray, Shape("blocks", 3, "padded")]
    lengths: Annotated[np.ndarray, Shape("m")]
    n_inputs: int

    @property
    def n_frequencies(self) -> int:
        """Number of frequencies, m."""
        return int(self.lengths.size)

    @property
    def matrix(self) -> np.ndarray:
        """The frequencies as a matrix (n_inputs, m), built at each access."""
        out = np.empty((self.n_inputs, self.n_frequencies), dtype=self.lengths.dtype)
        self.project(np.eye(self.n_inputs, dtype=out.dtype), out, out)
        return out

    def scaled(self, factor: float) -> Hadamard:
        """Return the projection with frequencies multiplied by a factor."""
        return Hadamard(self.signs, self.lengths * self.lengths.dtype.type(factor), self.n_inputs)

    def astype(self, dtype: np.dtype) -> Hadamard:
        """Return the same projection in another floating type."""
        return self if self.lengths.dtype == dtype else Hadamard(self.signs, self.lengths.astype(dtype), self.n_inputs)

    def addends(self, inputs: N) -> list[N]:
        """See ``Matrix.addends``."""
        return [inputs]

    def project(self, rows: Rows, buffer: np.ndarray, out: np.ndarray) -> None:
        """Write the projections of rows into ``out``; see ``Matrix.project``."""
        if _arrays.is_sparse(rows):
            rows = rows.toarray(out=buffer)
        signs = self.signs.astype(out.dtype)
        work = self.signs.shape[0] * self.signs.shape[2] * 3 * self.signs.shape[2].bit_length()
        _threads.over_rows(
            rows.shape[0], work, lambda part: _loops.structured_projection(rows[part], signs, self.lengths, out[part])
        )


Projection = Matrix | Hadamard
