"""The pass on a device of torch: rows go there in pinned memory while it works, features and moments stay there."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from chimap import _arrays
from chimap.engines.progress import Stopwatch
from chimap.moments import FoldMoments, Targets, fold_of_rows
from chimap.rounded import RoundedFeatures

PIECE_ROWS = (
    16384  # whose features are on the device together: the sums, in float64, are gone over once for each
)


def on_host(device: str) -> bool:
    """Whether the compiled loops and the BLAS of this machine do the work: device "cpu"."""
    return device == "cpu"


def check_device(device: Any) -> None:
    """Refuse what is no device of this machine. Raises ValueError, or ImportError where torch is missing."""
    if not isinstance(device, str):
        raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:1'; got {device!r}.")
    if on_host(device):
        return
    if not device.startswith("cuda"):
        raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:1'; got {device!r}.")
    if importlib.util.find_spec("torch") is None:
        raise ImportError(f"device={device!r} needs torch: pip install 'chimap[torch]', or use device='cpu'.")
    import torch

    if not torch.cuda.is_available() or torch.device(device).index not in (
        None,
        *range(torch.cuda.device_count()),
    ):
        found = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise ValueError(
            f"device={device!r}: torch {torch.__version__} finds {found} CUDA device(s) here. Use device='cpu', or a "
            "build of torch for this machine's device."
        )


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
        from chimap.moments.device import DeviceMoments

        self.prepare, self.encode, self.seed, self.clock = prepare, encode, seed, clock
        self.moments = moments
        self._sums = DeviceMoments(moments, device)
        self._map = DeviceMap(features, moments.shift, moments.dtype, device)

    def add(self, X: Any, y: Any, start: int, name: str) -> None:
        """See ``local.Pass.add``."""
        n_folds = len(self.moments.folds)
        with self.clock("check"):
            rows = self.prepare(X, start, name)
            targets = self.encode(y)
            folds = fold_of_rows(start, rows.shape[0], n_folds, self.seed)
        with self.clock("device"):
            for fold in range(n_folds):
                for chosen in _pieces(np.flatnonzero(folds == fold)):
                    Z = self._map(_arrays.take_rows(rows, chosen))
                    self._sums.add(fold, Z, targets[chosen])

    def finish(self) -> None:
        """Wait for the device, and add its sums to ``moments``."""
        with self.clock("device"):
            self._sums.settle()


class DeviceMap:
    """Rows of this machine to features less their shift on a device, in its precision.

    features: fitted; ``RoundedFeatures`` come as bfloat16. shift: (D,). dtype: of numbers before they are rounded.
    Features without a formula for other arrays than numpy's are computed here and copied.
    """

    def __init__(self, features: Any, shift: np.ndarray, dtype: np.dtype, device: str):
        import torch

        self._torch, self._device = torch, torch.device(device)
        self._dtype, self._features = np.dtype(dtype), features
        self._is_rounded = isinstance(features, RoundedFeatures)
        self._host_shift = shift
        self._shift = torch.from_numpy(shift.astype(dtype)).to(self._device)
        inner = features.features if self._is_rounded else features
        self._bound = inner.bound(self._shift) if hasattr(inner, "bound") else None
        self._copies = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None

    def __call__(self, rows: Any) -> Any:
        """Features (n, D) less the shift of checked rows, dense or CSR."""
        if self._bound is None:
            Z = np.empty((rows.shape[0], self._host_shift.size), self._dtype)
            self._features.features_into(rows, Z, self._host_shift)
            found = self._upload(Z)
        else:
            found = self._bound(self._upload_rows(rows)) - self._shift
        return found.to(self._torch.bfloat16) if self._is_rounded else found

    def _upload_rows(self, rows: Any) -> Any:
        if not _arrays.is_sparse(rows):
            return self._upload(np.ascontiguousarray(rows))
        places = np.repeat(np.arange(rows.shape[0]) * rows.shape[1], np.diff(rows.indptr)) + rows.indices
        dense = self._torch.zeros(rows.shape[0] * rows.shape[1], dtype=self._shift.dtype, device=self._device)
        dense[self._upload(places)] = self._upload(np.ascontiguousarray(rows.data))
        return dense.reshape(rows.shape)

    def _upload(self, values: np.ndarray) -> Any:
        """A copy on the device, made beside the work that runs there."""
        host = self._torch.from_numpy(values)
        if self._copies is None:
            return host.to(self._device)
        current = self._torch.cuda.current_stream(self._device)
        with self._torch.cuda.stream(self._copies):
            moved = host.pin_memory().to(self._device, non_blocking=True)
        current.wait_stream(self._copies)
        moved.record_stream(current)
        return moved


def scorer(
    features: Any, shift: np.ndarray, coef: np.ndarray, intercept: np.ndarray, dtype: np.dtype, device: str
) -> Callable[[Any], np.ndarray]:
    """f(x) = coef' z(x) + intercept of checked rows, (n, t) float64, computed on the device."""
    import torch

    from chimap.moments.device import wide_product

    z = DeviceMap(features, shift, dtype, device)
    weights = torch.from_numpy(coef.astype(dtype)).to(device)
    constant = shift @ coef + intercept

    def score(rows: Any) -> np.ndarray:
        Z = z(rows)
        found = wide_product(Z, weights) if Z.dtype == weights.dtype else Z.to(weights.dtype) @ weights
        return found.double().cpu().numpy() + constant

    return score


def _pieces(members: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, members.size, PIECE_ROWS):
        yield members[first : first + PIECE_ROWS]
