"""What explicit features of a kernel are, and what a family of them says before anything is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np

from chimap._types import ArrayLike, MatrixLike, Rows, Transformed
from chimap.backends.base import RowFeatures
from chimap.kernels import Kernel, as_kernel
from chimap.kernels.exponential import GAMMA_BLOCK, GAMMA_ROWS

if TYPE_CHECKING:
    from chimap.features.additive.base import AdditiveMap


@dataclass(frozen=True, eq=False)
class Folded:
    """f(x) = features(x) . coef + intercept, in the form that is the shortest to compute.

    coef (D, t) and intercept (t,), float64.
    """

    features: RowFeatures
    coef: np.ndarray
    intercept: np.ndarray

    def __call__(self, rows: Rows) -> np.ndarray:
        """f (n, t), float64, of checked rows."""
        Z = np.empty((rows.shape[0], self.features._n_features_out), rows.dtype)
        self.features.features_into(rows, Z)
        return np.asarray(Z @ self.coef.astype(rows.dtype), np.float64) + self.intercept


def fold(features: RowFeatures, coef: np.ndarray, intercept: np.ndarray) -> Folded:
    """A linear model of fitted features, coef (D, t) and intercept (t,), by their ``fold`` where they have one."""
    folded: Folded = (
        features.fold(coef, intercept) if hasattr(features, "fold") else Folded(features, coef, intercept)
    )
    return folded


class FittedFeatures(RowFeatures, Protocol):
    """Features with z(x) . z(y) close to ``kernel_``.

    It may also have ``bound(like)``, the same map by the operations of another array type; ``transform_sparse(rows)``,
    where zeros have features of zeros; and ``fold(coef, intercept)``, a shorter form of a linear model of it.
    """

    @property
    def kernel_(self) -> Kernel:
        """The exact kernel, its parameters set to numbers."""
        ...

    @property
    def n_features_in_(self) -> int:
        """Bins of a row."""
        ...

    def transform(self, X: MatrixLike) -> Transformed:
        """Features (n, D) of rows X (n, bins)."""
        ...

    def describe(self) -> str:
        """What the features are, in a few words."""
        ...


class Features(FittedFeatures, Protocol):
    """A transformer of scikit-learn that learns such features."""

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Self:
        """Learn what depends on the data from a sample of rows."""
        ...


@dataclass(frozen=True)
class FeatureSettings:
    """What an estimator asks of the features of one kernel; see ``HistogramClassifier`` for the fields."""

    kernel: str | Kernel
    gamma: float | str = "mean"
    n_components: int | str = 2048
    n_terms: int | str = 2
    map: AdditiveMap | None = None
    sampling: str = "auto"
    form: str = "pair"
    features: str | Features = "auto"
    landmarks: str | MatrixLike = "kmeans"

    def size(self, usual: int = 1000) -> int:
        """n_components, or ``usual`` for "auto"."""
        return usual if isinstance(self.n_components, str) else self.n_components

    def terms(self, usual: int = 2) -> int:
        """n_terms, or ``usual`` for "auto"."""
        return usual if isinstance(self.n_terms, str) else self.n_terms

    @cached_property
    def exact(self) -> Kernel:
        """The kernel as an object."""
        return as_kernel(self.kernel, self.gamma)


@dataclass(frozen=True)
class Footprint:
    """Sizes that the memory of a fit depends on.

    features: how many there are. mapped: numbers a row that they are made of, beside it. frequencies: columns of a
    matrix (mapped, frequencies) that stays in memory. sample_rows: that fitting needs at least. landmarks: rows, or
    centres of rows, that the features are made of, so that they tell rows they were fitted on from others.
    """

    features: int
    mapped: int = 0
    frequencies: int = 0
    sample_rows: int = 0
    landmarks: int = 0


class Family(Protocol):
    """A line of the catalogue: which kernels it serves, how its features are made, and what they take.

    makes: the class of its features, which may be the family itself.
    """

    makes: ClassVar[type]

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Whether these features approximate the kernel."""
        ...

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """Unfitted ``Features``."""
        ...

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """Sizes of the features of rows of so many bins."""
        ...

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """What fitting them on so many rows takes beside the rows."""
        ...


def gamma_bytes(kernel: Kernel, n_rows: int, row_bytes: float, itemsize: int) -> int:
    """What gamma="mean" takes: some rows and distances of a block of them, the linear ones by way of float64."""
    paired = min(n_rows, GAMMA_ROWS)
    is_linear = kernel.name == "gaussian"
    distances = (16 if is_linear else itemsize + 1) * paired * min(paired, GAMMA_BLOCK)
    return int(paired * row_bytes * (1 + is_linear * 8 / itemsize)) + distances


def median_bytes(kernel: Kernel, n_rows: int, row_bytes: float, itemsize: int) -> int:
    """What kernels take whose parameter is a median of the values, which are put in order."""
    return max(gamma_bytes(kernel, n_rows, row_bytes, itemsize), int(2 * n_rows * row_bytes))
