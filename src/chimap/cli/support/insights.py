"""What a report says beyond the score, measured on some rows: see ``report.insight``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from chimap.cli.support import explained

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap.cli.support.score import Score
    from chimap.data import Source
    from chimap.report import ClassificationMetrics, Insight, LearningCurve, TwoClasses

_LEARNED, _MEASURED = 1500, 1500  # rows at most that curves learn from and are measured on
_NUMBERS = 2**25  # of these rows together
_FEWEST = 60  # rows to learn from, below which there is no curve
_STEPS = 3
_TOP = 10


def insight_of(model: BaseEstimator, source: Source, score: Score, training: Source | None) -> Insight:
    """What is known of a model and the rows that it was measured on; training: rows that it learned from, or None."""
    from chimap.report import Insight, RegressionMetrics, worst_errors, worst_mistakes

    exact = getattr(model, "exact_", model)
    importance = []
    if exact is not None and hasattr(exact, "importance"):
        sample, _ = explained.sample_of(source, 300)
        importance = explained.importance_of(exact, sample, None, "auto").top(_TOP)
    names, two = explained.row_names(source), None
    if isinstance(score.metrics, RegressionMetrics):
        y = score.metrics.targets
        curve = _curve(model, training, source, y, "R²")
        mistakes = worst_errors(names, y, score.metrics.predictions)
    elif score.outcome is not None:
        y, predicted, scores = score.outcome
        metrics = cast("ClassificationMetrics", score.metrics)
        measure = "balanced accuracy" if metrics.is_unequal else "accuracy"
        curve = _curve(model, training, source, y, measure)
        mistakes = worst_mistakes(names, y, predicted, scores, metrics.classes)
        two = _two(model, y, scores, metrics.classes)
    else:
        return Insight(importance=importance)
    return Insight(
        linear=None if curve is None else float(curve.linear[-1]),
        linear_rows=None if curve is None else int(curve.rows[-1]),
        curve=curve,
        importance=importance,
        mistakes=mistakes,
        two=two,
    )


def _two(
    model: BaseEstimator, y: np.ndarray, scores: np.ndarray, classes: Sequence[object] | np.ndarray
) -> TwoClasses | None:
    """Of two classes that both have rows, with the probabilities of ``predict_proba``."""
    import numpy as np

    from chimap.report import TwoClasses

    if len(classes) != 2 or np.unique(y).size < 2:
        return None
    f = scores[:, 1].astype(np.float64)
    return TwoClasses(y == classes[1], f, model.probabilities_of(f[:, None])[:, 1])


def _curve(
    model: BaseEstimator, training: Source | None, source: Source, y: np.ndarray, measure: str
) -> LearningCurve | None:
    """Nested fits on a sample of the training rows, and a linear model on the same rows."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.metrics import accuracy_score, balanced_accuracy_score, r2_score

    from chimap import HistogramClassifier, HistogramRegressor
    from chimap.cli.support.score import answers
    from chimap.data import ArraySource
    from chimap.data.source import choose_rows
    from chimap.report import LearningCurve

    if (
        training is None
        or training.n_rows < _FEWEST
        or not isinstance(model, HistogramClassifier | HistogramRegressor)
    ):
        return None
    if getattr(model, "histograms_", None) is not None:  # images would be described again
        return None
    most = max(_FEWEST, _NUMBERS // source.n_features)
    learned, places = explained.sample_of(training, min(_LEARNED, most))
    labels = training.labels()
    assert labels is not None
    order = np.random.default_rng(0).permutation(places.size)
    X, t = learned.block(0, learned.n_rows).X[order], labels[places][order]
    held = choose_rows(source.n_rows, min(_MEASURED, most, source.n_rows), 0)
    held_out, y_held = explained.taken(source, held), y[held]
    measured = {"accuracy": accuracy_score, "balanced accuracy": balanced_accuracy_score, "R²": r2_score}[
        measure
    ]
    sizes = np.unique(
        np.geomspace(max(_FEWEST // 2, places.size / 2 ** (_STEPS - 1)), places.size, _STEPS).astype(int)
    )
    kept, own, linear = [], [], []
    for n in sizes:
        if np.unique(t[:n]).size < 2:
            continue
        straight = type(model)("linear", normalize=model.normalize_, random_state=0)
        some = ArraySource(X[:n], t[:n], column_names=source.column_names)
        answered = []
        for one in (model, straight):
            anew = clone(one).fit_source(some)
            answered.append(answers(anew, anew.predict_source(held_out)))
        kept.append(int(n))
        own.append(float(measured(y_held, answered[0])))
        linear.append(float(measured(y_held, answered[1])))
    return LearningCurve(measure, np.array(kept), np.array(own), np.array(linear)) if len(kept) > 1 else None
