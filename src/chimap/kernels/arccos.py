"""The arc-cosine of an additive kernel, which the signs of stable projections estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._types import MatrixLike, Rows
from chimap._validation import row_sums
from chimap.kernels.additive import AdditiveKernel
from chimap.kernels.base import Kernel, paired_rows


@dataclass(frozen=True)
class ArccosKernel(Kernel):
    """Arc-cosine kernel K(x, y) = 1 - (2/pi) arccos k(x, y), in [-1, 1], with k an additive kernel of normalised rows.

    The kernel normalises the rows itself, so that their scale does not matter: sum |x_i| = 1, or sum |x_i|^gamma = 1
    for the gamma-homogeneous variant, and k(x, x) = 1. An empty row is similar to nothing, itself included: K = 0.

    K equals (2/pi) arcsin k. The power series of the arcsine has no negative coefficients, so K is positive definite
    because k is.

    Parameters
    ----------
    kernel : AdditiveKernel
        The additive kernel k.

    Raises
    ------
    ValueError
        If ``kernel`` is not additive.

    References
    ----------
    Li, Samorodnitsky and Hopcroft, Sign Cauchy projections and chi-square kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import chi2
    >>> ArccosKernel(chi2)(np.array([[0.25, 0.75], [1, 3], [4, 0]])).round(4)
    array([[1.   , 1.   , 0.262],
           [1.   , 1.   , 0.262],
           [0.262, 0.262, 1.   ]])
    """

    degree = 0.0  # the scale of rows does not count

    kernel: AdditiveKernel

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, AdditiveKernel):
            raise InputError(f"ArccosKernel takes an additive kernel such as chi2; got {self.kernel!r}.")

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the additive kernel, preceded by "arccos-"."""
        return f"arccos-{self.kernel.name}"

    @property
    def is_signed(self) -> bool:  # type: ignore[override]
        """Whether bins may be negative."""
        return self.kernel.is_signed

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m) in the dtype of the data, computed in float64.

        Raises DataError for NaN, infinite or (unless the kernel is signed) negative entries.
        """
        left, right, filled, dtype = self._normalised_pair(X, Y)
        return np.where(filled, 1 - 2 * self._angle(left, right), 0).astype(dtype)

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return 1 for every row, and 0 for an empty row, (n,)."""
        rows, _ = paired_rows(X, None, signed=self.is_signed)
        return (_arrays.row_norms_l1(rows) > 0).astype(rows.dtype)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared distances (4/pi) arccos k(x, y), (n, m), without cancellation for close rows."""
        left, right, filled, dtype = self._normalised_pair(X, Y)
        left_filled, right_filled = (np.asarray(_arrays.row_norms_l1(rows) > 0, float) for rows in (left, right))
        return np.where(filled, 4 * self._angle(left, right), left_filled[:, None] + right_filled).astype(dtype)

    def _angle(self, left: Rows, right: Rows) -> np.ndarray:
        """Return arccos k / pi, computed as (2/pi) arcsin(D/2) with D^2 = 2 - 2k.

        Near k = 1 the arc-cosine of k would lose half of the digits, and rounding could take k out of [-1, 1].
        """
        squared = self.kernel.distance(left, right)
        half = np.sqrt(squared, out=squared)
        half *= 0.5
        return (2 / np.pi) * np.arcsin(np.minimum(half, 1, out=half), out=half)

    def _normalised_pair(self, X: MatrixLike, Y: MatrixLike | None) -> tuple[Rows, Rows, np.ndarray, np.dtype]:
        rows, others = paired_rows(X, Y, signed=self.is_signed)
        dtype = rows.dtype
        left = self._normalised(rows, "X")
        right = left if Y is None else self._normalised(others, "Y")
        filled = np.outer(_arrays.row_norms_l1(left) > 0, _arrays.row_norms_l1(right) > 0)
        return left, right, filled, dtype

    def _normalised(self, rows: Rows, name: str) -> Rows:
        row_sums(rows, name=name)
        rows = _arrays.unit_rows(_arrays.as_rows(rows, np.float64))
        if self.kernel.gamma == 1:
            return rows
        diagonal = self.kernel.diagonal(rows)
        return _arrays.scale_rows(rows, np.where(diagonal > 0, diagonal, 1) ** (-1 / self.kernel.gamma))
