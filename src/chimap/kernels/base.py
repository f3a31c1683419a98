"""The base class of kernels, and the sums and products of kernels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Real
from operator import add, mul
from typing import Any, Self, TypeAlias

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._frames import is_frame, names_of
from chimap._messages import Message
from chimap._onnx import Value
from chimap._types import JSON, MatrixLike, Rows
from chimap._validation import DataError, check_histograms, check_positive

Factors: TypeAlias = list[tuple[Any, np.ndarray | None]]
"""Exponential kernels, each with its columns, None for all."""


class Kernel(ABC):
    """An exact kernel, the reference for the feature maps that approximate it.

    Calling it with rows X (n, bins) and Y (m, bins), dense or sparse, returns the Gram matrix (n, m) in the floating
    type of the data; Y defaults to X. It raises DataError for NaN, infinite or (unless ``is_signed``) negative entries,
    and for rows of different widths. Kernels add and multiply: ``a + b``, ``a * b`` and ``0.5 * a`` are kernels too.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import Exponential, chi2, intersection
    >>> X = np.array([[0.25, 0.75], [0.75, 0.25]])
    >>> (0.5 * chi2 + 0.5 * intersection)(X).tolist()
    [[1.0, 0.625], [0.625, 1.0]]
    """

    name: str
    is_signed = False  # whether bins may be negative
    linear_in: str | None = None  # what machines with this kernel are linear in, such as "rows"; None for others
    compares_entries = False  # whether values come from the entries that two rows share, and not from products

    @property
    def degree(self) -> float | None:
        """Degree of homogeneity, or None if the kernel has none.

        Scaling both rows by a factor c, and the parameters of the kernel as ``rescaled`` does, multiplies the kernel by
        c^degree.
        """
        return None

    @property
    def inner(self) -> Kernel | None:
        """The additive or linear kernel whose mapped rows give the values, by their products or distances.

        It is the kernel itself, or the one of an exponential; None for other kernels.
        """
        return None

    @property
    def own_map(self) -> type | None:
        """The class of features that serves this kernel alone; None for kernels that families of features serve."""
        return None

    @property
    def by_name(self) -> JSON | None:
        """How a model file keeps a kernel that is made of functions: its name, as ``kernel``, and its parameters.

        None for kernels whose fields are plain values. ``restored`` reads it.
        """
        return None

    def restored(self, state: JSON) -> Kernel:
        """Return the kernel of this name with the parameters in ``by_name``.

        Parameters
        ----------
        state : dict
            What ``by_name`` returned.
        """
        raise InputError(f"the kernel {self.name!r} is not kept by its name")

    def factors(self, columns: np.ndarray | None = None) -> Factors | None:
        """Return exponential kernels whose product is this kernel, each with its columns, None for all.

        Parameters
        ----------
        columns : array of int, default=None
            The columns that the kernel is of; None for all.

        Returns
        -------
        list of (Exponential, array of int or None), or None
            None for a kernel that is no such product.
        """
        return None

    def with_factors(self, factors: Iterator[Kernel]) -> Kernel:
        """Return the kernel with others in place of its ``factors``.

        Parameters
        ----------
        factors : iterator of Exponential
            As many as there are, in their order.
        """
        return self

    def rescaled(self, factor: float) -> Kernel:
        """Return the kernel K' with K'(factor x, factor y) = factor^degree K(x, y); itself if it has no parameters.

        Parameters
        ----------
        factor : float
            Positive factor by which the rows are scaled.
        """
        return self

    def fitted(self, X: MatrixLike, random_state: int | None = 0) -> Self:
        """Return this kernel with every parameter that depends on data set to a number; itself if it has none.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            The rows from which the parameters are computed.
        random_state : int or None, default=0
            Seed for the sample of rows, where a sample is enough.
        """
        return self

    @abstractmethod
    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m), whose entry i, j is K(X[i], Y[j]).

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows on the left.
        Y : array or sparse matrix of shape (m, bins), default=None
            Rows on the right; X if None.
        """

    @abstractmethod
    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return K(x, x) for every row, an array of shape (n,).

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            The rows.
        """

    @abstractmethod
    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared distances K(x, x) + K(y, y) - 2 K(x, y), an array of shape (n, m).

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows on the left.
        Y : array or sparse matrix of shape (m, bins), default=None
            Rows on the right; X if None.
        """

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        """Return the kernel values (n, m) of rows x (n, bins) with constant rows Y (m, bins) as nodes of an ONNX graph.

        Parameters
        ----------
        x : Value
            The rows, in float64.
        Y : ndarray of shape (m, bins)
            Rows that are written into the graph, in float64.

        Raises
        ------
        ValueError
            For kernels that have no such form.
        """
        raise InputError(
            Message(
                "the kernel {!r} of the landmarks cannot be written as ONNX. Export the weights ({format='weights'}), "
                "or fit with another kernel.",
                self.name,
            )
        )

    def __add__(self, other: Kernel) -> Kernel:
        """Return the sum of two kernels."""
        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        """Return the product with another kernel, or with a positive number."""
        if isinstance(other, Kernel):
            return Product((self, other))
        return Sum((self,), (float(other),)) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__


@dataclass(frozen=True)
class _Combined(Kernel):
    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(self.kernels))
        for kernel in self.kernels:
            if not isinstance(kernel, Kernel):
                raise InputError(f"kernels must be kernel objects such as chi2; got {kernel!r}.")
        if not self.kernels:
            raise InputError("kernels must hold at least one kernel; got none.")

    @property
    def is_signed(self) -> bool:  # type: ignore[override]
        """Whether bins may be negative: only if every part allows it."""
        return all(kernel.is_signed for kernel in self.kernels)

    @property
    def compares_entries(self) -> bool:  # type: ignore[override]
        """Whether values come from the entries that two rows share: of any part."""
        return any(kernel.compares_entries for kernel in self.kernels)

    def fitted(self, X: MatrixLike, random_state: int | None = 0) -> Self:
        """Return this kernel with every part fitted to X."""
        return replace(self, kernels=tuple(kernel.fitted(X, random_state) for kernel in self.kernels))


@dataclass(frozen=True)
class Sum(_Combined):
    """Weighted sum of kernels, K(x, y) = sum_j w_j K_j(x, y); usually written ``chi2 + 0.5 * other``.

    Parameters
    ----------
    kernels : tuple of Kernel
        The parts K_j, at least one.
    weights : tuple of float, default=()
        A weight w_j > 0 for each kernel; empty means that all are 1.

    Raises
    ------
    ValueError
        If ``kernels`` is empty or holds anything but kernels, or if ``weights`` has another length or entries that are
        not positive.

    Examples
    --------
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
            raise InputError(
                f"weights must hold one number for each of the {len(self.kernels)} kernels; got {len(self.weights)}."
            )
        for weight in self.weights:
            check_positive(weight, "each of weights (a negative weight makes a sum that is no kernel)")

    @property
    def name(self) -> str:  # type: ignore[override]
        """The names of the parts joined by "+"."""
        return "+".join(
            kernel.name if weight == 1 else f"{weight:g}*{kernel.name}"
            for weight, kernel in zip(self.weights, self.kernels, strict=True)
        )

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m). Parts with parameters that depend on data take them from X."""
        return self._sum(lambda kernel: kernel(X, Y))

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        return self._sum(lambda kernel: kernel.diagonal(X))

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared distances (n, m), the weighted sum of the distances of the parts."""
        return self._sum(lambda kernel: kernel.distance(X, Y))

    @property
    def degree(self) -> float | None:
        """The largest degree of the parts, or None if a part has none."""
        degrees = [kernel.degree for kernel in self.kernels]
        return None if None in degrees else max(d for d in degrees if d is not None)

    def rescaled(self, factor: float) -> Sum:
        """Return the sum of the rescaled parts, with weights that make up for degrees below the largest."""
        if self.degree is None:
            return self
        parts = zip(self.weights, self.kernels, strict=True)
        weights = tuple(w * factor ** (self.degree - (k.degree or 0.0)) for w, k in parts)
        return Sum(tuple(kernel.rescaled(factor) for kernel in self.kernels), weights)

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        pairs = zip(self.kernels, self.weights, strict=True)
        return reduce(add, (kernel.onnx(x, Y) * weight for kernel, weight in pairs))

    def _sum(self, term: Callable[[Kernel], np.ndarray]) -> np.ndarray:
        # The parts are added one by one, so that no more than two matrices are in memory.
        total = self.weights[0] * term(self.kernels[0])
        for weight, kernel in zip(self.weights[1:], self.kernels[1:], strict=True):
            total += weight * term(kernel)
        return total


@dataclass(frozen=True)
class Product(_Combined):
    """Product of kernels, K(x, y) = prod_j K_j(x, y); usually written ``chi2 * other``.

    Parameters
    ----------
    kernels : tuple of Kernel
        The factors K_j, at least one.

    Raises
    ------
    ValueError
        If ``kernels`` is empty or holds anything but kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import chi2
    >>> (chi2 * chi2)(np.array([[0.25, 0.75]]), np.array([[0.75, 0.25]]))
    array([[0.5625]])
    """

    @property
    def degree(self) -> float | None:
        """The sum of the degrees of the factors, or None if a factor has none."""
        degrees = [kernel.degree for kernel in self.kernels]
        return None if None in degrees else sum(d for d in degrees if d is not None)

    def rescaled(self, factor: float) -> Product:
        """Return the product of the rescaled factors."""
        return Product(tuple(kernel.rescaled(factor) for kernel in self.kernels))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The names of the factors joined by "*", with sums in brackets."""
        return "*".join(f"({k.name})" if isinstance(k, Sum) else k.name for k in self.kernels)

    def factors(self, columns: np.ndarray | None = None) -> Factors | None:
        """Return those of all kernels."""
        parts = [kernel.factors(columns) for kernel in self.kernels]
        return None if None in parts else [factor for part in parts if part for factor in part]

    def with_factors(self, factors: Iterator[Kernel]) -> Product:
        """Return the product of the kernels with other factors."""
        return Product(tuple(kernel.with_factors(factors) for kernel in self.kernels))

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m). Factors with parameters that depend on data take them from X."""
        return math.prod((kernel(X, Y) for kernel in self.kernels[1:]), start=self.kernels[0](X, Y))

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        return math.prod((k.diagonal(X) for k in self.kernels[1:]), start=self.kernels[0].diagonal(X))

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared distances (n, m), computed from the Gram matrix: they lose digits for close rows."""
        kernel = self.fitted(X)
        left = kernel.diagonal(X)
        right = left if Y is None else kernel.diagonal(Y)
        return np.maximum(left[:, None] + right - 2 * kernel(X, Y), 0)

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        return reduce(mul, (kernel.onnx(x, Y) for kernel in self.kernels))


def paired_rows(X: MatrixLike, Y: MatrixLike | None, *, signed: bool) -> tuple[Rows, Rows]:
    """Check X and Y and bring them to the same storage (dense or CSR) and dtype; Y is X if it is None.

    Raises DataError for negative (unless ``signed``), NaN or infinite entries, and for widths that differ.
    """
    if is_frame(X) and is_frame(Y) and [*names_of(X)] != [*names_of(Y)]:
        raise DataError("X and Y have other columns, or the same in another order. Give both the same: Y[X.columns].")
    left = _rows(X, "X", signed)
    right = left if Y is None else _rows(Y, "Y", signed)
    if left.shape[1] != right.shape[1]:
        raise DataError(
            f"X has {left.shape[1]} bins and Y has {right.shape[1]}: a kernel compares rows over the same bins."
        )
    if _arrays.is_sparse(left) != _arrays.is_sparse(right):
        # If one side is dense, a dense copy of the other fits in memory too, and no mixed code path is needed.
        left, right = _arrays.to_dense(left), _arrays.to_dense(right)
    dtype = np.result_type(left.dtype, right.dtype)
    return _arrays.as_rows(left, dtype), _arrays.as_rows(right, dtype)


def _rows(X: MatrixLike, name: str, signed: bool) -> Rows:
    dtype = X.dtype if _arrays.is_sparse(X) else np.asarray(X).dtype
    if dtype.kind not in "fiubO":
        raise DataError(f"{name} holds {dtype}, and bins are real numbers. Convert it, such as by X.astype(float).")
    rows = _arrays.as_rows(X)
    if rows.ndim != 2:
        raise DataError(f"{name} must be a matrix of rows of bins; got {rows.ndim} axes.")
    check_histograms(rows, name=name, signed=signed)
    return rows
