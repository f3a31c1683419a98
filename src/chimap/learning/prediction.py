"""Using a fitted model: outputs of rows in memory, of sources, and of their chunks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from chimap import _arrays
from chimap._threads import threads
from chimap._validation import check_width, rows_as_fitted
from chimap.data import ArraySource, Source
from chimap.data.read_ahead import chunks_ahead
from chimap.engines import Progress, Stopwatch
from chimap.engines.compilation import compilation
from chimap.maps.base import keeps_zeros


class Prediction:
    """Linear outputs f(x) (n, t) of rows, however they come; what they mean is for ``ClassTargets`` or ``RealTargets``.

    A subclass gives the outputs of some rows at once (``_outputs_of``), with memory to do it in (``_room``).
    """

    rows_at_once: ClassVar[int] = 2048  # whose features are in memory together

    n_features_in_: int
    n_jobs: int | None

    def _outputs(self, X: Any) -> np.ndarray:
        """f(x) of rows X, (n, t) float64."""
        self._refresh()
        rows = rows_as_fitted(self, X)
        if rows.shape[0] > self.rows_at_once:
            return self.predict_source(ArraySource(rows))
        with threads(self.n_jobs):
            return self._outputs_of(rows, 0, "X", self._room(rows.shape[0]))

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
        check_width(np.empty((0, source.n_features)), self.n_features_in_, type(self).__name__)
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
    def _outputs_of(self, rows: Any, first_row: int, name: str, room: Any) -> np.ndarray:
        """f(x) (n, t) of rows as they come; an error names the row of ``name``."""


def scores(features: Any, rows: Any, weights: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Psi(x) . w (n, t) of prepared rows and weights (D, t) of their dtype; room (n, D) is for dense features."""
    if _arrays.is_sparse(rows) and keeps_zeros(features):
        out = np.empty((rows.shape[0], weights.shape[1]), dtype=weights.dtype)
        _arrays.sparse_product(features.transform_sparse(rows), weights, out)
        return out
    z = room[: rows.shape[0]]
    features.features_into(rows, z)
    return np.asarray(z @ weights)


class LinearPrediction(Prediction):
    """Of a linear model on explicit features: Psi(x) . w + b."""

    features_: Any
    _coef: np.ndarray
    _intercept: np.ndarray
    _cast_weights: tuple[np.ndarray, np.ndarray]

    @property
    @abstractmethod
    def _dtype(self) -> np.dtype:
        """Of the features."""

    @abstractmethod
    def _prepare(self, X: Any, first_row: int | np.ndarray, name: str) -> Any:
        """Rows checked, in the precision of the model, and normalised if asked."""

    @property
    def _n_outputs(self) -> int:
        return int(self._coef.shape[1])

    def _room(self, n_rows: int) -> Any:
        return np.empty((n_rows, self._coef.shape[0]), dtype=self._dtype)

    def _outputs_of(self, rows: Any, first_row: int, name: str, room: Any) -> np.ndarray:
        return (
            scores(self._mapping(), self._prepare(rows, first_row, name), self._weights(), room)
            + self._intercept
        )

    def _mapping(self) -> Any:
        """The features that are multiplied by the weights."""
        return self.features_

    def _weights(self) -> np.ndarray:
        """The weights in the precision of the features, kept from one call to the next."""
        source, weights = getattr(self, "_cast_weights", (None, np.empty(0)))
        if source is not self._coef or weights.dtype != self._dtype:
            weights = np.ascontiguousarray(self._coef, dtype=self._dtype)
            self._cast_weights = (self._coef, weights)
        return weights

    def compile(self, tolerance: float = 1e-3, memory: str | int = "1GiB") -> Any:
        """The same model as tables, one a bin, that are looked up: for additive kernels, such as "chi2".

        score_c(x) = intercept_c + sum_i sign(x_i) f_ic(|x_i|), each f_ic as straight pieces in float32.

        tolerance: how far the scores may be off, as a share of the largest values of all bins' functions together.
        memory: of the tables.

        Returns a ``CompiledClassifier`` or ``CompiledRegressor``, whose ``error_bound`` says how far it is off. Raises
        ValueError for a model that is no sum over bins, for one of precision="bfloat16", whose features go in steps,
        and where no tables meet the tolerance;
        MemoryBudgetError for tables above ``memory``.

        Source: Maji, Berg and Malik, Classification using intersection kernel support vector machines is efficient
        (tables of the functions of single bins).

        >>> from sklearn.datasets import load_digits
        >>> from chimap import HistogramClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> model = HistogramClassifier("chi2").fit(X, y)
        >>> bool((model.compile().predict(X) == model.predict(X)).mean() > 0.99)
        True
        """
        from chimap.learning.compiled import compiled

        self._refresh()
        return compiled(self, tolerance, memory)
