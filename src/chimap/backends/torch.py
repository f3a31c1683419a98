"""The backend of a torch device: features, sums and factors are computed there and copied back."""

from __future__ import annotations

import itertools
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import cast

import numpy as np
import torch

from chimap import _arrays
from chimap._cholesky import refined
from chimap._errors import InputError
from chimap._messages import Message
from chimap._pieces import Result
from chimap._types import Rows
from chimap._validation import MemoryBudgetError
from chimap.backends.base import (
    Backend,
    BlockedFeatures,
    BlockedMoments,
    BlockKernel,
    Cholesky,
    Clock,
    Keep,
    KernelSum,
    RowFeatures,
    WeightedRows,
)
from chimap.backends.host import HOST
from chimap.moments import FoldMoments, Targets
from chimap.moments.kept_rows import KeptRows, OtherRows

_AHEAD = 2  # pieces of work that may wait on the device while the next is prepared


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Multiply float32 within the block as "highest" (float32), "high" (TF32 on a CUDA device).

    The setting of the caller's program is restored afterwards.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Uploads:
    """Copies numpy arrays to a device on a separate stream while the device computes.

    The copies go through page-locked memory from torch's cache, which reuses a buffer only after the copy from it has
    finished, so no copy reads what the next one writes. Call ``pace`` after each piece of work: it waits for the device
    if more than two pieces are queued, because rows that wait would otherwise fill its memory.
    """

    def __init__(self, device: str | torch.device):
        self.device = torch.device(device)
        self._is_cuda = self.device.type == "cuda"
        self._stream: torch.cuda.Stream | None = torch.cuda.Stream(self.device) if self._is_cuda else None
        self._queued: deque[torch.cuda.Event] = deque()

    def __call__(self, values: np.ndarray) -> torch.Tensor:
        """Return the array on the device, with the dtype and shape of ``values``."""
        # torch warns about read-only arrays, such as rows of a memory-mapped file, so these are copied.
        host = torch.from_numpy(np.require(values, requirements=["C", "W"]))
        if not self._is_cuda:
            return host.to(self.device)
        current = torch.cuda.current_stream(self.device)
        with torch.cuda.stream(self._stream):
            moved = host.pin_memory().to(self.device, non_blocking=True)
        current.wait_stream(self._stream)
        # Its memory is reused only after the work that is queued now has read it.
        moved.record_stream(current)
        return moved

    def pace(self) -> None:
        """Wait for the device if more than two pieces of work are queued."""
        if not self._is_cuda:
            return
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(self.device))
        self._queued.append(done)
        if len(self._queued) > _AHEAD:
            self._queued.popleft().synchronize()


# torch warns at the first sparse tensor; only their products with dense matrices are used here.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")

PIECE_ROWS = 16384  # rows of a fold on the device at once; each piece costs a pass over the float64 sums
_PIECE_NUMBERS = 2**28  # entries of the widest array of a piece, 1 GiB in float32; some four such are alive
_PANEL = 2048  # rows of the symmetric product computed at once; blocks below its diagonal are left out


class TorchMap:
    """Maps rows in CPU memory to features less their shift (D,) on a device.

    ``dtype`` is the precision of the features. Features with no formula for torch tensors are computed on the CPU and
    copied.
    """

    def __init__(self, features: RowFeatures, shift: np.ndarray, dtype: np.dtype, upload: Uploads):
        self._upload, self._features = upload, features
        self._dtype = np.dtype(dtype)
        self._host_shift = shift
        self._shift = upload(shift.astype(dtype))
        self._bound: Callable[[torch.Tensor], torch.Tensor] | None = features.on_device(self._shift)
        self._widest = max(shift.size, features.n_inputs)

    def piece_rows(self, n_bins: int) -> int:
        """Return the number of rows whose features are on the device at once."""
        return max(1, min(PIECE_ROWS, _PIECE_NUMBERS // max(n_bins, self._widest)))

    def upload_rows(self, rows: Rows) -> torch.Tensor | Rows:
        """Return checked rows, dense or CSR, as dense rows on the device; unchanged if the CPU maps them."""
        if self._bound is None:
            return rows
        if not _arrays.is_sparse(rows):
            return self._upload(rows)
        places = np.repeat(np.arange(rows.shape[0]) * rows.shape[1], np.diff(rows.indptr)) + rows.indices
        dense = torch.zeros(rows.shape[0] * rows.shape[1], dtype=self._shift.dtype, device=self._upload.device)
        dense[self._upload(places.astype(np.int64, copy=False))] = self._upload(rows.data)
        return dense.reshape(rows.shape)

    def take(self, uploaded: torch.Tensor | Rows, members: np.ndarray) -> torch.Tensor | Rows:
        """Select rows from the result of ``upload_rows``."""
        return _arrays.take_rows(uploaded, members if self._bound is None else self._upload(members))

    def __call__(self, uploaded: torch.Tensor | Rows) -> torch.Tensor:
        """Return the features (n, D) less the shift for rows from ``upload_rows``."""
        if self._bound is None:
            Z = np.empty((uploaded.shape[0], self._host_shift.size), self._dtype)
            self._features.features_into(uploaded, Z, self._host_shift)
            return self._upload(Z)
        with float32_products("highest"):
            return self._bound(uploaded).sub_(self._shift)


class TorchMoments:
    """Sums over rows on a device, fold by fold; ``sizes`` holds the numbers of features and targets of each fold.

    Products are in the precision of the rows with float32 (or float64) accumulation; sums are in float64.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], upload: Uploads):
        self._upload = upload
        zeros = partial(torch.zeros, dtype=torch.float64, device=upload.device)
        self._squares = [zeros((n, n)) for n, _ in sizes]
        self._sums = [zeros((1 + t, n)) for n, t in sizes]

    def add(self, fold: int, Z: torch.Tensor, Y: Targets) -> None:
        """Add rows Z (rows, D) on the device, float32 or float64, less their shift, with targets Y.

        Rows with weights are multiplied by the roots of these.
        """
        square = self._squares[fold]
        weights, roots = getattr(Y, "weights", None), None
        if weights is not None:
            roots = self._upload(np.sqrt(weights)).to(Z.dtype)
            Z = Z * roots[:, None]
        with float32_products("highest"):
            for first in range(0, Z.shape[1], _PANEL):
                panel = Z[:, first : first + _PANEL]
                square[first : first + _PANEL, first:] += panel.T @ Z[:, first:]
            self._sums[fold] += sums_with(Z, getattr(Y, "plain", Y), roots, self._upload)

    def take_next(self) -> tuple[np.ndarray, np.ndarray]:
        """Wait for the device; remove and return the first fold's sums: squares and [sum z, sum y z']."""
        square, sums = self._squares.pop(0), self._sums.pop(0)
        return square.cpu().numpy(), sums.cpu().numpy()


class TorchFoldSums:
    """``host.FoldSums`` with features and sums on a device; ``finish`` copies the sums back.

    Launching work on a CUDA device does not wait for it, so rows are read, checked and copied while it computes. The
    stage "device" is the time to launch work and, at the end, to wait for it.
    """

    def __init__(self, features: RowFeatures, moments: FoldMoments, device: str):
        self.features, self.moments, self.device = features, moments, device
        self._upload = Uploads(device)
        self._sums = TorchMoments([(fold.n_features, fold.n_targets) for fold in moments.folds], self._upload)
        self._map = TorchMap(features, moments.shift, moments.dtype, self._upload)

    def fresh(self) -> TorchFoldSums:
        """See ``Sums``."""
        return TorchFoldSums(self.features, self.moments.fresh(), self.device)

    def add(self, rows: Rows, targets: Targets, folds: np.ndarray, clock: Clock) -> None:
        """See ``Sums``."""
        n_folds = len(self.moments.folds)
        with clock("device"):
            step = n_folds * self._map.piece_rows(rows.shape[1])
            for first in range(0, rows.shape[0], step):
                piece = slice(first, first + step)
                uploaded = self._map.upload_rows(_arrays.take_rows(rows, piece))
                for fold in range(n_folds):
                    members = np.flatnonzero(folds[piece] == fold)
                    if members.size:
                        Z = self._map(uploaded if n_folds == 1 else self._map.take(uploaded, members))
                        self._sums.add(fold, Z, targets[first + members])
                self._upload.pace()
            # Sums over targets alone are computed on the CPU, once for each chunk.
            for fold in range(n_folds):
                self.moments.add_targets(fold, targets[folds == fold])

    def finish(self, clock: Clock) -> None:
        """See ``Sums``."""
        with clock("device"):
            for fold in range(len(self.moments.folds)):
                self.moments.add_sums(fold, *self._sums.take_next())


class TorchBlockSums:
    """``host.BlockSums`` with features of the given dtype, and sums, on a device."""

    def __init__(self, features: BlockedFeatures, moments: BlockedMoments, dtype: np.dtype, device: str):
        self.features, self.moments, self.dtype, self.device = features, moments, dtype, device
        self._upload = Uploads(device)
        self._sums = TorchMoments([(block.n_features, 0) for block in moments.blocks], self._upload)
        self._borders = [int(border) for border in features.borders_]
        shift = np.concatenate([block.shifts[0] for block in moments.blocks])
        self._map = TorchMap(features, shift, dtype, self._upload)

    def fresh(self) -> TorchBlockSums:
        """See ``Sums``."""
        return TorchBlockSums(self.features, self.moments.fresh(), self.dtype, self.device)

    def add(self, rows: Rows, targets: Targets, folds: np.ndarray, clock: Clock) -> None:
        """See ``Sums``; the targets are (n, 0) with the weights of the rows, and folds are ignored."""
        with clock("device"):
            step = self._map.piece_rows(rows.shape[1])
            for first in range(0, rows.shape[0], step):
                Z = self._map(self._map.upload_rows(_arrays.take_rows(rows, slice(first, first + step))))
                piece_targets = targets[first : first + step]
                for j, (left, right) in enumerate(itertools.pairwise(self._borders)):
                    self._sums.add(j, Z[:, left:right], piece_targets)
                    self.moments.blocks[j].add_targets(piece_targets)
                self._upload.pace()

    def finish(self, clock: Clock) -> None:
        """See ``Sums``."""
        with clock("device"):
            for block in self.moments.blocks:
                block.add_sums(*self._sums.take_next())


def sums_with(Z: torch.Tensor, Y: Targets, scales: torch.Tensor | None, upload: Uploads) -> torch.Tensor:
    """Return [sum s z, sum s y z'], (1 + t, D) on the device of Z, with scales s (n,), or None if all are 1.

    The targets Y are a matrix or kept as ``classes``.
    """
    rows = Z if scales is None else Z * scales[:, None]
    n = Z.shape[0]
    if hasattr(Y, "classes"):
        order = np.argsort(Y.classes, kind="stable").astype(np.int64)
        borders = np.concatenate([[0], np.cumsum(np.bincount(Y.classes, minlength=Y.shape[1]))])
        members = torch.sparse_csr_tensor(
            upload(borders.astype(np.int64)),
            upload(order),
            torch.ones_like(rows[:, 0]),
            (Y.shape[1], n),
            check_invariants=False,
        )
        by_class = (members @ rows).double()
        total = by_class.sum(dim=0, keepdim=True)
        return torch.cat([total, 2 * by_class - total])
    columns = upload(np.column_stack([np.ones(n), Y])).to(rows.dtype)
    return (columns.T @ rows).double()


_TILE = 2**24  # values of a tile, 64 MiB in float32: what is next in line is still in the device's cache
_SUMMED = 128  # columns of a tile whose products with weights are added up in its dtype; further sums are in float64
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

    def __init__(self, kept: KeptRows, upload: Uploads):
        self._upload = upload
        rare = np.flatnonzero(np.diff(kept.starts))
        self._place_of = np.full(kept.n_columns, -1)
        self._place_of[rare] = kept.columns.size + np.arange(rare.size)
        self._n_columns = kept.columns.size + rare.size
        self.rows = self.placed(kept.at(slice(0, kept.n_rows)))

    def placed(self, split: OtherRows) -> torch.Tensor:
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


class TorchKernel(BlockKernel):
    """The training rows of ``features``, which have a map, on a device."""

    def __init__(self, features: KernelSum, device: str):
        self._features, self.upload = features, Uploads(device)
        self._rows = [TorchRows(kept, self.upload) for kept, _ in self._summands]

    @property
    def _summands(self) -> Sequence[tuple[KeptRows, float | None]]:
        summands = self._features.summands
        if summands is None:
            raise TypeError("a kernel without a map has no form for a device")
        return summands

    @property
    def _gammas(self) -> list[float | None]:
        """gamma of each kernel; it may change between calls, unlike the rows."""
        return [gamma for _, gamma in self._summands]

    def add_outputs(self, places: slice, by: Sequence[WeightedRows], out: np.ndarray) -> None:
        for others, weights in by:
            chosen = [own.rows[places] for own in self._rows]
            out[:, : weights.shape[1]] += self._outputs(chosen, self.upload(weights), others.start)

    def outputs(self, rows: Rows, weights: torch.Tensor) -> np.ndarray:
        """Return sum_j K(x, x_j) weights_j (m, t), float64, for checked rows x (m, bins) and weights (n, t) there."""
        others = self._features.others(rows)
        return self._outputs([own.placed(split) for own, split in zip(self._rows, others, strict=True)], weights)

    def _outputs(self, chosen: list[torch.Tensor], weights: torch.Tensor, start: int = 0) -> np.ndarray:
        """Return the outputs of rows, in the form of each kernel's, by the training rows from ``start`` on."""
        m, (n, t) = chosen[0].shape[0], weights.shape
        weights = weights.to(chosen[0].dtype)
        total = torch.zeros((m, t), dtype=torch.float64, device=weights.device)
        step = max(_TILE // max(1, m) // _SUMMED, 2) * _SUMMED
        with float32_products("highest"):
            for own, rows, gamma in zip(self._rows, chosen, self._gammas, strict=True):
                ahead = own.ahead(rows, gamma)
                for first in range(0, n, step):
                    tile = slice(first, min(first + step, n))
                    values = own.values(ahead, gamma, slice(start + tile.start, start + tile.stop))
                    add_products(values, weights[tile], total)
        return np.asarray(total.cpu().numpy())

    def among(self, rows: np.ndarray, row_weights: np.ndarray | None) -> TorchFactor:
        square, diagonal, places = None, np.zeros(rows.size), self.upload(rows)
        with float32_products("highest"):
            for own, gamma in zip(self._rows, self._gammas, strict=True):
                chosen = own.rows[places]
                values = own.values(own.ahead(chosen, gamma), gamma, places)
                square = values if square is None else square.add_(values)
                del values
                diagonal += own.squares(chosen) if gamma is None else 1.0
        assert square is not None  # there is at least one kernel
        return TorchFactor(square, diagonal, row_weights, self.upload)


def add_products(values: torch.Tensor, weights: torch.Tensor, total: torch.Tensor) -> None:
    """Add values (m, n) times weights (n, t) to ``total``, float64; weights of both signs magnify rounding of sums."""
    whole = values.shape[1] // _SUMMED * _SUMMED
    if whole:
        pieces = values[:, :whole].unflatten(1, (-1, _SUMMED)).transpose(0, 1)
        total += (pieces @ weights[:whole].unflatten(0, (-1, _SUMMED))).sum(dim=0, dtype=torch.float64)
    if whole < values.shape[1]:
        total += values[:, whole:] @ weights[whole:]


class TorchFactor:
    """See ``base.BlockFactor``: the values (m, m) and their factor on a device.

    Factor and solutions are in the dtype of the values, refined by residuals in float64.
    """

    def __init__(self, square: torch.Tensor, diagonal: np.ndarray, row_weights: np.ndarray | None, upload: Uploads):
        self.diagonal = diagonal
        self._square, self._upload = square, upload
        self._noise = np.ones(diagonal.size) if row_weights is None else 1 / row_weights
        self._lower = self._rounded_off = torch.empty(0)

    def outputs_by_first(self, weights: np.ndarray) -> np.ndarray:
        """See ``BlockFactor``."""
        k, right = weights.shape[0], self._upload(weights).to(self._square.dtype)
        total = torch.zeros((self._square.shape[0] - k, right.shape[1]), dtype=torch.float64, device=right.device)
        with float32_products("highest"):
            add_products(self._square[k:, :k], right, total)
        return np.asarray(total.cpu().numpy())

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
        norms = [torch.linalg.vector_norm(self._inverse_columns(part), dim=0, dtype=torch.float64) for part in parts]
        return np.square(np.concatenate([norm.cpu().numpy() for norm in norms]))

    def of_inverse_blocks(
        self, groups: Sequence[np.ndarray], call: Callable[[int, np.ndarray], Result]
    ) -> list[Result]:
        """See ``BlockFactor``; columns of the inverse are computed for many groups together."""
        results = []
        for some in _batches(groups):
            X = self._inverse_columns(np.concatenate([groups[k] for k in some]))
            with float32_products("highest"):
                products = (X.T @ X).double().cpu().numpy()
            first = 0
            for k in some:
                own = slice(first, first + groups[k].size)
                results.append(call(k, products[own, own]))
                first = own.stop
        return results

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


def has_room(nbytes: int, device: str) -> bool:
    """Whether a CUDA device has ``nbytes`` free, torch's cache included; True for the CPU."""
    if torch.device(device).type != "cuda":
        return True
    torch.cuda.empty_cache()  # torch's cache of finished work would count as taken
    free, _ = torch.cuda.mem_get_info(torch.device(device))
    return nbytes < free


class TorchCholesky(Cholesky):
    """``lower`` is the factor on the device, float64."""

    def __init__(self, lower: torch.Tensor):
        self._lower = lower

    def _on_device(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self._lower.device)

    def solve(self, B: np.ndarray) -> np.ndarray:
        return np.asarray(torch.cholesky_solve(self._on_device(B), self._lower).cpu().numpy())

    def whiten(self, B: np.ndarray) -> np.ndarray:
        solution = torch.linalg.solve_triangular(self._lower, self._on_device(B), upper=False)
        return np.asarray(solution.cpu().numpy())

    def unwhiten(self, V: np.ndarray) -> np.ndarray:
        solution = torch.linalg.solve_triangular(self._lower.T, self._on_device(V), upper=True)
        return np.asarray(solution.cpu().numpy())

    def coordinates(self, W: np.ndarray) -> np.ndarray:
        return np.asarray((self._lower.T @ self._on_device(W)).cpu().numpy())


class Torch(Backend):
    """A device of torch. Matrices that do not fit the device's memory are factorised on the CPU."""

    speed = 50.0  # an H200 sweeps over 60,000 rows of 784 bins in .37 s, two cores in 22 s

    def __init__(self, device: str):
        self.device = device

    def holds(self, n_rows: int, n_columns: int, block_rows: int, dtype: np.dtype) -> bool:
        return has_room(kernel_bytes(n_rows, n_columns, block_rows, dtype.itemsize), self.device)

    def block_kernel(self, features: KernelSum) -> TorchKernel:
        return TorchKernel(features, self.device)

    def sums(self, features: RowFeatures, moments: FoldMoments, keep: Keep | None = None) -> TorchFoldSums:
        """See ``Backend``. Raises ValueError if ``keep`` is given, because features stay on the device."""
        if keep is not None:
            raise InputError(f"features on {self.device!r} cannot be kept in memory here: keep must be None.")
        return TorchFoldSums(features, moments, self.device)

    def block_sums(self, features: BlockedFeatures, moments: BlockedMoments, dtype: np.dtype) -> TorchBlockSums:
        return TorchBlockSums(features, moments, dtype, self.device)

    def scorer(
        self, features: RowFeatures, shift: np.ndarray, coef: np.ndarray, intercept: np.ndarray, dtype: np.dtype
    ) -> Callable[[Rows], np.ndarray]:
        """See ``Backend``. Exact features with a map are multiplied tile by tile.

        Raises
        ------
        MemoryBudgetError
            If the device has no room for the training rows of exact features.
        """
        summands = getattr(features, "summands", None)
        if summands is not None:
            n_columns = sum(rows.n_columns for rows, _ in summands)
            return self._kernel_scorer(cast("KernelSum", features), n_columns, coef, intercept, dtype)
        upload = Uploads(self.device)
        z = TorchMap(features, shift, dtype, upload)
        weights = upload(coef.astype(dtype, order="C"))
        constant = shift @ coef + intercept

        def score(rows: Rows) -> np.ndarray:
            Z = z(z.upload_rows(rows)).to(weights.dtype)
            with float32_products("highest"):
                outputs = (Z @ weights).double().cpu().numpy()
            return np.asarray(outputs + constant)

        return score

    def _kernel_scorer(
        self, features: KernelSum, n_columns: int, coef: np.ndarray, intercept: np.ndarray, dtype: np.dtype
    ) -> Callable[[Rows], np.ndarray]:
        if not self.holds(coef.shape[0], n_columns, 0, dtype):
            raise MemoryBudgetError(
                Message(
                    "{device=}: the device has no room for the {:,} rows of this model. Predict with {device='cpu'}.",
                    self.device,
                    coef.shape[0],
                )
            )
        kernel = TorchKernel(features, self.device)
        weights = kernel.upload(coef.astype(dtype, order="C"))
        return lambda rows: kernel.outputs(rows, weights) + intercept

    def cholesky(self, square: np.ndarray) -> Cholesky | None:
        """See ``Backend``; the device must hold the matrix, its factor and as much workspace."""
        if not has_room(3 * square.nbytes, self.device):
            return HOST.cholesky(square)
        # The given upper triangle is the lower one of the transpose.
        lower, info = torch.linalg.cholesky_ex(torch.from_numpy(square).to(self.device).T)
        return None if int(info) else TorchCholesky(lower)

    def eigenpairs(self, square: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """See ``Backend``; the device must hold the matrix, its vectors and as much workspace again."""
        if not has_room(5 * square.nbytes, self.device):
            return HOST.eigenpairs(square, wanted)
        values, vectors = torch.linalg.eigh(torch.from_numpy(square).to(self.device), UPLO="U")
        return values.cpu().numpy(), vectors.cpu().numpy()
