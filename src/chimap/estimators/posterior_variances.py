"""Variances of predictions by the posterior of Bayesian ridge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from chimap._messages import Message
from chimap._threads import threads
from chimap._types import MatrixLike, Rows, Sometimes
from chimap._validation import rows_as_fitted
from chimap.backends.base import RowFeatures
from chimap.data import ArraySource, matched
from chimap.estimators.prediction import Prediction
from chimap.estimators.rows_to_predict import source_to_predict
from chimap.kernels import Kernel
from chimap.solvers.posterior import DualPosterior, Posterior


class PosteriorVariances(Prediction):
    """Predictions with variances, for a model whose fit left a posterior."""

    kernel_: Kernel
    _mapping: Callable[[], RowFeatures]
    _prepare: Callable[[Rows, int | np.ndarray, str], Rows]
    _posterior: Sometimes[Posterior | DualPosterior | None]

    @property
    @abstractmethod
    def _dtype(self) -> np.dtype:
        """The dtype of the features."""

    def _variance_factors(self, X: MatrixLike) -> np.ndarray:
        """Return 1 + q (n,): variances of new targets of rows X divided by that of the noise.

        See ``solvers.posterior``. Raise ValueError if the model has no posterior.
        """
        self._refresh()
        posterior = getattr(self, "_posterior", None)
        if posterior is None:
            raise ValueError(
                Message(
                    "return_std needs {loss='square'}, features as they are, and a y without missing entries; this "
                    "model has no posterior. predict_set returns intervals for every model."
                )
            )
        source = source_to_predict(self, X)
        if source is None:
            source = ArraySource(rows_as_fitted(self, X))
        else:
            names = getattr(self, "feature_names_in_", None)
            source = matched(source, names, self.n_features_in_, type(self).__name__)
        factors = np.empty(source.n_rows)
        with threads(getattr(self, "n_jobs", None)):
            for chunk in source.chunks(self.rows_at_once):
                rows = self._prepare(chunk.X, chunk.start, source.name)
                factors[chunk.start : chunk.start + rows.shape[0]] = 1 + self._posterior_variances(
                    posterior, rows
                )
        return factors

    def _posterior_variances(self, posterior: Posterior | DualPosterior, rows: Rows) -> np.ndarray:
        features = self._mapping()
        Z = np.empty((rows.shape[0], features._n_features_out), dtype=self._dtype)
        features.features_into(rows, Z)
        if isinstance(posterior, DualPosterior):
            return posterior.variances(Z, np.asarray(self.kernel_.diagonal(rows), dtype=np.float64))
        return posterior.variances(Z)
