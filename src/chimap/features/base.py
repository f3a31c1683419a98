"""Protocols of explicit kernel features and of their families, and what a family knows before fitting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from chimap._types import ArrayLike, MatrixLike, Rows, Transformed
from chimap.backends.base import RowFeatures
from chimap.kernels import Kernel, as_kernel
from chimap.kernels.exponential import GAMMA_BLOCK, GAMMA_ROWS

if TYPE_CHECKING:
    from chimap.features.additive.base import AdditiveMap


@dataclass(frozen=True, eq=False)
class Folded:
    """A linear model f(x) = features(x) . coef + intercept in the form that is cheapest to evaluate.

    ``coef`` (D, t) and ``intercept`` (t,) are float64.
    """

    features: RowFeatures
    coef: np.ndarray
    intercept: np.ndarray

    def __call__(self, rows: Rows) -> np.ndarray:
        """Return f (n, t), float64, of checked rows."""
        Z = np.empty((rows.shape[0], self.features._n_features_out), rows.dtype)
        self.features.features_into(rows, Z)
        return np.asarray(Z @ self.coef.astype(rows.dtype), np.float64) + self.intercept


def fold(features: RowFeatures, coef: np.ndarray, intercept: np.ndarray) -> Folded:
    """Return a linear model of fitted features in its cheapest form, by their method ``fold`` if they have one.

    ``coef`` has shape (D, t), ``intercept`` (t,).
    """
    folded: Folded = (
        features.fold(coef, intercept) if hasattr(features, "fold") else Folded(features, coef, intercept)
    )
    return folded


def simplified(features: RowFeatures, coef: np.ndarray, intercept: np.ndarray) -> Folded:
    """Return a linear model of fitted features in the form that a fit keeps, by their method of this name if any.

    Features that only served to find the weights are replaced by those that they are made of: principal components by
    the features of their blocks, and values of an additive kernel with every row by the map of the kernel.
    """
    kept: Folded = (
        features.simplified(coef, intercept)
        if hasattr(features, "simplified")
        else Folded(features, coef, intercept)
    )
    return kept


class FittedFeatures(RowFeatures, Protocol):
    """Fitted features with z(x) . z(y) close to ``kernel_``.

    They may also have ``bound(like)``, the same map by the operations of another array library;
    ``transform_sparse(rows)``, where features of zeros are zeros; ``fold(coef, intercept)``, a cheaper form of a
    linear model of them; and ``simplified(coef, intercept)``, the form that a fit keeps.
    """

    @property
    def kernel_(self) -> Kernel:
        """The exact kernel, its parameters set to numbers."""
        ...

    @property
    def n_features_in_(self) -> int:
        """Number of bins of a row."""
        ...

    def transform(self, X: MatrixLike) -> Transformed:
        """Return the features (n, D) of rows X (n, bins)."""
        ...

    def describe(self) -> str:
        """Return a description of the features in a few words."""
        ...


class Features(FittedFeatures, Protocol):
    """A scikit-learn transformer that learns such features."""

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Self:
        """Learn what depends on the data from a sample of rows."""
        ...


@dataclass(frozen=True)
class FeatureSettings:
    """Settings of the features of one kernel, as an estimator passes them.

    ``HistogramClassifier`` documents the fields.
    """

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
        """Return n_components, or ``usual`` for "auto"."""
        return usual if isinstance(self.n_components, str) else self.n_components

    def terms(self, usual: int = 2) -> int:
        """Return n_terms, or ``usual`` for "auto"."""
        return usual if isinstance(self.n_terms, str) else self.n_terms

    @cached_property
    def exact(self) -> Kernel:
        """The kernel as an object."""
        return as_kernel(self.kernel, self.gamma)


@dataclass(frozen=True)
class Footprint:
    """Sizes that the memory of a fit depends on.

    Parameters
    ----------
    features : int
        Number of features.
    mapped : int, default=0
        Length of the mapped row that features are computed from, held in memory beside the row.
    frequencies : int, default=0
        Columns of a matrix (mapped, frequencies) that stays in memory.
    sample_rows : int, default=0
        Rows that fitting needs at least.
    landmarks : int, default=0
        Rows of the sample, or centres of such rows, that the features are made of. Such features tell rows that they
        were fitted on from others.
    is_random : bool, default=False
        Whether the frequencies are those of random features, which are rounded where bfloat16 multiplies.
    """

    features: int
    mapped: int = 0
    frequencies: int = 0
    sample_rows: int = 0
    landmarks: int = 0
    is_random: bool = False


class Family(Protocol):
    """An entry of the catalogue: which kernels it serves, how it makes features, and what memory they take.

    It may be the class of its features itself. If it is not, a class attribute ``makes`` names that class, so that an
    object given as ``features`` is planned by the family; see ``features.families.made_by``. Features of several blocks
    stand side by side, unless a class attribute ``joins`` names another class; see ``features.families.joined_by``.
    """

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Return whether these features approximate the kernel."""
        ...

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """Return unfitted ``Features`` for the settings of an estimator."""
        ...

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """Return the sizes of the features for rows of n_bins bins."""
        ...

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes that fitting on n_rows rows takes beside the rows."""
        ...


def gamma_bytes(kernel: Kernel, n_rows: int, row_bytes: float, itemsize: int) -> int:
    """Return the bytes for gamma="mean": a sample of rows and a block of distances, float64 for Gaussian kernels."""
    paired = min(n_rows, GAMMA_ROWS)
    is_linear = kernel.name == "gaussian"
    distances = (16 if is_linear else itemsize + 1) * paired * min(paired, GAMMA_BLOCK)
    return int(paired * row_bytes * (1 + is_linear * 8 / itemsize)) + distances


def median_bytes(kernel: Kernel, n_rows: int, row_bytes: float, itemsize: int) -> int:
    """Return the bytes for kernels with a parameter that is a median of the values, which are sorted."""
    return max(gamma_bytes(kernel, n_rows, row_bytes, itemsize), int(2 * n_rows * row_bytes))
