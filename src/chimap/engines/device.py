"""The pass on a device of torch: rows go there in pinned memory while it works, features and moments stay there."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap import _arrays
from chimap.engines.progress import Stopwatch
from chimap.features.rounded import RoundedFeatures
from chimap.moments import FoldMoments, Targets, fold_of_rows

if TYPE_CHECKING:
    from chimap._torch import Uploads
    from chimap.features.blocks import BlockFeatures, BlockMoments

PIECE_ROWS = 16384  # of a fold, on the device together: the float64 sums are gone over once for each piece
_PIECE_NUMBERS = 2**28  # of the widest array of a piece, 1 GiB in float32; some four such are alive at a time


class DevicePass:
    """``local.Pass`` with features and moments on a device; ``finish`` brings the moments to this machine.

    prepare, features, encode, moments, seed, clock: as there. Launching work on a CUDA device does not wait for it, so
    that rows are read, checked and copied while it computes; the stage "device" is the time to launch and, at the
    end, to wait.
    """

    keep = None

    def __init__(
        self,
        prepare: Callable[[Any, Any, str], Any],
        features: Any,
        encode: Callable[[np.ndarray], Targets],
        moments: FoldMoments,
        seed: int,
        clock: Stopwatch,
        device: str,
    ):
        from chimap._torch import Uploads
        from chimap.moments.device import DeviceMoments

        self.prepare, self.encode, self.seed, self.clock = prepare, encode, seed, clock
        self.moments = moments
        self._upload = Uploads(device)
        self._sums = DeviceMoments(moments, self._upload)
        self._map = DeviceMap(features, moments.shift, moments.dtype, self._upload)

    def add(self, X: Any, y: Any, start: int, name: str) -> None:
        """See ``local.Pass.add``."""
        n_folds = len(self.moments.folds)
        with self.clock("check"):
            rows = self.prepare(X, start, name)
            targets = self.encode(y)
            folds = fold_of_rows(start, rows.shape[0], n_folds, self.seed)
        with self.clock("device"):
            step = n_folds * self._map.piece_rows(rows.shape[1])
            for first in range(0, rows.shape[0], step):
                part = slice(first, first + step)
                there = self._map.upload_rows(_arrays.take_rows(rows, part))
                for fold in range(n_folds):
                    members = np.flatnonzero(folds[part] == fold)
                    if members.size:
                        Z = self._map(there if n_folds == 1 else self._map.take(there, members))
                        self._sums.add(fold, Z, targets[first + members])
                self._upload.pace()
            for fold in range(n_folds):
                self._sums.count(fold, targets[folds == fold])

    def finish(self) -> None:
        """Wait for the device, and add its sums to ``moments``; nothing is added after that."""
        with self.clock("device"):
            self._sums.settle()


class DeviceBlockPass:
    """``local.BlockPass`` with features and moments on a device; see ``DevicePass``. dtype: of the features."""

    def __init__(
        self,
        prepare: Callable[[Any, Any, str], Any],
        features: BlockFeatures,
        moments: BlockMoments,
        clock: Stopwatch,
        dtype: np.dtype,
        device: str,
    ):
        from chimap._torch import Uploads
        from chimap.moments.device import DeviceMoments

        self.prepare, self.moments, self.clock = prepare, moments, clock
        self._upload = Uploads(device)
        self._sums = [DeviceMoments(FoldMoments.of([own], dtype), self._upload) for own in moments.blocks]
        self._borders = [int(border) for border in features.borders_]
        shift = np.concatenate([own.shifts[0] for own in moments.blocks])
        self._map = DeviceMap(features, shift, dtype, self._upload)

    def add(self, X: Any, y: Any, start: int, name: str) -> None:
        """See ``local.BlockPass.add``."""
        with self.clock("check"):
            rows = self.prepare(X, start, name)
        with self.clock("device"):
            step = self._map.piece_rows(rows.shape[1])
            for first in range(0, rows.shape[0], step):
                Z = self._map(self._map.upload_rows(_arrays.take_rows(rows, slice(first, first + step))))
                no_targets = np.zeros((Z.shape[0], 0))
                for own, (left, right) in zip(self._sums, itertools.pairwise(self._borders), strict=True):
                    own.add(0, Z[:, left:right], no_targets)
                    own.count(0, no_targets)
                self._upload.pace()

    def finish(self) -> None:
        """See ``DevicePass.finish``."""
        with self.clock("device"):
            for own in self._sums:
                own.settle()


class DeviceMap:
    """Rows of this machine to features less their shift on a device, in its precision.

    features: fitted; ``RoundedFeatures`` come as bfloat16. shift: (D,). dtype: of numbers before they are rounded.
    upload: ``Uploads`` to the device. Features without a formula for other arrays than numpy's are computed here and
    copied. Projections of what is rounded to bfloat16 next are made in TF32, four times as precise as that.
    """

    def __init__(self, features: Any, shift: np.ndarray, dtype: np.dtype, upload: Uploads):
        import torch

        self._torch, self._upload = torch, upload
        self._dtype, self._features = np.dtype(dtype), features
        self._is_rounded = isinstance(features, RoundedFeatures)
        self._host_shift = shift
        self._shift = upload(shift.astype(dtype))
        inner = features.features if self._is_rounded else features
        self._bound: Callable[[Any], Any] | None = (
            inner.bound(self._shift) if hasattr(inner, "bound") else None
        )
        self._widest = max(shift.size, getattr(inner, "_n_inputs", 0))

    def piece_rows(self, n_bins: int) -> int:
        """Rows whose features are on the device together."""
        return max(1, min(PIECE_ROWS, _PIECE_NUMBERS // max(n_bins, self._widest)))

    def upload_rows(self, rows: Any) -> Any:
        """Checked rows, dense or CSR, as dense ones on the device; themselves where their features are made here."""
        if self._bound is None:
            return rows
        if not _arrays.is_sparse(rows):
            return self._upload(rows)
        places = np.repeat(np.arange(rows.shape[0]) * rows.shape[1], np.diff(rows.indptr)) + rows.indices
        dense = self._torch.zeros(
            rows.shape[0] * rows.shape[1], dtype=self._shift.dtype, device=self._upload.device
        )
        dense[self._upload(places.astype(np.int64, copy=False))] = self._upload(rows.data)
        return dense.reshape(rows.shape)

    def take(self, uploaded: Any, members: np.ndarray) -> Any:
        """Some of the rows that ``upload_rows`` gave."""
        return _arrays.take_rows(uploaded, members if self._bound is None else self._upload(members))

    def __call__(self, uploaded: Any) -> Any:
        """Features (n, D) less the shift of the rows that ``upload_rows`` gave."""
        from chimap._torch import float32_products

        made = self._torch.bfloat16 if self._is_rounded else self._shift.dtype
        if self._bound is None:
            Z = np.empty((uploaded.shape[0], self._host_shift.size), self._dtype)
            self._features.features_into(uploaded, Z, self._host_shift)
            return self._upload(Z).to(made)
        with float32_products("high" if self._is_rounded else "highest"):
            found = self._bound(uploaded)
        # rounded as it is written: one pass over memory
        return self._torch.sub(found, self._shift, out=self._torch.empty_like(found, dtype=made))


def scorer(
    features: Any, shift: np.ndarray, coef: np.ndarray, intercept: np.ndarray, dtype: np.dtype, device: str
) -> Callable[[Any], np.ndarray]:
    """f(x) = coef' z(x) + intercept of checked rows, (n, t) float64, computed on the device."""
    from chimap._torch import Uploads, float32_products

    upload = Uploads(device)
    z = DeviceMap(features, shift, dtype, upload)
    weights = upload(coef.astype(dtype, order="C"))
    constant = shift @ coef + intercept

    def score(rows: Any) -> np.ndarray:
        Z = z(z.upload_rows(rows)).to(weights.dtype)
        with float32_products("highest"):
            found: np.ndarray = (Z @ weights).double().cpu().numpy()
        return found + constant

    return score
