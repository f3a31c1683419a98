"""Outputs and explanations of an exact kernel machine for prepared rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._threads import threads
from chimap._types import MatrixLike, Rows, Shape, Sometimes
from chimap.estimators.explaining import Explaining
from chimap.explain import contributions_of
from chimap.features.additive.base import AdditiveMap
from chimap.features.mapped_functions import MappedModel
from chimap.kernels import AdditiveKernel, Kernel, Linear

_BLOCK_ROWS = 1024  # rows to predict whose kernel values are in memory together


class ExplainedMachine(Explaining):
    """A fitted expansion over training rows, or over the features of a map. A subclass gives the three below."""

    map: AdditiveMap | None
    map_: Sometimes[AdditiveMap]
    kernel_: Sometimes[Kernel]
    rows_: Sometimes[Rows]
    coef_: Sometimes[np.ndarray]
    dual_coef_: Annotated[np.ndarray, Shape("t", "n")]
    intercept_: Annotated[np.ndarray, Shape("t")]

    @property
    @abstractmethod
    def _is_precomputed(self) -> bool:
        """Whether rows are rows of a kernel matrix."""

    @property
    @abstractmethod
    def _is_signed(self) -> bool:
        """Whether entries may be negative."""

    @abstractmethod
    def _checked(self, X: MatrixLike) -> Rows:
        """Return the rows checked, in float64."""

    def _outputs_of_prepared(self, rows: Rows) -> np.ndarray:
        out = np.empty((rows.shape[0], len(self.intercept_)))
        with threads(self.n_jobs):
            for first in range(0, rows.shape[0], _BLOCK_ROWS):
                chunk = slice(first, first + _BLOCK_ROWS)
                out[chunk] = self._block_outputs(_arrays.take_rows(rows, chunk))
        return out + self.intercept_

    def _block_outputs(self, rows: Rows) -> np.ndarray:
        if self.map is not None:
            return self.map_.transform(rows) @ self.coef_.T
        values = rows if self._is_precomputed else self.kernel_(rows, self.rows_)
        with np.errstate(over="ignore", invalid="ignore"):  # outputs that overflow are refused
            return values @ self.dual_coef_.T

    # --- for explanations

    def _rows_to_explain(self, X: MatrixLike) -> Rows:
        self._check_bins()
        return super()._rows_to_explain(X)

    def _rows_like_the_fit(self) -> Rows:
        self._check_bins()
        return super()._rows_like_the_fit()

    def _check_bins(self) -> None:
        """Raise ValueError for kernel="precomputed", whose columns are rows and not bins."""
        if self._is_precomputed:
            raise InputError(
                Message("a model with {kernel='precomputed'} has no bins, so there is nothing to explain by.")
            )

    def _mapped_model(self) -> MappedModel | None:
        """See ``Explaining``: None without a map, as a kernel of all training rows is no function of mapped rows."""
        return None if self.map is None else self.map_.mapped_model(self.coef_.T, self.intercept_)

    def _prepared(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """See ``Explaining``: rows checked, in float64."""
        return self._checked(X)

    def _contributions(self, rows: Rows, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return contributions and base; for an additive kernel, they come from the kernel of each single bin."""
        if self.map is not None or not isinstance(self.kernel_, AdditiveKernel | Linear):
            return contributions_of(self._mapped_model(), self._outputs_of_prepared, rows, reference)
        base = self._outputs_of_prepared(reference[None])[0]
        out = np.zeros((rows.shape[0], rows.shape[1], base.size))
        for i in range(rows.shape[1]):
            column = _arrays.to_dense(_arrays.take_columns(rows, np.array([i])))
            training_column = _arrays.to_dense(_arrays.take_columns(self.rows_, np.array([i])))
            values = (
                self.kernel_(np.vstack([column, reference[None, i : i + 1]]), training_column)
                @ self.dual_coef_.T
            )
            out[:, i] = values[:-1] - values[-1]
        return out, base

    def _kernel_values(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.map is not None:
            return super()._kernel_values(rows)
        values = np.asarray(self.kernel_(rows, self.rows_))
        return values, self.dual_coef_.T, self._outputs_of_prepared(self.rows_)

    @property
    def _takes_signs(self) -> bool:
        return self._is_signed
