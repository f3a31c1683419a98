"""How much each bin matters to a fitted estimator: the steps of ``importance`` and ``explain``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.data.targets import clean_targets
from chimap.estimators.explained_rows import ExplainedRows, mean_row
from chimap.explain import contributions_of, gradient_importance, variance_importance
from chimap.features.mapped import MappedModel
from chimap.fit.targets import Codec, is_matrix

_VARIANCE_ROWS = 200  # rows whose contributions are compared


class MeasuredBins(ExplainedRows):
    """Contributions and importance of bins, for an estimator with linear outputs for prepared rows.

    A subclass defines the three methods below, and the two of ``ExplainedRows``.
    """

    _codec: Codec
    n_jobs: int | None

    @abstractmethod
    def _refresh(self) -> None:
        """Bring the learned attributes up to date, or raise NotFittedError."""

    @abstractmethod
    def _mapped_model(self) -> MappedModel | None:
        """Return the scores as a function of mapped rows, or None if they are not such a function."""

    @abstractmethod
    def _outputs_of_prepared(self, rows: Rows) -> np.ndarray:
        """Return linear outputs (n, t) for prepared rows."""

    def _contributions(self, rows: Rows, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return contributions_of(self._mapped_model(), self._outputs_of_prepared, rows, reference)

    def _units(self, rows: Rows) -> np.ndarray:
        """Return units by which scores are divided to compare them: several regression targets have different units."""
        if hasattr(self, "classes_"):
            return np.ones(1)
        spread = self._outputs_of_prepared(_arrays.take_rows(rows, slice(_VARIANCE_ROWS))).std(axis=0)
        return np.where(spread > 0, spread, 1.0) if spread.size > 1 else np.ones(1)

    def _gradients(self, rows: Rows, units: np.ndarray) -> np.ndarray:
        model = self._mapped_model()
        if model is None:
            raise ValueError(
                "kind='gradient' is for additive kernels and exponential kernels over them; use kind='variance' or "
                "'permutation'."
            )
        model = replace(model, function=model.function.divided(units))
        return gradient_importance(model, rows, self.n_features_in_)

    def _variances(self, rows: Rows, units: np.ndarray) -> np.ndarray:
        if rows.shape[0] > _VARIANCE_ROWS:
            chosen = np.random.default_rng(0).choice(rows.shape[0], _VARIANCE_ROWS, replace=False)
            rows = _arrays.take_rows(rows, np.sort(chosen))
        contributions, _ = self._contributions(rows, mean_row(rows))
        return variance_importance(contributions / units)

    def _measure(self, y: np.ndarray) -> Callable[[np.ndarray], float]:
        """Return the function that measures accuracy or R^2 on prepared rows."""
        if is_matrix(y):
            score = self._codec.score(clean_targets(y, y.shape[1], "y"), None)
            return lambda rows: score(self._outputs_of_prepared(rows))

        from sklearn.metrics import accuracy_score, r2_score

        measure = accuracy_score if hasattr(self, "classes_") else r2_score
        return lambda rows: float(measure(y, self._answers(self._outputs_of_prepared(rows))))

    def _answers(self, outputs: np.ndarray) -> np.ndarray:
        """Return labels, or predicted targets, for linear outputs."""
        if hasattr(self, "labels_of"):
            return np.asarray(self.labels_of(outputs))
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs
