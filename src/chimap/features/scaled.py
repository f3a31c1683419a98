"""Rows scaled so that products neither underflow nor overflow, before features are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from chimap import _arrays
from chimap._onnx import Value
from chimap._types import CSR, Array, ArrayMap, MatrixLike, Rows, Transformed
from chimap.backends.base import RowFeatures
from chimap.features.base import FittedFeatures, LinearForm
from chimap.features.exact.row_kernel import RowKernel
from chimap.features.fourier.base import Slopes
from chimap.features.fourier.features import FourierFeatures
from chimap.features.fourier.skewed import SkewedFourierFeatures
from chimap.features.fourier.widths import WidthFeatures
from chimap.features.mapped_functions import MappedModel
from chimap.kernels import Kernel
from chimap.kernels.anisotropic import Anisotropic
from chimap.model_files import register
from chimap.moments.kept_rows import KeptRows, OtherRows

_USUAL = 24  # a largest magnitude between 2^-24 and 2^24 needs no scaling


@dataclass(frozen=True)
class Scale:
    """Multiplication by 2^exponent, which is exact, for rows and for the parameters that a kernel measures them by."""

    exponent: int = 0

    @classmethod
    def of(cls, rows: Rows, kernels: Sequence[Kernel]) -> Scale:
        """Return the scale that brings the largest magnitude of a sample of rows, dense or CSR, to between 1/2 and 1.

        It is 1 if that magnitude is between 2^-24 and 2^24, if all rows are 0, and if the kernels have no common
        degree: then scaling would change the relative sizes of their features.
        """
        largest = float(_arrays.column_maxima(rows).max(initial=0.0))
        degrees = {kernel.degree for kernel in kernels}
        if largest == 0 or None in degrees or len(degrees) > 1:
            return cls()
        exponent = int(np.frexp(largest)[1])
        return cls(-exponent if abs(exponent) > _USUAL else 0)

    @property
    def factor(self) -> float:
        """2^exponent."""
        return 2.0**self.exponent

    def rows(self, rows: Rows) -> Rows:
        """Return rows, dense or CSR, times the factor, in their dtype; subnormal numbers become normal ones.

        A factor of 1 returns the rows themselves.
        """
        if not self.exponent:
            return rows
        return _arrays.map_values(rows, lambda values: np.ldexp(values, self.exponent))

    def array(self, rows: Array) -> Array:
        """Return rows of any array library times the factor, in two steps, as the factor may exceed their type."""
        half = self.exponent // 2
        return rows * 2.0**half * 2.0 ** (self.exponent - half)

    def kernel(self, kernel: Kernel) -> Kernel:
        """Return the kernel of scaled rows, which is ``kernel`` of the rows times factor^degree."""
        return kernel.rescaled(self.factor)


class ScaledFeatures(FittedFeatures):
    """Features z(x) = features(2^exponent x) of a kernel of scaled rows, for unscaled rows.

    For a kernel of degree d, z(x) . z(y) ~ 2^(exponent d) K(x, y), where K itself may be beyond the floating type. The
    wrapped ``features`` are fitted to scaled rows; ``kernel_`` is the kernel of unscaled rows.
    """

    features: Annotated[Any, RowFeatures]
    scale: Scale

    def __init__(self, features: RowFeatures, scale: Scale):
        self.features, self.scale = features, scale

    @property
    def kernel_(self) -> Kernel:
        """The exact kernel K of unscaled rows."""
        kernel: Kernel = self.features.kernel_
        return Scale(-self.scale.exponent).kernel(kernel)

    @property
    def _n_features_out(self) -> int:
        return int(self.features._n_features_out)

    @property
    def n_features_in_(self) -> int:
        """Number of bins."""
        return int(self.features.n_features_in_)

    @property
    def keeps_zeros(self) -> bool:
        """Whether the features keep zeros."""
        return bool(self.features.keeps_zeros)

    def describe(self) -> str:
        """Return the description of the features with the factor."""
        return f"{self.features.describe()}, of rows times 2^{self.scale.exponent}"

    def transform(self, X: MatrixLike) -> Transformed:
        """Return features (n, n_features_out) of rows X (n, bins)."""
        if _arrays.is_on_device(X):
            return self.features.transform(self.scale.array(_arrays.device_rows(X)))
        return self.features.transform(self.scale.rows(_arrays.as_rows(X)))

    def take(self, rows: np.ndarray | slice) -> ScaledFeatures:
        """Return features with the training rows at the places ``rows`` alone, of features that keep them."""
        return ScaledFeatures(self.features.take(rows), self.scale)

    @property
    def row_kernel(self) -> RowKernel | None:
        """See ``FittedFeatures``: the kernel of scaled rows."""
        kernel: RowKernel | None = self.features.row_kernel
        return kernel

    @property
    def kept_rows(self) -> Rows | None:
        """See ``FittedFeatures``: as they were before they were scaled."""
        kept: Rows | None = self.features.kept_rows
        return None if kept is None else Scale(-self.scale.exponent).rows(kept)

    def as_kept(self, rows: Rows) -> Rows:
        """See ``FittedFeatures``: scaled rows."""
        return self.scale.rows(rows)

    def with_row_kernel(self, kernel: RowKernel) -> ScaledFeatures:
        """See ``FittedFeatures``."""
        return ScaledFeatures(kernel, self.scale)

    def transform_sparse(self, rows: CSR) -> CSR:
        return self.features.transform_sparse(self.scale.rows(rows))

    @property
    def has_distances(self) -> bool:  # type: ignore[override]
        """Whether the features keep rows."""
        return bool(self.features.has_distances)

    def squared_distances(self, rows: Rows) -> np.ndarray:
        """See ``FittedFeatures``: those of scaled rows."""
        distances: np.ndarray = self.features.squared_distances(self.scale.rows(rows))
        return distances

    def squared_distances_at(self, places: np.ndarray) -> np.ndarray:
        """See ``FittedFeatures``: those of scaled rows."""
        distances: np.ndarray = self.features.squared_distances_at(places)
        return distances

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write features minus ``shift`` of checked rows into ``out``, of their dtype."""
        self.features.features_into(self.scale.rows(rows), out, shift)

    @property
    def summands(self) -> Sequence[tuple[KeptRows, float | None]] | None:
        """See ``exact.RowKernel``; None for features that do not keep the training rows."""
        return getattr(self.features, "summands", None)

    def others(self, rows: Rows) -> Sequence[OtherRows]:
        """See ``exact.RowKernel``."""
        split: Sequence[OtherRows] = self.features.others(self.scale.rows(rows))
        return split

    def merged_into_weights(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        inner = self.features.merged_into_weights(coef, intercept)
        return LinearForm(ScaledFeatures(inner.features, self.scale), inner.coef, inner.intercept)

    def simplified(self, coef: np.ndarray, intercept: np.ndarray) -> LinearForm:
        inner = self.features.simplified(coef, intercept)
        return LinearForm(ScaledFeatures(inner.features, self.scale), inner.coef, inner.intercept)

    def on_device(self, like: Array) -> ArrayMap | None:
        """Return the map from checked dense rows to features for arrays such as ``like``; None where there is none."""
        inner = self.features.on_device(like)
        return inner and (lambda rows: inner(self.scale.array(rows)))

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
        inner = self.features.mapped_model(coef, intercept)
        if inner is None:
            return None
        return MappedModel(lambda X: inner.rows(self.scale.rows(X)), inner.bins, inner.function)

    def onnx(self, x: Value) -> Value:
        half = self.scale.exponent // 2  # two factors, since their product may overflow the type
        scaled: Value = self.features.onnx(x * 2.0**half * 2.0 ** (self.scale.exponent - half))
        return scaled


def unscaled(features: Any) -> Any:
    """Return features without their scale."""
    return features.features if isinstance(features, ScaledFeatures) else features


class ScaledWidths:
    """``WidthFeatures`` of rows times 2^exponent, for unscaled rows, with the widths that belong to unscaled rows.

    The wrapped ``features`` are unfitted and take the kernel of scaled rows.
    """

    def __init__(self, features: WidthFeatures, scale: Scale):
        self.features, self.scale = features, scale

    def fit(self, X: MatrixLike) -> ScaledWidths:
        """Fit the features on scaled rows; see ``WidthFeatures.fit``."""
        self.features.fit(self.scale.rows(_arrays.as_rows(X)))
        unit = Anisotropic(self.features.unit_.kernel_, np.zeros(1, np.int64), np.ones(1))
        back = unit.rescaled(Scale(-self.scale.exponent).factor)
        # the log width of unscaled rows that corresponds to width 1 of scaled ones
        self._log_unit = float(np.log(back.widths[0]))
        return self

    @property
    def start_(self) -> np.ndarray:
        """Initial log widths, (r,)."""
        return np.asarray(self.features.start_ + self._log_unit)

    @property
    def unit_(self) -> FourierFeatures | SkewedFourierFeatures:
        """The features at widths 1, of scaled rows."""
        return self.features.unit_

    @property
    def n_components(self) -> int:
        """Number of features."""
        return int(self.features.n_components)

    @property
    def n_widths(self) -> int:
        """Number of widths, r."""
        return int(self.features.n_widths)

    @property
    def names_(self) -> list[str]:
        """Names of the widths."""
        return list(self.features.names_)

    @property
    def columns_(self) -> np.ndarray:
        """Index of the width of each column, (bins,)."""
        return np.asarray(self.features.columns_)

    def at(self, log_widths: np.ndarray) -> ScaledFeatures:
        """Return plain features with these log widths (r,)."""
        return ScaledFeatures(self.features.at(np.asarray(log_widths) - self._log_unit), self.scale)

    def pullback_at(self, features: ScaledFeatures, rows: Rows, slopes: Slopes) -> np.ndarray:
        """Return dL/d log s (r,) of checked rows; see ``WidthFeatures.pullback_at``."""
        gradient: np.ndarray = self.features.pullback_at(features.features, self.scale.rows(rows), slopes)
        return gradient


register(Scale, ScaledFeatures)
