"""Moments that are added up on a device of torch, and brought to this machine's at the end."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import torch

from chimap._torch import Uploads, float32_products, has_room
from chimap.moments.folds import FoldMoments
from chimap.moments.symmetric import Symmetric
from chimap.moments.targets import OneVersusAll, Targets, sums_of

# torch says so at the first one; a product with a dense matrix is all that is asked of them here
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")

_PANEL = 2048  # rows of the symmetric product computed together; what lies below its diagonal is left out


class DeviceMoments:
    """Sums over rows on a device, fold by fold: products in the precision of the rows with float32 (or float64)
    accumulation, sums in float64.

    moments: empty or not, on this machine; ``settle`` adds to them what came to the device. upload: to the device.
    """

    def __init__(self, moments: FoldMoments, upload: Uploads):
        self.moments, self._upload = moments, upload
        n, t = moments.folds[0].n_features, moments.folds[0].n_targets
        zeros = partial(torch.zeros, dtype=torch.float64, device=upload.device)
        self._squares = [zeros((n, n)) for _ in moments.folds]
        self._sums = [zeros((1 + t, n)) for _ in moments.folds]

    def add(self, fold: int, Z: torch.Tensor, Y: Targets) -> None:
        """Add rows Z (rows, D) on the device, bfloat16, float32 or float64, less their shift, times targets Y."""
        square = self._squares[fold]
        with float32_products("highest"):
            for first in range(0, Z.shape[1], _PANEL):
                panel = Z[:, first : first + _PANEL]
                square[first : first + _PANEL, first:] += wide_product(panel.T, Z[:, first:])
            self._sums[fold] += sums_with(Z, Y, self._upload)

    def count(self, fold: int, Y: Targets) -> None:
        """Count targets whose rows are added in pieces: a matrix of all pairs of targets, here on the host, once."""
        target_sum, targets = sums_of(Y)
        host = self.moments.folds[fold]
        host.count += Y.shape[0]
        host.target_sum += target_sum
        host.targets += targets

    def settle(self) -> None:
        """Wait for the device, add what is there to the moments of this machine, and give the memory there back."""
        for host in self.moments.folds:
            square, sums = self._squares.pop(0), self._sums.pop(0)
            host.features.flat += Symmetric.of(square.cpu().numpy()).flat
            found = sums.cpu().numpy()
            host.feature_sum += found[0]
            host.cross += found[1:].T


def wide_product(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """A B, accumulated and returned in float32 where A and B are bfloat16, and in their own type otherwise."""
    if A.dtype != torch.bfloat16:
        return A @ B
    if A.is_cuda:
        return torch.mm(A, B, out_dtype=torch.float32)
    return (
        A.float() @ B.float()
    )  # torch has no such product for this machine; a product of two is exact in float32


def sums_with(Z: torch.Tensor, Y: Targets, upload: Uploads) -> torch.Tensor:
    """[sum z, sum y z'], (1 + t, D) on the device of Z: see ``targets.sums_with``."""
    rows = Z.float() if Z.dtype == torch.bfloat16 else Z
    n = Z.shape[0]
    if isinstance(Y, OneVersusAll):
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


def has_room_for_eigenpairs(n: int, device: str) -> bool:
    """Whether the device holds a matrix (n, n), its vectors and as much again to work in, in float64."""
    return has_room(5 * 8 * n**2, device)


def eigenpairs(square: np.ndarray, device: str) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (n,) ascending and vectors (n, n) of a matrix whose upper triangle is given, float64."""
    values, vectors = torch.linalg.eigh(torch.from_numpy(square).to(device), UPLO="U")
    return values.cpu().numpy(), vectors.cpu().numpy()
