"""Measure what a report shows beyond the score, on a sample of the rows: see ``report.insight``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from chimap.cli import explained

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap._types import Rows
    from chimap.cli.score import Score
    from chimap.data import Source
    from chimap.report import ClassificationMetrics, Insight, TwoClasses
    from chimap.selection import LearningCurve

_LEARNED, _MEASURED = 10_000, 5000  # most rows that a linear model is fitted to and scored on
_NESTED = 1500  # most rows of a learning curve, whose fits run one after the other
_NUMBERS = 2**25  # most entries in these rows
_FEWEST = 60  # fewest training rows for a learning curve
_STEPS = 3
_TOP = 10
_OF_THE_MACHINE = ("kernel", "normalize", "loss")


def insight_of(model: BaseEstimator, source: Source, score: Score, training: Source | None) -> Insight:
    """Return the insight into a model and the rows ``source`` that it was scored on.

    ``training`` holds the rows that it learned from, or None if they are not known.
    """
    from chimap.report import Insight, RegressionMetrics, worst_errors, worst_mistakes
    from chimap.report.formatting import measure_in_words

    exact = getattr(model, "exact_", model)
    importance = []
    if exact is not None and hasattr(exact, "importance"):
        sample, _ = explained.sample_of(source, 300)
        importance = explained.importance_of(exact, sample, None, "auto").top(_TOP)
    names, two, measure = explained.row_names(source), None, "accuracy"
    curve = getattr(model, "learning_curve_", None)
    if isinstance(score.metrics, RegressionMetrics):
        y, measure = score.metrics.targets, "r2"
        mistakes = worst_errors(names, y, score.metrics.predictions)
    elif score.outcome is not None:
        y, predicted, scores = score.outcome
        metrics = cast("ClassificationMetrics", score.metrics)
        two = _two(model, y, scores, metrics.classes)
        if metrics.is_unequal:
            measure = "balanced_accuracy" if two is None else "roc_auc"
            # accuracy hides rare classes
            curve = curve if curve is None or curve.measure != "accuracy" else None
        mistakes = worst_mistakes(names, y, predicted, scores, metrics.classes)
    else:
        return Insight(importance=importance, curve=curve)
    nested = _Nested.of(model, training, source, y, measure)
    return Insight(
        linear=None if nested is None else nested.linear(),
        linear_rows=None if nested is None else nested.n_rows,
        linear_measure=measure_in_words(measure),
        curve=nested.curve() if curve is None and nested is not None else curve,
        importance=importance,
        mistakes=mistakes,
        two=two,
    )


def _two(
    model: BaseEstimator, y: np.ndarray, scores: np.ndarray, classes: Sequence[object] | np.ndarray
) -> TwoClasses | None:
    """Return the scores and probabilities of two classes, or None if there are not two classes with rows."""
    import numpy as np

    from chimap.report import TwoClasses

    if len(classes) != 2 or np.unique(y).size < 2:
        return None
    f = scores[:, 1].astype(np.float64)
    return TwoClasses(y == classes[1], f, model.probabilities_of(f[:, None])[:, 1])


@dataclass(frozen=True)
class _Nested:
    """Fits on a sample of the training rows, in random order, scored by one measure on held-out rows."""

    model: BaseEstimator
    X: Rows
    labels: np.ndarray
    held_out: Source
    y: np.ndarray
    measure: str

    @classmethod
    def of(
        cls, model: BaseEstimator, training: Source | None, source: Source, y: np.ndarray, measure: str
    ) -> _Nested | None:
        """Draw the sample, small enough that the fits take seconds.

        Return None if the model is of another type, if there are too few training rows, and for images.
        """
        import numpy as np

        from chimap import HistogramClassifier, HistogramRegressor
        from chimap.data.source import choose_rows

        is_known = isinstance(model, HistogramClassifier | HistogramRegressor)
        if training is None or training.n_rows < _FEWEST or not is_known:
            return None
        if getattr(model, "histograms_", None) is not None:  # images would have to be described again
            return None
        most = max(_FEWEST, _NUMBERS // source.n_features)
        learned, places = explained.sample_of(training, min(_LEARNED, most))
        labels = training.labels()
        assert labels is not None
        order = np.random.default_rng(0).permutation(places.size)
        held = choose_rows(source.n_rows, min(_MEASURED, most, source.n_rows), 0)
        rows = learned.block(0, learned.n_rows).X[order]
        return cls(model, rows, labels[places][order], explained.taken(source, held), y[held], measure)

    def linear(self) -> float:
        """Return the score of a linear model fitted to the whole sample."""
        return self._score(
            type(self.model)("linear", normalize=self.model.normalize_, random_state=0), self.n_rows
        )

    def curve(self) -> LearningCurve | None:
        """Return the learning curve of the same kind of model on growing parts of the sample."""
        import numpy as np

        from chimap.selection.learning_curve import curve_of

        last = min(_NESTED, self.n_rows)
        sizes = np.unique(
            np.geomspace(max(_FEWEST // 2, last / 2 ** (_STEPS - 1)), last, _STEPS).astype(int)
        ).tolist()
        machine = self._chosen()
        points = [(n, self._score(machine, n)) for n in sizes if np.unique(self.labels[:n]).size > 1]
        return curve_of(self.measure, points)

    @property
    def n_rows(self) -> int:
        """Number of rows to learn from."""
        return int(self.labels.size)

    def _chosen(self) -> BaseEstimator:
        """Return an unfitted model with the settings of the race or the user; only the strength is chosen again."""
        from sklearn.base import clone

        chosen = {name: value for name, value in self.model.chosen_.items() if name in _OF_THE_MACHINE}
        return clone(self.model).set_params(**chosen, bin_weights=self.model.bin_weights_)

    def _score(self, machine: BaseEstimator, n_rows: int) -> float:
        from sklearn.base import clone

        from chimap.data import ArraySource
        from chimap.selection.scoring import HeldOutScore

        rows = ArraySource(self.X[:n_rows], self.labels[:n_rows], column_names=self.held_out.column_names)
        fitted = clone(machine).fit_source(rows)
        score = HeldOutScore(self.y, getattr(fitted, "classes_", None), self.measure)
        return score(fitted.predict_source(self.held_out))
