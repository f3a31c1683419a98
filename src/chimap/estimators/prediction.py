"""Prediction with a fitted model: outputs for rows in memory, for sources, and for their chunks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._threads import threads
from chimap._types import JSON, MatrixLike, Rows, Sometimes
from chimap._validation import finite_outputs, rows_as_fitted
from chimap.data import ArraySource, Source
from chimap.data.doubts import FEWEST_ROWS, Units, say
from chimap.data.labelling import note_on_unread
from chimap.data.read_ahead import chunks_ahead
from chimap.engines import Progress, Stopwatch
from chimap.engines.compilation import compilation
from chimap.estimators.rows import source_as_fitted, source_to_predict

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap.data.formats.fields import Reading


_LOOKED_AT = 256  # rows whose units are compared with those of the fit


class Prediction:
    """Linear outputs f(x) of shape (n, t) for rows of any kind; ``ClassTargets`` and ``RealTargets`` interpret them.

    A subclass computes the outputs of a few rows at once (``_outputs_of``) in memory that it allocates (``_room``).
    """

    _rows_at_once: ClassVar[int] = 2048  # rows whose features are in memory together

    n_features_in_: int
    feature_names_in_: Sometimes[np.ndarray]
    units_: Sometimes[Units | None]  # of the rows of the fit; None where they do not matter
    first_column_: Sometimes[int | None]  # see ``Source.first_column``
    reading_: Sometimes[Reading | None]
    training_: Sometimes[JSON]
    histograms_: Sometimes[BaseEstimator | None]
    n_jobs: int | None

    def _outputs(self, X: MatrixLike) -> np.ndarray:
        """Return f(x) for rows X, (n, t) float64."""
        self._refresh()
        source = source_to_predict(self, X)
        if source is not None:
            return self.predict_source(source)
        rows = rows_as_fitted(self, X)
        if rows.shape[0] > self._rows_at_once:
            return self.predict_source(ArraySource(rows))
        self._say_doubts(rows, "X")
        with threads(self.n_jobs):
            return finite_outputs(self._outputs_of(rows, 0, "X", self._room(rows.shape[0])))

    def _variance_factors(self, X: MatrixLike) -> np.ndarray:
        """Return variances (n,) of new targets divided by that of the noise. This model has none: raise ValueError."""
        raise InputError(
            f"a {type(self).__name__} has no posterior: predict without return_std, or use the model that it was made "
            "from; predict_set returns intervals."
        )

    def predict_source(self, source: Source, progress: Progress | None = None) -> np.ndarray:
        """Return the linear outputs f(x) of every row of a source, computed chunk by chunk.

        Rows whose record could not be read, such as a broken image, have NaN for outputs, with a warning.

        Parameters
        ----------
        source : Source
            Rows to predict.
        progress : Progress or None, default=None
            Receives the rows predicted.

        Returns
        -------
        ndarray of shape (n, t)
            Outputs in float64.
        """
        self._refresh()
        out = np.empty((source.n_rows, self.n_outputs))
        for start, outputs in self.predict_chunks(source, progress):
            out[start : start + outputs.shape[0]] = outputs
        return out

    def predict_chunks(
        self, source: Source, progress: Progress | None = None
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the linear outputs of consecutive rows of a source; memory does not grow with its rows.

        Rows whose record could not be read have NaN for outputs, with a warning.

        Parameters
        ----------
        source : Source
            Rows to predict.
        progress : Progress or None, default=None
            Receives the rows predicted.

        Yields
        ------
        tuple of int and ndarray of shape (rows, t)
            The first row of a chunk, and the outputs of its rows in float64.
        """
        self._refresh()
        progress = progress or Progress()
        source = source_as_fitted(self, source)
        room = self._room(min(self._rows_at_once, source.n_rows))
        with threads(self.n_jobs), progress, compilation(Stopwatch(), progress):
            progress.stage("predicting", source.n_rows)
            if source.unread:
                say([f"{note_on_unread(source)}. They have no prediction."])
            for chunk in chunks_ahead(source, self._rows_at_once):
                if chunk.start == 0:
                    self._say_doubts(chunk.X, source.name)
                outputs = self._outputs_of(chunk.X, chunk.start, source.name, room)
                outputs = finite_outputs(outputs, chunk.start, source.name)
                yield chunk.start, _without_unread(outputs, chunk.start, source)
                progress.advance(chunk.X.shape[0])

    def _say_doubts(self, rows: Rows, name: str) -> None:
        """Warn if rows have other units than those of the fit."""
        units = getattr(self, "units_", None)
        if units is not None and rows.shape[0] >= FEWEST_ROWS:
            say(units.doubts(_arrays.take_rows(rows, slice(_LOOKED_AT)), name))

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """The number of outputs t."""

    @abstractmethod
    def _refresh(self) -> None:
        """Bring the learned attributes up to date, or raise NotFittedError."""

    @abstractmethod
    def _room(self, n_rows: int) -> Any:
        """Allocate the memory in which the outputs of ``n_rows`` rows are computed."""

    @abstractmethod
    def _outputs_of(self, rows: Rows, first_row: int, name: str, room: Any) -> np.ndarray:
        """Return f(x) (n, t) for rows as they were read; an error names the row of ``name``."""


def _without_unread(outputs: np.ndarray, first: int, source: Source) -> np.ndarray:
    """Return the outputs of rows from ``first`` on, with NaN for those whose record could not be read."""
    places = [row - first for row in source.unread if first <= row < first + outputs.shape[0]]
    if places:
        outputs = outputs.astype(np.float64)
        outputs[places] = np.nan
    return outputs
