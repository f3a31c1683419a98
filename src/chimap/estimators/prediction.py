"""Using a fitted model: outputs of rows in memory, of sources, and of their chunks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from chimap import _arrays, _products
from chimap._threads import threads
from chimap._types import JSON, MatrixLike, Rows, Sometimes
from chimap._validation import rows_as_fitted
from chimap.backends.base import RowFeatures
from chimap.data import ArraySource, Source, matched
from chimap.data.io.read_ahead import chunks_ahead
from chimap.data.layouts import opener_of
from chimap.engines import Progress, Stopwatch
from chimap.engines.compilation import compilation
from chimap.features.additive.base import keeps_zeros

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap.data.formats.fields import Reading


_FEW = 64  # features whose products with the weights are summed in float64


class Prediction:
    """Linear outputs f(x) (n, t) of rows, however they come; what they mean is for ``ClassTargets`` or ``RealTargets``.

    A subclass gives the outputs of some rows at once (``_outputs_of``), with memory to do it in (``_room``).
    """

    rows_at_once: ClassVar[int] = 2048  # whose features are in memory together

    n_features_in_: int
    feature_names_in_: Sometimes[np.ndarray]
    reading_: Sometimes[Reading | None]
    training_: Sometimes[JSON]
    histograms_: Sometimes[BaseEstimator | None]
    n_jobs: int | None

    def _outputs(self, X: MatrixLike) -> np.ndarray:
        """f(x) of rows X, (n, t) float64."""
        self._refresh()
        source = self._source_of(X)
        if source is not None:
            return self.predict_source(source)
        rows = rows_as_fitted(self, X)
        if rows.shape[0] > self.rows_at_once:
            return self.predict_source(ArraySource(rows))
        with threads(self.n_jobs):
            return self._outputs_of(rows, 0, "X", self._room(rows.shape[0]))

    def _source_of(self, X: MatrixLike) -> Source | None:
        """A source of what is no matrix of rows; None for one."""
        if (opener := opener_of(X)) is not None:
            return opener(X)
        reading = getattr(self, "reading_", None)
        if reading is not None and isinstance(X, list) and X and isinstance(X[0], str | dict):
            return reading.source(X)
        return None

    def _variance_factors(self, X: MatrixLike) -> np.ndarray:
        """Variances of new targets of rows X over that of the noise, (n,). Raises ValueError: this model has none."""
        raise ValueError(
            f"a {type(self).__name__} has no posterior: predict without return_std, or use the model that it was made "
            "from; predict_set gives intervals."
        )

    def predict_source(self, source: Source, progress: Progress | None = None) -> np.ndarray:
        """Linear outputs f(x) (n, t) of every row of a source, chunk by chunk; float64."""
        self._refresh()
        out = np.empty((source.n_rows, self._n_outputs))
        for start, outputs in self.predict_chunks(source, progress):
            out[start : start + outputs.shape[0]] = outputs
        return out

    def predict_chunks(
        self, source: Source, progress: Progress | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, linear outputs (rows, t) float64) of consecutive rows of a source; memory does not grow
        with it."""
        self._refresh()
        progress = progress or Progress()
        source = matched(
            source, getattr(self, "feature_names_in_", None), self.n_features_in_, type(self).__name__
        )
        room = self._room(min(self.rows_at_once, source.n_rows))
        with threads(self.n_jobs), progress, compilation(Stopwatch(), progress):
            progress.stage("predicting", source.n_rows)
            for chunk in chunks_ahead(source, self.rows_at_once):
                yield chunk.start, self._outputs_of(chunk.X, chunk.start, source.name, room)
                progress.advance(chunk.X.shape[0])

    @property
    @abstractmethod
    def _n_outputs(self) -> int:
        """t."""

    @abstractmethod
    def _refresh(self) -> None:
        """Bring what is learned up to date, or raise NotFittedError."""

    @abstractmethod
    def _room(self, n_rows: int) -> Any:
        """Memory that the outputs of so many rows are computed in."""

    @abstractmethod
    def _outputs_of(self, rows: Rows, first_row: int, name: str, room: Any) -> np.ndarray:
        """f(x) (n, t) of rows as they come; an error names the row of ``name``."""


def bind_names(model: BaseEstimator, source: Source) -> None:
    """Let the model keep the names of the columns, as ``feature_names_in_``, or forget those of an earlier fit."""
    if source.column_names is not None:
        model.feature_names_in_ = np.array(source.column_names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_


def scores(features: RowFeatures, rows: Rows, weights: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Psi(x) . w (n, t) of prepared rows and weights (D, t) of their dtype; room (n, D) is for dense features."""
    if _arrays.is_sparse(rows) and hasattr(features, "transform_sparse") and keeps_zeros(features):
        out = np.empty((rows.shape[0], weights.shape[1]), dtype=weights.dtype)
        _products.sparse_product(features.transform_sparse(rows), weights, out)
        return out
    z = room[: rows.shape[0]]
    features.features_into(rows, z)
    if weights.shape[0] <= _FEW:  # a sum of few terms would depend on where in the chunk its row is
        return z.astype(np.float64) @ weights
    outputs = np.empty((z.shape[0], weights.shape[1]), dtype=weights.dtype)
    _products.project(z, weights, z, outputs)
    return outputs
