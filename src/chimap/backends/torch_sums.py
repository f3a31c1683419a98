"""Features and their sums on a device of torch: rows go there in pinned memory while it works."""

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

# torch says so at the first one; a product with a dense matrix is all that is asked of them here
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")

PIECE_ROWS = 16384  # of a fold, on the device together: the float64 sums are gone over once for each piece
_PIECE_NUMBERS = 2**28  # of the widest array of a piece, 1 GiB in float32; some four such are alive at a time
_PANEL = 2048  # rows of the symmetric product computed together; what lies below its diagonal is left out


class TorchMap:
    """Rows of this machine to features less their shift on a device, in its precision.

    features: fitted; those with ``is_rounded`` come as bfloat16. shift: (D,). dtype: of numbers before rounding.
    Features without a formula for other arrays than numpy's are computed here and copied. Projections of what is
    rounded to bfloat16 next are made in TF32, four times as precise as that.
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
        """Rows whose features are on the device together."""
        return max(1, min(PIECE_ROWS, _PIECE_NUMBERS // max(n_bins, self._widest)))

    def upload_rows(self, rows: Rows) -> torch.Tensor | Rows:
        """Checked rows, dense or CSR, as dense ones on the device; themselves where their features are made here."""
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
        """Some of the rows that ``upload_rows`` gave."""
        return _arrays.take_rows(uploaded, members if self._bound is None else self._upload(members))

    def __call__(self, uploaded: torch.Tensor | Rows) -> torch.Tensor:
        """Features (n, D) less the shift of the rows that ``upload_rows`` gave."""
        made = torch.bfloat16 if self._is_rounded else self._shift.dtype
        if self._bound is None:
            Z = np.empty((uploaded.shape[0], self._host_shift.size), self._dtype)
            self._features.features_into(uploaded, Z, self._host_shift)
            return self._upload(Z).to(made)
        with float32_products("high" if self._is_rounded else "highest"):
            features = self._bound(uploaded)
        # rounded as it is written: one pass over memory
        return torch.sub(features, self._shift, out=torch.empty_like(features, dtype=made))


class TorchMoments:
    """Sums over rows on a device, fold by fold: products in the precision of the rows with float32 (or float64)
    accumulation, sums in float64.

    sizes: features and targets of each fold.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], upload: Uploads):
        self._upload = upload
        zeros = partial(torch.zeros, dtype=torch.float64, device=upload.device)
        self._squares = [zeros((n, n)) for n, _ in sizes]
        self._sums = [zeros((1 + t, n)) for n, t in sizes]

    def add(self, fold: int, Z: torch.Tensor, Y: RowTargets) -> None:
        """Add rows Z (rows, D) on the device, bfloat16, float32 or float64, less their shift, times targets Y.

        Rows with weights are multiplied by the roots of these, in float32 where they are bfloat16.
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
        """Wait for the device, and take what the first fold that is left has summed: squares and [sum z, sum y z']."""
        square, sums = self._squares.pop(0), self._sums.pop(0)
        return square.cpu().numpy(), sums.cpu().numpy()


class TorchFoldSums:
    """``host.FoldSums`` with features and sums on a device; ``finish`` brings the sums to this machine.

    Launching work on a CUDA device does not wait for it, so that rows are read, checked and copied while it computes;
    the stage "device" is the time to launch and, at the end, to wait.
    """

    def __init__(self, features: RowFeatures, moments: FoldedMoments, device: str):
        self.features, self.moments, self.device = features, moments, device
        self._upload = Uploads(device)
        self._sums = TorchMoments([(own.n_features, own.n_targets) for own in moments.folds], self._upload)
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
                there = self._map.upload_rows(_arrays.take_rows(rows, piece))
                for fold in range(n_folds):
                    members = np.flatnonzero(folds[piece] == fold)
                    if members.size:
                        Z = self._map(there if n_folds == 1 else self._map.take(there, members))
                        self._sums.add(fold, Z, targets[first + members])
                self._upload.pace()
            for fold in range(n_folds):  # all pairs of targets, here, once a chunk
                self.moments.add_targets(fold, targets[folds == fold])

    def finish(self, clock: Clock) -> None:
        """See ``Sums``."""
        with clock("device"):
            for fold in range(len(self.moments.folds)):
                self.moments.add_sums(fold, *self._sums.take_next())


class TorchBlockSums:
    """``host.BlockSums`` with features and sums on a device. dtype: of the features."""

    def __init__(self, features: BlockedFeatures, moments: BlockedMoments, dtype: np.dtype, device: str):
        self.features, self.moments, self.dtype, self.device = features, moments, dtype, device
        self._upload = Uploads(device)
        self._sums = TorchMoments([(own.n_features, 0) for own in moments.blocks], self._upload)
        self._borders = [int(border) for border in features.borders_]
        shift = np.concatenate([own.shifts[0] for own in moments.blocks])
        self._map = TorchMap(features, shift, dtype, self._upload)

    def fresh(self) -> TorchBlockSums:
        """See ``Sums``."""
        return TorchBlockSums(self.features, self.moments.fresh(), self.dtype, self.device)

    def add(self, rows: Rows, targets: RowTargets, folds: np.ndarray, clock: Clock) -> None:
        """See ``Sums``; the targets are none (n, 0), with the weights of the rows, and folds are not looked at."""
        with clock("device"):
            step = self._map.piece_rows(rows.shape[1])
            for first in range(0, rows.shape[0], step):
                Z = self._map(self._map.upload_rows(_arrays.take_rows(rows, slice(first, first + step))))
                own = targets[first : first + step]
                for j, (left, right) in enumerate(itertools.pairwise(self._borders)):
                    self._sums.add(j, Z[:, left:right], own)
                    self.moments.blocks[j].add_targets(own)
                self._upload.pace()

    def finish(self, clock: Clock) -> None:
        """See ``Sums``."""
        with clock("device"):
            for own in self.moments.blocks:
                own.add_sums(*self._sums.take_next())


def wide_product(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """A B, accumulated and returned in float32 where A and B are bfloat16, and in their own type otherwise."""
    if A.dtype != torch.bfloat16:
        return A @ B
    if A.is_cuda:
        return torch.mm(A, B, out_dtype=torch.float32)
    # torch has no such product for this machine; a product of two is exact in float32
    return A.float() @ B.float()


def sums_with(Z: torch.Tensor, Y: RowTargets, scales: torch.Tensor | None, upload: Uploads) -> torch.Tensor:
    """[sum s z, sum s y z'], (1 + t, D) on the device of Z, of targets that are a matrix or kept as ``classes`` and
    scales s (n,), None where all are 1."""
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
