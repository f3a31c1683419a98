"""Sums and products of kernels, which are kernels again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from chimap._validation import check_positive
from chimap.kernels.base import Kernel


@dataclass(frozen=True)
class _Combined(Kernel):
    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(self.kernels))
        for kernel in self.kernels:
            if not isinstance(kernel, Kernel):
                raise ValueError(f"kernels must be kernel objects such as chi2; got {kernel!r}.")
        if not self.kernels:
            raise ValueError("kernels must hold at least one kernel; got none.")

    @property
    def is_signed(self) -> bool:  # type: ignore[override]
        """Whether bins may be negative: only where every part allows it."""
        return all(kernel.is_signed for kernel in self.kernels)

    def fitted(self, X: Any, random_state: int | None = 0) -> Self:
        """This kernel with every part fitted to data X."""
        return replace(self, kernels=tuple(kernel.fitted(X, random_state) for kernel in self.kernels))


@dataclass(frozen=True)
class Sum(_Combined):
    """K(x, y) = sum_j w_j K_j(x, y), with weights w_j > 0; usually written ``chi2 + 0.5 * other``.

    >>> import numpy as np
    >>> from chimap import chi2, intersection
    >>> (chi2 + 0.5 * intersection)(np.array([[0.25, 0.75]]), np.array([[0.75, 0.25]]))
    array([[1.]])
    """

    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", tuple(self.weights) or (1.0,) * len(self.kernels))
        if len(self.weights) != len(self.kernels):
            raise ValueError(f"weights must be one a kernel, {len(self.kernels)}; got {len(self.weights)}.")
        for weight in self.weights:
            check_positive(weight, "each of weights (a kernel stays one under positive weights only)")

    @property
    def name(self) -> str:  # type: ignore[override]
        """The parts joined by "+"."""
        return "+".join(
            kernel.name if weight == 1 else f"{weight:g}*{kernel.name}"
            for weight, kernel in zip(self.weights, self.kernels, strict=True)
        )

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Gram matrix (n, m). Parameters that the parts take from data are those of X."""
        return self._sum(lambda kernel: kernel(X, Y))

    def diagonal(self, X: Any) -> np.ndarray:
        """K(x, x) of every row, (n,)."""
        return self._sum(lambda kernel: kernel.diagonal(X))

    def distance(self, X: Any, Y: Any = None) -> np.ndarray:
        """Squared distances (n, m): the sum of those of the parts."""
        return self._sum(lambda kernel: kernel.distance(X, Y))

    @property
    def degree(self) -> float | None:
        """The largest of the parts'; None where one has none."""
        degrees = [kernel.degree for kernel in self.kernels]
        return None if None in degrees else max(d for d in degrees if d is not None)

    def rescaled(self, factor: float) -> Sum:
        """Of the parts rescaled, with weights that make up for degrees below the largest."""
        if self.degree is None:
            return self
        parts = zip(self.weights, self.kernels, strict=True)
        weights = tuple(w * factor ** (self.degree - (k.degree or 0.0)) for w, k in parts)
        return Sum(tuple(kernel.rescaled(factor) for kernel in self.kernels), weights)

    def _sum(self, of: Callable[[Kernel], np.ndarray]) -> np.ndarray:
        # one part at a time, so that no more than two matrices are in memory
        total = self.weights[0] * of(self.kernels[0])
        for weight, kernel in zip(self.weights[1:], self.kernels[1:], strict=True):
            total += weight * of(kernel)
        return total


@dataclass(frozen=True)
class Product(_Combined):
    """K(x, y) = prod_j K_j(x, y); usually written ``chi2 * other``.

    >>> import numpy as np
    >>> from chimap import chi2
    >>> (chi2 * chi2)(np.array([[0.25, 0.75]]), np.array([[0.75, 0.25]]))
    array([[0.5625]])
    """

    @property
    def degree(self) -> float | None:
        """The sum of the parts'; None where one has none."""
        degrees = [kernel.degree for kernel in self.kernels]
        return None if None in degrees else sum(d for d in degrees if d is not None)

    def rescaled(self, factor: float) -> Product:
        """Of the parts rescaled."""
        return Product(tuple(kernel.rescaled(factor) for kernel in self.kernels))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The parts joined by "*", sums in brackets."""
        return "*".join(f"({k.name})" if isinstance(k, Sum) else k.name for k in self.kernels)

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """Gram matrix (n, m). Parameters that the parts take from data are those of X."""
        return math.prod((kernel(X, Y) for kernel in self.kernels[1:]), start=self.kernels[0](X, Y))

    def diagonal(self, X: Any) -> np.ndarray:
        """K(x, x) of every row, (n,)."""
        return math.prod((k.diagonal(X) for k in self.kernels[1:]), start=self.kernels[0].diagonal(X))

    def distance(self, X: Any, Y: Any = None) -> np.ndarray:
        """Squared distances (n, m), from the Gram matrix: those of close rows lose digits."""
        kernel = self.fitted(X)
        own = kernel.diagonal(X)
        other = own if Y is None else kernel.diagonal(Y)
        return np.maximum(own[:, None] + other - 2 * kernel(X, Y), 0)
