"""Rows to explain, reference rows, and the names of bins and scores."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from chimap._types import MatrixLike, Rows
from chimap._validation import DataError, rows_as_fitted
from chimap.data import Source, matched
from chimap.data.column_choice import fitted_names
from chimap.data.layouts import opener_of
from chimap.data.table import ColumnChoice
from chimap.explain import rows_like


class ExplainedRows:
    """The preparation of rows to explain by a fitted estimator. A subclass defines the two methods below."""

    n_features_in_: int

    @abstractmethod
    def _prepare(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Return rows as the features take them."""

    @property
    @abstractmethod
    def _takes_signs(self) -> bool:
        """Whether bins may be negative."""

    def _rows_to_explain(self, X: MatrixLike) -> Rows:
        opener, reading = opener_of(X), getattr(self, "reading_", None)
        source = X if isinstance(X, Source) else None
        if opener is not None:
            source = opener(X, None, ColumnChoice(names=fitted_names(self)))
        elif reading is not None and isinstance(X, list) and isinstance(X[0], str | dict):
            source = reading.source(X)
        if source is not None:
            names = getattr(self, "feature_names_in_", None)
            source = matched(source, names, self.n_features_in_, type(self).__name__)
            return self._prepare(source.block(0, source.n_rows).X, 0, source.name)
        return self._prepare(rows_as_fitted(self, X), 0, "X")

    def _reference(self, background: MatrixLike | None) -> np.ndarray:
        if background is not None:
            return mean_row(self._rows_to_explain(background))
        mean = getattr(self, "mean_row_", None)
        if mean is None:
            raise DataError(
                "this model does not know the mean row of its fit: give rows to compare with as background=X."
            )
        return np.asarray(mean)

    def _rows_like_the_fit(self) -> Rows:
        if getattr(self, "deviation_row_", None) is None:
            raise DataError(
                "this model does not know the means and deviations of its fit's rows: give rows X."
            )
        rows = rows_like(self._reference(None), self.deviation_row_, self._takes_signs)  # type: ignore[attr-defined]
        return self._prepare(rows, 0, "rows like those of the fit")

    def _bin_names(self) -> np.ndarray:
        names = getattr(self, "feature_names_in_", None)
        histograms = getattr(self, "histograms_", None)
        if names is None and histograms is not None:  # the bins are cells and words of images
            names = histograms.get_feature_names_out()
        return np.arange(self.n_features_in_) if names is None else np.asarray(names)

    def _output_names(self, n_outputs: int) -> np.ndarray:
        classes = getattr(self, "classes_", None)
        if classes is None or self._is_of_tasks:
            names = getattr(self, "task_names_", None)
            if names is not None:
                return np.asarray(names)
            return np.array(["prediction"]) if n_outputs == 1 else np.arange(n_outputs)
        return np.asarray(classes[-n_outputs:])

    @property
    def _is_of_tasks(self) -> bool:
        """Whether the outputs belong to several tasks of two classes."""
        return bool(getattr(self, "multilabel_", False))


def mean_row(rows: Rows) -> np.ndarray:
    """Return the mean (columns,) of dense or sparse rows, summed in float64."""
    return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel().astype(rows.dtype) / rows.shape[0]
