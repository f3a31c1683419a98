"""Features and their sums on a torch device; rows are copied through pinned memory while the device computes."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from chimap import _arrays
from chimap._types import Rows, RowTargets
from chimap.backends.base import BlockedFeatures, BlockedMoments, Clock, FoldedMoments, RowFeatures
from chimap.backends.uploads import Uploads, float32_products

# torch warns at the first sparse tensor; only their products with dense matrices are used here.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")

PIECE_ROWS = 16384  # rows of a fold on the device at once; each piece costs a pass over the float64 sums
_PIECE_NUMBERS = 2**28  # entries of the widest array of a piece, 1 GiB in float32; some four such are alive
_PANEL = 2048  # rows of the symmetric product computed at once; blocks below its diagonal are left out


class TorchMap:
    """Maps rows in CPU memory to features less their shift (D,) on a device.

    ``dtype`` is the precision of the features before rounding; fitted features with ``is_rounded`` give bfloat16.
    Features with no formula for torch tensors are computed on the CPU and copied. Projections whose result is then
    rounded to bfloat16 are made in TF32, which is four times as precise.
    """

    def __init__(self, features: RowFeatures, shift: np.ndarray, dtype: np.dtype, upload: Uploads):
        self._upload, self._features = upload, features
        self._dtype = np.dtype(dtype)
        self._is_rounded = bool(getattr(features, "is_rounded", False))
        self._host_shift = shift
        self._shift = upload(shift.astype(dtype))
        inner: Any = features
        if self._is_rounded:
            inner = inner.features
        self._bound: Callable[[torch.Tensor], torch.Tensor] | None = (
            inner.bound(self._shift) if hasattr(inner, "bound") else None
        )
        self._widest = max(shift.size, getattr(inner, "_n_inputs", 0))

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
        dense = torch.zeros(
            rows.shape[0] * rows.shape[1], dtype=self._shift.dtype, device=self._upload.device
        )
        dense[self._upload(places.astype(np.int64, copy=False))] = self._upload(rows.data)
        return dense.reshape(rows.shape)

    def take(self, uploaded: torch.Tensor | Rows, members: np.ndarray) -> torch.Tensor | Rows:
        """Select rows from the result of ``upload_rows``."""
        return _arrays.take_rows(uploaded, members if self._bound is None else self._upload(members))

    def __call__(self, uploaded: torch.Tensor | Rows) -> torch.Tensor:
        """Return the features (n, D) less the shift for rows from ``upload_rows``."""
        dtype = torch.bfloat16 if self._is_rounded else self._shift.dtype
        if self._bound is None:
            Z = np.empty((uploaded.shape[0], self._host_shift.size), self._dtype)
            self._features.features_into(uploaded, Z, self._host_shift)
            return self._upload(Z).to(dtype)
        with float32_products("high" if self._is_rounded else "highest"):
            features = self._bound(uploaded)
        # The difference is rounded as it is written, in a single pass over memory.
        return torch.sub(features, self._shift, out=torch.empty_like(features, dtype=dtype))


class TorchMoments:
    """Sums over rows on a device, fold by fold; ``sizes`` holds the numbers of features and targets of each fold.

    Products are in the precision of the rows with float32 (or float64) accumulation; sums are in float64.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], upload: Uploads):
        self._upload = upload
        zeros = partial(torch.zeros, dtype=torch.float64, device=upload.device)
        self._squares = [zeros((n, n)) for n, _ in sizes]
        self._sums = [zeros((1 + t, n)) for n, t in sizes]

    def add(self, fold: int, Z: torch.Tensor, Y: RowTargets) -> None:
        """Add rows Z (rows, D) on the device, bfloat16, float32 or float64, less their shift, with targets Y.

        Rows with weights are multiplied by the roots of these, in float32 if they are bfloat16.
        """
        square = self._squares[fold]
        weights, roots = getattr(Y, "weights", None), None
        if weights is not None:
            Z = Z.float() if Z.dtype == torch.bfloat16 else Z
            roots = self._upload(np.sqrt(weights)).to(Z.dtype)
            Z = Z * roots[:, None]
        with float32_products("highest"):
            for first in range(0, Z.shape[1], _PANEL):
                panel = Z[:, first : first + _PANEL]
                square[first : first + _PANEL, first:] += wide_product(panel.T, Z[:, first:])
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

    def __init__(self, features: RowFeatures, moments: FoldedMoments, device: str):
        self.features, self.moments, self.device = features, moments, device
        self._upload = Uploads(device)
        self._sums = TorchMoments([(fold.n_features, fold.n_targets) for fold in moments.folds], self._upload)
        self._map = TorchMap(features, moments.shift, moments.dtype, self._upload)

    def fresh(self) -> TorchFoldSums:
        """See ``Sums``."""
        return TorchFoldSums(self.features, self.moments.fresh(), self.device)

    def add(self, rows: Rows, targets: RowTargets, folds: np.ndarray, clock: Clock) -> None:
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

    def add(self, rows: Rows, targets: RowTargets, folds: np.ndarray, clock: Clock) -> None:
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


def wide_product(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """Return A B, accumulated and returned in float32 if A and B are bfloat16, and otherwise in their dtype."""
    if A.dtype != torch.bfloat16:
        return A @ B
    if A.is_cuda:
        return torch.mm(A, B, out_dtype=torch.float32)
    # torch has no such product on the CPU; in float32 the product of two bfloat16 numbers is exact.
    return A.float() @ B.float()


def sums_with(Z: torch.Tensor, Y: RowTargets, scales: torch.Tensor | None, upload: Uploads) -> torch.Tensor:
    """Return [sum s z, sum s y z'], (1 + t, D) on the device of Z, with scales s (n,), or None if all are 1.

    The targets Y are a matrix or kept as ``classes``.
    """
    rows = Z.float() if Z.dtype == torch.bfloat16 else Z
    rows = rows if scales is None else rows * scales[:, None]
    n = Z.shape[0]
    if hasattr(Y, "classes"):
        order = np.argsort(Y.classes, kind="stable").astype(np.int64)
        borders = np.concatenate([[0], np.cumsum(np.bincount(Y.classes, minlength=Y.shape[1]))])
        members = torch.sparse_csr_tensor(
            upload(borders.astype(np.int64)), upload(order), torch.ones_like(rows[:, 0]), (Y.shape[1], n),
            check_invariants=False,
        )  # fmt: skip
        by_class = (members @ rows).double()
        total = by_class.sum(dim=0, keepdim=True)
        return torch.cat([total, 2 * by_class - total])
    columns = upload(np.column_stack([np.ones(n), Y])).to(rows.dtype)
    return (columns.T @ rows).double()
