"""The base classes of explicit kernel features, and what is known of them before fitting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._onnx import Value
from chimap._types import CSR, Array, ArrayLike, ArrayMap, MatrixLike, Parameters, Rows, Transformed
from chimap._validation import validated_rows
from chimap.features.mapped_functions import LinearFunction, MappedModel, Tables, dense
from chimap.kernels import Kernel, as_kernel
from chimap.kernels.exponential import GAMMA_BLOCK, GAMMA_ROWS
from chimap.model_files import Transformer

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from chimap.features.exact.row_kernel import RowKernel


class FittedFeatures(ABC):
    """Fitted features z(x) with z(x) . z(y) close to ``kernel_``: all that other parts of the package ask of them.

    A kind of features writes rows into an array (``features_into``). The other methods have answers that serve most
    kinds.
    """

    if TYPE_CHECKING:
        # Some kinds keep these as attributes and others compute them.

        @property
        def kernel_(self) -> Kernel:
            """The exact kernel, its parameters set to numbers."""

        @property
        def n_features_in_(self) -> int:
            """Number of bins of a row."""

        @property
        def _n_features_out(self) -> int: ...

    @abstractmethod
    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the features of checked rows, minus a shift, into an array.

        Parameters
        ----------
        rows : ndarray or CSR matrix of shape (n, bins)
            Checked rows in float32 or float64.
        out : ndarray of shape (n, D)
            Array that receives the features, of the dtype of the rows.
        shift : ndarray of shape (D,), default=None
            Subtracted from the features of every row; None subtracts nothing.
        """

    @property
    def keeps_zeros(self) -> bool:
        """Whether features of zeros are zeros, so that CSR rows have CSR features (``transform_sparse``)."""
        return False

    def transform_sparse(self, rows: CSR) -> CSR:
        """Return the CSR features of checked CSR rows, where features of zeros are zeros.

        Parameters
        ----------
        rows : CSR matrix of shape (n, bins)
            Checked rows in float32 or float64.
        """
        raise NotImplementedError(f"{type(self).__name__} has no sparse features")

    def mapped(self, rows: Rows) -> Rows:
        """Return the features (n, D) of checked rows in their dtype: CSR for CSR rows where zeros stay zeros.

        Parameters
        ----------
        rows : ndarray or CSR matrix of shape (n, bins)
            Checked rows in float32 or float64.
        """
        if _arrays.is_sparse(rows) and self.keeps_zeros:
            return self.transform_sparse(rows)
        Z = np.empty((rows.shape[0], self._n_features_out), dtype=rows.dtype)
        self.features_into(rows, Z)
        return Z

    def on_device(self, like: Array) -> ArrayMap | None:
        """Return the map from checked dense rows to features for arrays such as ``like``, with all it needs besides it.

        Parameters
        ----------
        like : array of torch, cupy or numpy
            Any array of the library, device and dtype of the rows to come.

        Returns
        -------
        callable or None
            The map; None where the features are computed on the host only.
        """
        return None

    @property
    def n_inputs(self) -> int:
        """Length of the widest row that the features are computed from, besides the row itself."""
        return 0

    def merged_into_weights(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        """Return the linear model z(x) . coef + intercept in the form that is cheapest to evaluate.

        Parameters
        ----------
        coef : ndarray of shape (D, t)
            Weights of the features for t outputs.
        intercept : ndarray of shape (t,)
            Intercepts.
        """
        return LinearForm(self, coef, intercept)

    def simplified(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        """Return a linear model of the features in the form that a fit keeps.

        Features that only served to find the weights are replaced by those that they are made of: principal components
        by the features of their blocks, and values of an additive kernel with every row by the map of the kernel.

        Parameters
        ----------
        coef : ndarray of shape (D, t)
            Weights of the features for t outputs.
        intercept : ndarray of shape (t,)
            Intercepts.
        """
        return LinearForm(self, coef, intercept)

    def code_tables(self, coef: np.ndarray, intercept: np.ndarray) -> Tables | None:
        """Return the exact tables of a linear model, where each bin has finitely many features; None elsewhere.

        Parameters
        ----------
        coef : ndarray of shape (D, t)
            Weights of the features.
        intercept : ndarray of shape (t,)
            Intercepts.
        """
        return None

    def exact_functions(self, coef: np.ndarray) -> tuple[str, np.ndarray, np.ndarray] | None:
        """Return the functions of the bins' magnitudes where knots hold them exactly; None elsewhere.

        They are "steps" or "linear" between knots (bins, k) with values (bins, k, t); see ``export.tables.BinTables``.

        Parameters
        ----------
        coef : ndarray of shape (D, t)
            Weights of the features.
        """
        return None

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
        """Return the model z(x) . coef + intercept as a function of mapped rows; None if the features have none.

        Parameters
        ----------
        coef : ndarray of shape (D, t)
            Weights of the features for t outputs.
        intercept : ndarray of shape (t,)
            Intercepts.
        """
        return None

    @property
    def kept_rows(self) -> Rows | None:
        """The rows whose kernel values the features are, where they are evaluated without a map; else None."""
        return None

    has_distances: ClassVar[bool] = False
    """Whether training rows or landmarks are kept, to which rows have ``squared_distances``."""

    def squared_distances(self, rows: Rows) -> np.ndarray:
        """Return K(x, x) + K(v, v) - 2 K(x, v) of rows x with the landmarks or training rows v that are kept.

        Parameters
        ----------
        rows : ndarray or CSR matrix of shape (n, bins)
            Checked rows.

        Returns
        -------
        ndarray of shape (n, m), float64
            Squared distances of the kernel.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps no rows")

    def squared_distances_at(self, places: np.ndarray) -> np.ndarray:
        """Return ``squared_distances`` of the training rows at ``places``, for features that keep all of them.

        Parameters
        ----------
        places : array of int
            Places among the kept rows.
        """
        raise NotImplementedError(f"{type(self).__name__} does not keep the training rows")

    @property
    def row_kernel(self) -> RowKernel | None:
        """The kernel and the rows of an exact machine, which features are the values with; None for other features."""
        return None

    def as_kept(self, rows: Rows) -> Rows:
        """Return rows as ``row_kernel`` takes them.

        Parameters
        ----------
        rows : ndarray or CSR matrix of shape (n, bins)
            Checked rows.
        """
        return rows

    def with_row_kernel(self, kernel: RowKernel) -> FittedFeatures:
        """Return features of an exact machine with other rows.

        Parameters
        ----------
        kernel : RowKernel
            The ``row_kernel`` of these features with other rows.
        """
        return cast(FittedFeatures, kernel)

    def contributions(self, rows: Rows, reference: np.ndarray, coef: np.ndarray) -> np.ndarray | None:
        """Return what each bin adds to z(x) . coef, relative to a reference row, where no mapped rows serve instead.

        Parameters
        ----------
        rows : ndarray or CSR matrix of shape (n, bins)
            Checked rows.
        reference : ndarray of shape (bins,)
            The reference row.
        coef : ndarray of shape (D, t)
            Weights of the features for t outputs.

        Returns
        -------
        ndarray of shape (n, bins, t) or None
            None for all features but the values of an additive kernel that are evaluated without a map.
        """
        return None

    def describe(self) -> str:
        """Return a description of the features in a few words."""
        return type(self).__name__

    def onnx(self, x: Value) -> Value:
        """Return the features (n, D) of prepared rows x (n, bins) as nodes of an ONNX graph.

        Parameters
        ----------
        x : Value
            The rows.

        Raises
        ------
        ValueError
            For features that have no such form.
        """
        raise InputError(
            Message(
                "{} cannot be written as ONNX. Export the weights ({format='weights'}) and compute the features with "
                "chimap.",
                type(self).__name__,
            )
        )


_MOST_ROUNDING = 3e-5  # share of the spread of outputs that float32 may move them by


def are_near(single: np.ndarray, double: np.ndarray) -> bool:
    """Return whether outputs (n, t) computed in float32 are those computed in float64, but for a little rounding."""
    return bool(np.abs(single - double).max() <= _MOST_ROUNDING * double.std())


@dataclass(frozen=True, eq=False)
class LinearForm:
    """A linear model f(x) = features(x) . coef + intercept in the form that is cheapest to evaluate.

    ``coef`` (D, t) and ``intercept`` (t,) are float64; those of kernel values are in the dtype of the values.
    """

    features: FittedFeatures
    coef: np.ndarray
    intercept: np.ndarray

    def __call__(self, rows: Rows) -> np.ndarray:
        """Return f (n, t), float64, of checked rows."""
        Z = np.empty((rows.shape[0], self.features._n_features_out), rows.dtype)
        self.features.features_into(rows, Z)
        return np.asarray(Z @ self.coef.astype(rows.dtype), np.float64) + self.intercept


class Features(FittedFeatures, ClassNamePrefixFeaturesOutMixin, Transformer, BaseEstimator):
    """Base of transformers whose features have the dot products of a kernel, exactly or nearly.

    It carries what scikit-learn asks for. A kind of features has a constructor that keeps its arguments, ``fit``, which
    sets ``kernel_`` and ``_n_features_out``, ``features_into`` and ``describe``.
    """

    if TYPE_CHECKING:
        kernel: str | Kernel

    family: ClassVar[str | None] = None
    """The word by which an estimator makes such features, with the settings of their constructor."""

    adds_up_blocks: ClassVar[bool] = False
    """Whether features of several blocks of columns are added up; else they stand side by side."""

    # --- before fitting: what a plan asks of the features

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """Return whether the class makes features of the kernel; those in ``features.families.FAMILIES`` override this.

        Parameters
        ----------
        kernel : Kernel
            The exact kernel.
        """
        return False

    @classmethod
    def of(cls, kernel: Kernel, **asked: Any) -> Features:
        """Return unfitted features of a kernel, with those of the settings that are asked for that the class has.

        Parameters
        ----------
        kernel : Kernel
            The exact kernel.
        **asked
            Settings that are not left open: ``n_components``, ``n_terms``, ``map``, ``sampling``, ``form``,
            ``landmarks``.
        """
        own, given = cls._get_param_names(), {"kernel": kernel, "random_state": None} | asked
        return cls(**{name: value for name, value in given.items() if name in own})

    def changed(self, **settings: object) -> Self:
        """Return unfitted features with other settings.

        Parameters
        ----------
        **settings
            Settings by name; those that the class does not have are left out.
        """
        given = self.settings
        return type(self)(**given | {name: value for name, value in settings.items() if name in given})

    @property
    def settings(self) -> Parameters:
        """The settings that the features are made by, by name."""
        own: Parameters = self.get_params(deep=False)
        return own

    def resolved(self) -> Self:
        """Return unfitted features with the kernel as an object."""
        return self.changed(kernel=self.exact_kernel)

    @property
    def exact_kernel(self) -> Kernel:
        """The kernel that is asked for, as an object."""
        return as_kernel(self.kernel, self.settings.get("gamma", "mean"))

    def footprint(self, n_bins: int) -> Footprint:
        """Return the sizes of the features for rows of n_bins bins.

        Parameters
        ----------
        n_bins : int
            Bins of a row.

        Raises
        ------
        InputError
            If the class does not say.
        """
        raise InputError(
            Message("{features}: {} has no footprint, by which a fit plans its memory.", type(self).__name__)
        )

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes that fitting takes besides n_rows rows, each of row_bytes bytes and numbers of itemsize.

        Parameters
        ----------
        n_rows : int
            Rows of the sample.
        row_bytes : float
            Bytes of a row.
        itemsize : int
            Bytes of a number.
        """
        return 0

    @abstractmethod
    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Self:
        """Learn what depends on the data from a sample of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows to fit on.
        y : None, default=None
            Not used; accepted for pipelines of scikit-learn.

        Returns
        -------
        Features
            The fitted features themselves.

        Raises
        ------
        ValueError
            If a parameter is out of range, or the class has no features of the kernel.
        DataError
            If the kernel does not take an entry, or if the rows leave a parameter open that they are to give, as
            gamma="mean" where all of them are equal.
        """

    def prescription(self) -> Parameters:
        """Return the settings of a fit that these features, unfitted, ask for when an estimator is given them.

        ``features`` is the word for their family, or the object itself where no other settings say as much, or where it
        has a ``random_state`` of its own. What is not there the estimator decides.
        """
        given = self.settings
        if self.family is None or given.pop("random_state") is not None:
            return {"features": self} | ({"kernel": given["kernel"]} if "kernel" in given else {})
        return given | {"features": self.family}

    @property
    def _takes_signs(self) -> bool:
        """Whether bins may be negative."""
        return as_kernel(self.kernel).is_signed

    def transform(self, X: MatrixLike) -> Transformed:
        """Return the features of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows of any library: numpy, scipy, torch or cupy.

        Returns
        -------
        array or CSR matrix of shape (n, n_features_out)
            Features in the floating type of X: CSR of sparse rows where features of zeros are zeros, else dense. Those
            of a tensor of torch or an array of cupy stay on its device.

        Raises
        ------
        DataError
            If the rows have another number of bins, or entries that ``fit`` refuses.
        """
        check_is_fitted(self)
        rows = validated_rows(self, X, reset=False, signed=self._takes_signs, on_device=True)
        return self.array_features(rows) if _arrays.is_on_device(rows) else self.mapped(rows)

    def array_features(self, rows: Array) -> Array:
        """Return the features of checked dense rows of any array library, on the host if they have no other form.

        Parameters
        ----------
        rows : array of shape (n, bins)
            Checked dense rows of any library with the Python array API.

        Returns
        -------
        array of shape (n, n_features_out)
            Features in the library, on the device and in the dtype of the rows.
        """
        bound = self.on_device(rows)
        if bound is not None:
            return bound(rows)
        host = np.ascontiguousarray(_arrays.to_host(rows))
        out = np.empty((host.shape[0], self._n_features_out), host.dtype)
        self.features_into(host, out)
        return _arrays.as_like(out, rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not self._takes_signs
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def linear_in_features(features: FittedFeatures, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
    """Return a model of a map, whose features are the mapped row: term by term, the bins in order within each."""
    bins = np.arange(features._n_features_out) % features.n_features_in_
    return MappedModel(lambda X: dense(features.mapped(X)), bins, LinearFunction(coef, intercept))


@dataclass(frozen=True)
class Footprint:
    """Sizes that the memory of a fit depends on.

    Parameters
    ----------
    features : int
        Number of features.
    mapped : int, default=0
        Length of the mapped row that features are computed from, held in memory besides the row.
    frequencies : int, default=0
        Columns of a matrix (mapped, frequencies) that stays in memory.
    sample_rows : int, default=0
        Rows that fitting needs at least.
    landmarks : int, default=0
        Rows of the sample, or centres of such rows, that the features are made of. Their values on these rows
        are biased, so that they cannot serve for validation.
    """

    features: int
    mapped: int = 0
    frequencies: int = 0
    sample_rows: int = 0
    landmarks: int = 0


def gamma_bytes(kernel: Kernel, n_rows: int, row_bytes: float, itemsize: int) -> int:
    """Return the bytes for gamma="mean": a sample of rows and a block of distances, float64 for Gaussian kernels."""
    paired = min(n_rows, GAMMA_ROWS)
    is_linear = kernel.name == "gaussian"
    distances = (16 if is_linear else itemsize + 1) * paired * min(paired, GAMMA_BLOCK)
    return int(paired * row_bytes * (1 + is_linear * 8 / itemsize)) + distances


def median_bytes(kernel: Kernel, n_rows: int, row_bytes: float, itemsize: int) -> int:
    """Return the bytes for kernels with a parameter that is a median of the values, which are sorted."""
    return max(gamma_bytes(kernel, n_rows, row_bytes, itemsize), int(2 * n_rows * row_bytes))
