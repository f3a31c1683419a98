"""Projections onto frequencies: by a matrix, or by fast Walsh-Hadamard transforms that need none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, Protocol, Self, TypeVar

import numpy as np

from chimap import _arrays, _blas, _loops, _onednn, _threads
from chimap._types import Rows, Shape

_LARGE_ANGLE = 4.0  # root of the mean square, in radians
_LOST_BITS = 16  # significant bits of float32 that bfloat16 has not
_TILE_ROWS, _TILE_COLUMNS = (512, 1024)  # of a product on one thread; smaller ones copy the frequencies too often


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

    def in_bfloat16(self, rows: Rows) -> RoundedMatrix:
        """Return the projection with frequencies of 8 significant bits, and inputs of 8 or, if ``rows`` need them, 16.

        Rounding an input changes an angle by up to 2^-9 of its size. If angles are small, that is no more than the
        error of a rounded feature; if they are large, what rounding leaves of the inputs is projected too.
        """
        matrix = self.matrix.astype(np.float32)
        _loops.round_to_bfloat16(matrix)
        angles = _arrays.to_dense(rows @ matrix)
        return RoundedMatrix(matrix, 1 if np.sqrt(np.square(angles).mean()) < _LARGE_ANGLE else 2)


@dataclass(frozen=True, eq=False)
class RoundedMatrix(Matrix):
    """The projection x -> W'x of rounded float32 rows, by units that multiply bfloat16.

    bfloat16 represents W exactly. An entry of x is rounded to the sum of ``n_parts`` bfloat16, 1 or 2. Where there are
    no such units, float32 multiplies the same numbers.
    """

    n_parts: int

    def scaled(self, factor: float) -> Matrix:
        """Return the projection with frequencies multiplied by a factor, which rounds no rows."""
        return Matrix(self.matrix.copy()).scaled(factor)

    def astype(self, dtype: np.dtype) -> Matrix:
        """Return the same projection; in another type than float32 it does not round its rows."""
        return self if self.matrix.dtype == dtype else Matrix(self.matrix.astype(dtype))

    def project(self, rows: Rows, buffer: np.ndarray, out: np.ndarray) -> None:
        """Write the projections of rows into ``out``; see ``Matrix.project``. ``buffer`` is always overwritten."""
        if _blas.is_short(rows):
            super().project(_arrays.map_values(rows, self._rounded_copy), buffer, out)
            return
        if _arrays.is_sparse(rows):
            rows.toarray(out=buffer)
        elif rows is not buffer:
            buffer[:] = rows
        if _onednn.has_bfloat16_units():
            self._multiply(buffer, out)
            return
        _threads.over_rows(buffer.shape[0], buffer.shape[1], lambda part: _round(buffer[part], self.n_parts))
        super().project(buffer, buffer, out)

    def _multiply(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Write the projections of rows, which are overwritten, by products of bfloat16."""
        n, m = self.matrix.shape
        _threads.over_rows(rows.shape[0], n, lambda part: _loops.split_to_bfloat16(rows[part]))
        halves, numbers = rows.view(np.uint16), self._halves

        def multiply(tile: tuple[slice, slice]) -> None:
            some, columns = tile
            for k in range(self.n_parts):
                part = halves[some, k * n : (k + 1) * n]
                _onednn.multiply(part, numbers[:, columns], out[some, columns], add=k > 0)

        _threads.tasks(product(_arrays.slices(len(rows), _TILE_ROWS), _arrays.slices(m, _TILE_COLUMNS)), multiply)

    def addends(self, inputs: N) -> list[N]:
        """See ``Matrix.addends``: bfloat16 numbers, which TF32 represents exactly."""
        nearest = _nearest(inputs)
        return [nearest] if self.n_parts == 1 else [nearest, _nearest(inputs - nearest)]

    def _rounded_copy(self, values: np.ndarray) -> np.ndarray:
        values = values.copy()
        _round(values.reshape(1, -1), self.n_parts)
        return values

    @cached_property
    def _halves(self) -> np.ndarray:
        """The upper halves of the frequencies."""
        return np.ascontiguousarray(self.matrix.view(np.uint16)[:, 1::2])

    def __getstate__(self) -> dict[str, object]:
        """Leave out the halves, which are quickly made, from copies, pickles and messages."""
        return {name: value for name, value in vars(self).items() if name != "_halves"}


def _round(values: np.ndarray, n_parts: int) -> None:
    """Round float32 (rows, columns) to sums of ``n_parts`` bfloat16, in place; float32 represents these exactly."""
    nearest = values.copy() if n_parts > 1 else values
    _loops.round_to_bfloat16(nearest)
    if n_parts > 1:
        values -= nearest
        _loops.round_to_bfloat16(values)
        values += nearest


def _nearest(values: N) -> N:
    """Return float32 numbers rounded to 8 significant bits, by Dekker's splitting."""
    scaled = values * (2.0**_LOST_BITS + 1)
    return scaled - (scaled - values)


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

    def in_bfloat16(self, rows: Rows) -> Hadamard:
        """Return this object: there are no products to be had from units that multiply bfloat16."""
        return self

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
