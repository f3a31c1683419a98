"""A kernel with a width for each group of bins, the result of kernel learning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from chimap._types import MatrixLike
from chimap.kernels.base import Factors, Kernel, Product
from chimap.kernels.columns import OnColumns
from chimap.kernels.exponential import Exponential
from chimap.kernels.skewed import Skewed


def with_width(kernel: Exponential | Skewed, width: float) -> Exponential | Skewed:
    """Return the kernel with inverse width s: gamma = s^2/2 for an exponential kernel, sigma = s for a skewed one.

    >>> from chimap import Gaussian
    >>> with_width(Gaussian(), 2.0).gamma
    2.0
    """
    if isinstance(kernel, Exponential):
        return replace(kernel, gamma=width**2 / 2)
    return replace(kernel, sigma=width)


@dataclass(frozen=True, eq=False)
class Anisotropic(Kernel):
    """Product kernel K(x, y) = prod_j k_{s_j}(x_j, y_j), with x_j the bins of group j and s_j its inverse width.

    For exp(-gamma D^2) it is exp(-sum_j s_j^2/2 D_j^2), D_j^2 the squared distance over the group: a Gaussian kernel in
    which the mapped bins of the group are multiplied by s_j. For the skewed kernels s_j is sigma in the group.

    Parameters
    ----------
    kernel : Exponential, Gaussian, SkewedChi2 or SkewedIntersection
        The kernel k; its own width is not used.
    groups : array-like of int of shape (bins,)
        Group of each bin, numbered from 0.
    widths : array-like of shape (n_groups,)
        Positive inverse widths s.

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, sec. 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import Gaussian
    >>> k = Anisotropic(Gaussian(), groups=[0, 1], widths=[1.0, 2.0])
    >>> k(np.array([[0.0, 0.0]]), np.array([[1.0, 0.5]])).round(4)  # exp(-1/2 - 4/2 / 4)
    array([[0.3679]])
    """

    degree = 0.0

    kernel: Exponential | Skewed
    groups: np.ndarray
    widths: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", np.asarray(self.groups, dtype=np.int64))
        object.__setattr__(self, "widths", np.asarray(self.widths, dtype=np.float64))

    def factors(self, columns: np.ndarray | None = None) -> Factors | None:
        """Return those of ``product``, whose gammas are numbers."""
        return self.product.factors(columns)

    def with_factors(self, factors: Iterator[Kernel]) -> Anisotropic:
        """Return the kernel itself, whose widths are its own."""
        self.product.with_factors(factors)
        return self

    def rescaled(self, factor: float) -> Anisotropic:
        """Return the rescaled kernel.

        For an exponential kernel the widths are divided by factor^(degree/2), degree that of its inner kernel; for a
        skewed kernel c is multiplied by factor.
        """
        if isinstance(self.kernel, Exponential):
            power = self.kernel.kernel.degree / 2
            return replace(self, kernel=self.kernel.rescaled(factor), widths=self.widths / factor**power)
        return replace(self, kernel=self.kernel.rescaled(factor))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the kernel, with the number of widths."""
        return f"{self.kernel.name} of {self.widths.size} width{'' if self.widths.size == 1 else 's'}"

    @property
    def is_signed(self) -> bool:  # type: ignore[override]
        """Whether bins may be negative."""
        return bool(self.kernel.is_signed)

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        return self.product(X, Y)

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return ones of shape (n,)."""
        return self.kernel.diagonal(X)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared distances 2 - 2 K(x, y), (n, m)."""
        return 2 - 2 * self.product(X, Y)

    @property
    def product(self) -> Product:
        """The same kernel as a product of kernels of the groups."""
        return Product(
            tuple(
                OnColumns(with_width(self.kernel, float(width)), np.flatnonzero(self.groups == j))
                for j, width in enumerate(self.widths)
            )
        )
