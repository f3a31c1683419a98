"""Values of a kernel with its training rows on a device, made in tiles, multiplied and forgotten; factors of blocks.

The values are functions of mapped rows u (see ``base.KernelSum``): products u'v, or exp(-gamma |u - v|^2). A training
row is stored as [v, 1, |v|^2], so that one product with [2 gamma u, -gamma |u|^2, -gamma] is the exponent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from chimap._cholesky import refined
from chimap._types import Rows
from chimap.backends.base import KernelSum, SplitRows, TrainingRows
from chimap.backends.uploads import Uploads, float32_products

_TILE = 2**24  # values of a tile, 64 MiB in float32: what is next in line is still in the device's cache
_FEWEST_COLUMNS, _MOST_COLUMNS = 1024, 8192  # of a tile, whose outputs are summed up in float64
_PIECE = 2**26  # bytes of rows that are copied to the device at once
_STEP = 2048  # columns of an inverse that are computed together, and rows that are converted to float64
_ALIGNED = 8  # rows and tiles are as wide as a multiple of so many numbers: products of others are slower


def kernel_bytes(n_rows: int, n_columns: int, block_rows: int, itemsize: int) -> int:
    """Return the bytes of mapped rows on a device, of a block of the kernel matrix, its factor and workspace."""
    return itemsize * (n_rows * _width(n_columns) + 4 * block_rows**2 + 4 * _TILE)


class TorchRows:
    """The training rows of a kernel on a device, as ``rows`` (n, width): [v, 1, |v|^2] and zeros.

    The first columns are those that ``kept`` stores dense, then those of its others that are not empty.
    """

    def __init__(self, kept: TrainingRows, upload: Uploads):
        self._upload = upload
        rare = np.flatnonzero(np.diff(kept.starts))
        self._place_of = np.full(kept.n_columns, -1)
        self._place_of[rare] = kept.columns.size + np.arange(rare.size)
        self._n_columns = kept.columns.size + rare.size
        self.rows = self.placed(kept.at(slice(0, kept.n_rows)))

    def placed(self, split: SplitRows) -> torch.Tensor:
        """Return rows (m, p), split as the kept ones, in the form of ``rows``, without columns that are empty there."""
        squares = split.squares
        m, n_dense, width = squares.size, split.dense.shape[1], _width(self._n_columns)
        out = torch.zeros((m, width), dtype=_dtype(squares.dtype), device=self._upload.device)
        step = max(1, _PIECE // (width * squares.itemsize))
        for first in range(0, m, step):
            piece = slice(first, min(first + step, m))
            out[piece, :n_dense] = self._upload(split.dense[piece])
            out[piece, self._n_columns] = 1
            out[piece, self._n_columns + 1] = self._upload(squares[piece])
            if split.rare is not None:
                some = split.rare[piece]
                columns = self._place_of[some.indices]
                rows = np.repeat(np.arange(piece.start, piece.stop), np.diff(some.indptr))
                stored = columns >= 0
                places = (rows * width + columns)[stored]
                out.view(-1)[self._upload(places)] = self._upload(some.data[stored])
            self._upload.pace()
        return out

    def ahead(self, rows: torch.Tensor, gamma: float | None) -> torch.Tensor:
        """Return what rows in the form of ``rows`` are multiplied by: its products with training rows are exponents.

        Where gamma is None, they are the products u'v.
        """
        ends = slice(self._n_columns, self._n_columns + 2)
        if gamma is None:
            ahead = rows.clone()
            ahead[:, ends] = 0
            return ahead
        ahead = rows * (2 * gamma)
        ahead[:, ends.start] = -gamma * rows[:, ends.stop - 1]
        ahead[:, ends.stop - 1] = -gamma
        return ahead

    def squares(self, rows: torch.Tensor) -> np.ndarray:
        """Return |u|^2 (m,), float64, of rows in the form of ``rows``."""
        return np.asarray(rows[:, self._n_columns + 1].double().cpu().numpy())

    def values(self, ahead: torch.Tensor, gamma: float | None, places: slice | torch.Tensor) -> torch.Tensor:
        """Return the values of the kernel, for rows from ``ahead``, with the training rows at some places."""
        values = ahead @ self.rows[places].T
        # rounding may make a distance of equal rows negative
        return values if gamma is None else values.clamp_(max=0).exp_()


class TorchKernel:
    """See ``base.BlockKernel``: the training rows of ``features``, which have a map, on a device."""

    def __init__(self, features: KernelSum, device: str):
        self._features, self._upload = features, Uploads(device)
        self._rows = [TorchRows(kept, self._upload) for kept, _ in self._summands]

    @property
    def _summands(self) -> Sequence[tuple[TrainingRows, float | None]]:
        summands = self._features.summands
        if summands is None:
            raise TypeError("a kernel without a map has no form for a device")
        return summands

    @property
    def _gammas(self) -> list[float | None]:
        """gamma of each kernel; it may change between calls, unlike the rows."""
        return [gamma for _, gamma in self._summands]

    def add_outputs(self, places: slice, weights: np.ndarray, out: np.ndarray) -> None:
        """See ``BlockKernel``."""
        out += self._outputs([own.rows[places] for own in self._rows], weights)

    def outputs(self, rows: Rows, weights: np.ndarray) -> np.ndarray:
        """Return sum_j K(x, x_j) weights_j (m, t), float64, for checked rows x (m, bins) and weights (n, t)."""
        others = self._features.others(rows)
        return self._outputs(
            [own.placed(split) for own, split in zip(self._rows, others, strict=True)], weights
        )

    def _outputs(self, chosen: list[torch.Tensor], weights: np.ndarray) -> np.ndarray:
        """Return the outputs of rows, in the form of each kernel's, by the first training rows."""
        m, (n, t) = chosen[0].shape[0], weights.shape
        on_device = self._upload(weights).to(chosen[0].dtype)
        total = torch.zeros((m, t), dtype=torch.float64, device=self._upload.device)
        step = min(max(_TILE // max(1, m) // _ALIGNED * _ALIGNED, _FEWEST_COLUMNS), _MOST_COLUMNS)
        with float32_products("highest"):
            for own, rows, gamma in zip(self._rows, chosen, self._gammas, strict=True):
                ahead = own.ahead(rows, gamma)
                for first in range(0, n, step):
                    tile = slice(first, min(first + step, n))
                    total += own.values(ahead, gamma, tile) @ on_device[tile]
        return np.asarray(total.cpu().numpy())

    def among(self, rows: np.ndarray, row_weights: np.ndarray | None) -> TorchFactor:
        """See ``BlockKernel``."""
        square, diagonal, places = None, np.zeros(rows.size), self._upload(rows)
        with float32_products("highest"):
            for own, gamma in zip(self._rows, self._gammas, strict=True):
                chosen = own.rows[places]
                values = own.values(own.ahead(chosen, gamma), gamma, places)
                square = values if square is None else square.add_(values)
                del values
                diagonal += own.squares(chosen) if gamma is None else 1.0
        assert square is not None  # there is at least one kernel
        return TorchFactor(square, diagonal, row_weights, self._upload)


class TorchFactor:
    """See ``base.BlockFactor``: the values (m, m) and their factor on a device.

    Factor and solutions are in the dtype of the values, refined by residuals in float64.
    """

    def __init__(
        self, square: torch.Tensor, diagonal: np.ndarray, row_weights: np.ndarray | None, upload: Uploads
    ):
        self.diagonal = diagonal
        self._square, self._upload = square, upload
        self._noise = np.ones(diagonal.size) if row_weights is None else 1 / row_weights
        self._lower = self._rounded_off = torch.empty(0)

    def lift(self, constant: float) -> None:
        """See ``BlockFactor``."""
        self._square += constant
        self.diagonal = self.diagonal + constant

    def factorise(self, alpha: float) -> bool:
        """See ``BlockFactor``."""
        self._lower = torch.empty(0)  # frees the factor of another strength
        exact = self._upload(self.diagonal + alpha * self._noise)
        inside = self._square.diagonal()
        inside.copy_(exact)
        self._rounded_off = (exact - inside.double())[:, None]
        with float32_products("highest"):
            self._lower, info = torch.linalg.cholesky_ex(self._square)
        return not int(info)

    def solve_for(self, right: np.ndarray, steps: int) -> np.ndarray | None:
        """See ``BlockFactor``."""
        with float32_products("highest"):
            return refined(self._solve, self._product, right, steps)

    def _solve(self, B: np.ndarray) -> np.ndarray:
        """Return A^-1 B by the factor."""
        right = self._upload(B).to(self._lower.dtype)
        return np.asarray(torch.cholesky_solve(right, self._lower).cpu().numpy())

    def _product(self, A: np.ndarray) -> np.ndarray:
        """Return the matrix times A, in float64."""
        right = self._upload(A)
        out = self._rounded_off * right
        for first in range(0, out.shape[0], _STEP):
            rows = slice(first, first + _STEP)
            out[rows] += self._square[rows].double() @ right
        return np.asarray(out.cpu().numpy())

    def inverse_diagonal(self, first: int) -> np.ndarray:
        """See ``BlockFactor``."""
        m = self.diagonal.size
        parts = [np.arange(start, min(start + _STEP, m)) for start in range(first, m, _STEP)]
        norms = [
            torch.linalg.vector_norm(self._inverse_columns(part), dim=0, dtype=torch.float64)
            for part in parts
        ]
        return np.square(np.concatenate([norm.cpu().numpy() for norm in norms]))

    def inverse_blocks(self, groups: Sequence[np.ndarray], visit: Callable[[int, np.ndarray], None]) -> None:
        """See ``BlockFactor``; columns of the inverse are computed for many groups together."""
        for some in _batches(groups):
            X = self._inverse_columns(np.concatenate([groups[k] for k in some]))
            with float32_products("highest"):
                products = (X.T @ X).double().cpu().numpy()
            first = 0
            for k in some:
                own = slice(first, first + groups[k].size)
                visit(k, products[own, own])
                first = own.stop

    def _inverse_columns(self, places: np.ndarray) -> torch.Tensor:
        """Return the columns of L^-1 at some places, from the first of these on; A = L L'."""
        start = int(places.min())
        corner = self._lower[start:, start:]
        columns = torch.zeros((corner.shape[0], places.size), dtype=corner.dtype, device=corner.device)
        columns[self._upload(places - start), torch.arange(places.size, device=corner.device)] = 1
        with float32_products("highest"):
            return torch.linalg.solve_triangular(corner, columns, upper=False)


def _batches(groups: Sequence[np.ndarray]) -> list[list[int]]:
    """Return the numbers of groups, in lists of about ``_STEP`` rows together."""
    ends = np.cumsum([group.size for group in groups])
    batch_of = (ends - 1) // _STEP
    return [np.flatnonzero(batch_of == batch).tolist() for batch in np.unique(batch_of)]


def _width(n_columns: int) -> int:
    """Return the numbers of a stored row: its columns and two more, in a multiple of ``_ALIGNED``."""
    return -(-(n_columns + 2) // _ALIGNED) * _ALIGNED


def _dtype(dtype: np.dtype) -> torch.dtype:
    kind: torch.dtype = getattr(torch, dtype.name)
    return kind
