"""What a report says beyond the score, measured on some rows: see ``report.insight``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chimap.cli.support import explained

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap.cli.support.score import Score
    from chimap.data import Source
    from chimap.report import Insight, LearningCurve, TwoClasses

_LEARNED, _MEASURED = 1500, 1500  # rows at most that curves learn from and are measured on
_NUMBERS = 2**25  # of these rows together
_FEWEST = 60  # rows to learn from, below which there is no curve
_STEPS = 3
_TOP = 10


def insight_of(model: BaseEstimator, source: Source, score: Score, training: Source | None) -> Insight:
    """What is known of a model and the rows that it was measured on; training: rows that it learned from, or None."""
    from chimap.report import Insight, worst_mistakes

    exact = getattr(model, "exact_", model)
    importance = []
    if exact is not None and hasattr(exact, "importance"):
        sample, _ = explained.sample_of(source, 300)
        importance = explained.importance_of(exact, sample, None, "auto").top(_TOP)
    if score.outcome is None:
        return Insight(importance=importance)
    y, predicted, scores = score.outcome
    classes = score.metrics.classes  # type: ignore[union-attr]
    curve = _curve(model, training, source, y, score.metrics.is_unequal)  # type: ignore[union-attr]
    return Insight(
        linear=None if curve is None else float(curve.linear[-1]),
        linear_rows=None if curve is None else int(curve.rows[-1]),
        curve=curve,
        importance=importance,
        mistakes=worst_mistakes(explained.row_names(source), y, predicted, scores, classes),
        two=_two(model, y, scores, classes),
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
    model: BaseEstimator, training: Source | None, source: Source, y: np.ndarray, is_unequal: bool
) -> LearningCurve | None:
    """Nested fits on a sample of the training rows, and a linear model on the same rows."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.metrics import accuracy_score, balanced_accuracy_score

    from chimap import HistogramClassifier
    from chimap.data import ArraySource
    from chimap.data.source import choose_rows
    from chimap.report import LearningCurve

    if training is None or training.n_rows < _FEWEST or not isinstance(model, HistogramClassifier):
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
    measure = balanced_accuracy_score if is_unequal else accuracy_score
    sizes = np.unique(
        np.geomspace(max(_FEWEST // 2, places.size / 2 ** (_STEPS - 1)), places.size, _STEPS).astype(int)
    )
    kept, own, linear = [], [], []
    for n in sizes:
        if np.unique(t[:n]).size < 2:
            continue
        straight = HistogramClassifier("linear", normalize=model.normalize_, random_state=0)
        some = ArraySource(X[:n], t[:n], column_names=source.column_names)
        points = []
        for one in (model, straight):
            anew = clone(one).fit_source(some)
            points.append(anew.labels_of(anew.predict_source(held_out)))
        kept.append(int(n))
        own.append(float(measure(y_held, points[0])))
        linear.append(float(measure(y_held, points[1])))
    name = "balanced accuracy" if is_unequal else "accuracy"
    return LearningCurve(name, np.array(kept), np.array(own), np.array(linear)) if len(kept) > 1 else None
