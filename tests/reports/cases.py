"""Evaluations to draw: two classes, ten, a hundred and two, and a regression; and their pages, each drawn once."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from functools import cache

import numpy as np

from chimap.reports import (
    Baseline,
    Evaluation,
    Insight,
    PermutationTest,
    Reliability,
    SplitScores,
    StrengthCurve,
    StudyScores,
    TwoClasses,
    classification_metrics,
    examples,
    mean_baseline,
    ranking_metrics,
    regression_metrics,
    task_metrics,
    worst_errors,
    worst_mistakes,
)
from chimap.reports.linear import LinearRival
from chimap.selection.learning_curve import LearningCurve

STAGES = {"read": 0.4, "map": 1.2, "features": 2.5, "moments": 4.0, "choose alpha": 0.3, "solve": 0.05}


def predictions(n_classes: int, rows: int = 600, right: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_classes)
    y_true = rng.permutation(np.arange(rows) % n_classes)
    return y_true, np.where(rng.random(rows) < right, y_true, rng.integers(0, n_classes, rows))


def curve() -> StrengthCurve:
    alphas = np.logspace(-4, 2, 7)
    errors = 0.1 + 0.01 * np.abs(np.log10(alphas) + 1)
    return StrengthCurve(alphas, errors, np.full(7, 0.004), 0.1)


def evaluation_of(metrics, baseline, **changes) -> Evaluation:
    fields = {
        "title": "Flowers",
        "model_name": "HistogramClassifier",
        "data": {"file": "flowers.npz", "rows": np.int64(12_000), "bins": 64, "which rows": "held-out 20 %"},
        "metrics": metrics,
        "baseline": baseline,
        "curve": curve(),
        "stages": STAGES,
        "settings": {"kernel": "exp-chi2", "gamma": np.float32(0.25), "blocks": None, "signed": False},
        "versions": {"chimap": "0.1.0", "numpy": "2.0"},
        "created": datetime(2025, 3, 4, 5, 6, tzinfo=UTC),
    }
    return Evaluation(**(fields | changes))


def classification(n_classes: int, name: str = "class {}", **changes) -> Evaluation:
    names = np.array([name.format(i) for i in range(n_classes)])
    y_true, y_pred = predictions(n_classes)
    metrics = classification_metrics(names[y_true], names[y_pred], classes=names)
    confidence = np.random.default_rng(1).uniform(1 / n_classes, 1, y_true.size) ** 0.3
    changes = {"reliability": Reliability(confidence, y_true == y_pred)} | changes
    return evaluation_of(metrics, Baseline("always answering “class 0”", 1 / n_classes), **changes)


def explained_regression(n_rows: int = 50) -> Evaluation:
    """A regression with all that is known beyond the score."""
    plain = regression(n_rows)
    names, y = np.array([f"m{i}" for i in range(n_rows)]), plain.metrics.targets
    curve = LearningCurve("r2", np.array([250, 500, 1000]), np.array([0.7, 0.8, 0.9]))
    insight = Insight(
        linear=LinearRival("linear on raw rows", 0.75, "r2", 1000, 0.2, 0.05),
        curve=curve,
        importance=[("bit 17", 0.5), ("bit 4", 0.25)],
        mistakes=worst_errors(names, y, plain.metrics.predictions),
    )
    return dataclasses.replace(plain, insight=insight)


def regression(rows: int = 200, **changes) -> Evaluation:
    rng = np.random.default_rng(0)
    y_true = rng.gamma(2.0, 30.0, rows)
    y_pred = y_true + 10 * rng.standard_normal(rows)
    return evaluation_of(regression_metrics(y_true, y_pred), mean_baseline(y_true, y_true), **changes)


def of_tasks() -> Insight:
    """Of several tasks: their learning curve and the bins that matter."""
    curve = LearningCurve("mean roc_auc", np.array([250, 500, 1000]), np.array([0.6, 0.7, 0.75]))
    return Insight(curve=curve, importance=[("bit 17", 0.5)])


def several_tasks(t: int, rows: int = 300, name: str = "task {}", **changes) -> Evaluation:
    """The last task has a single label, and cannot be measured."""
    rng = np.random.default_rng(t)
    Y = (rng.random((rows, t)) < np.linspace(0.1, 0.9, t)).astype(float)
    outputs = Y - 0.5 + rng.normal(size=Y.shape) * np.linspace(0.2, 1, t)
    Y[rng.random(Y.shape) < 0.25] = np.nan
    Y[:, -1] = np.where(np.isnan(Y[:, -1]), np.nan, 1)
    metrics = task_metrics(Y, outputs, [name.format(i) for i in range(t)])
    return evaluation_of(metrics, changes.pop("baseline", Baseline("guessing", 0.5)), **changes)


def several_targets(t: int, rows: int = 300) -> Evaluation:
    rng = np.random.default_rng(t)
    Y = rng.normal(size=(rows, t))
    metrics = task_metrics(Y, Y + rng.normal(size=Y.shape), [f"dose {i}" for i in range(t)], False)
    return evaluation_of(metrics, Baseline("always answering the means", 0.0))


SPLITS = SplitScores(
    {
        "accuracy": np.array([0.8, 0.9]),
        "class_rate": np.array([0.7, 0.8]),
        "mean_average_precision": np.array([0.75, 0.85]),
    },
    300,
    900,
)


def ranked(n_classes: int, with_images: bool = False, **changes) -> Evaluation:
    """With scores whose highest is the answer, and with images of one colour a class."""
    names = np.array([f"class {i}" for i in range(n_classes)])
    y_true, y_pred = predictions(n_classes, 20 * n_classes, 0.6)
    rng = np.random.default_rng(1)
    scores = rng.random((y_true.size, n_classes)) + 0.5 * (y_true[:, None] == np.arange(n_classes))
    scores[np.arange(y_true.size), y_pred] = scores.max(axis=1) + 0.1
    metrics = classification_metrics(names[y_true], names[y_pred], classes=names)
    ranking = ranking_metrics(names[y_true], scores, names.tolist())
    shown = None
    if with_images:
        colours = rng.integers(0, 256, (n_classes, 3)).astype(np.uint8)

        def read(row: int) -> np.ndarray:
            return np.full((60, 90, 3), colours[y_true[row]])

        shown = examples(metrics, ranking, names[y_true], names[y_pred], scores, read)
    return evaluation_of(
        metrics, Baseline("chance", 1 / n_classes), ranking=ranking, examples=shown, splits=SPLITS, **changes
    )


RELIABILITY = Reliability(np.linspace(0.5, 1, 400), np.arange(400) % 5 > 0)


def unequal(n_rows: int = 400) -> Evaluation:
    """Two classes, one of them rare, with all that is known beyond the score."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(n_rows) < 0.1, "active", "inactive")
    scores = rng.normal(size=n_rows) + 2 * (y == "inactive") - 0.5
    predicted = np.where(scores > 0, "inactive", "active")
    classes = np.array(["active", "inactive"])
    metrics = classification_metrics(y, predicted, classes=classes, scores=scores)
    both = np.stack([-scores, scores], axis=1)
    insight = Insight(
        linear=LinearRival("linear on l1 rows", 0.8, "roc_auc", 1000, 0.02, 0.05),
        curve=LearningCurve("roc_auc", np.array([250, 500, 1000]), np.array([0.7, 0.8, 0.9])),
        importance=[("<bit> 17", 0.5), ("bit 4", 0.25)],
        mistakes=worst_mistakes(np.array([f"m{i}" for i in range(n_rows)]), y, predicted, both, classes.tolist()),
        two=TwoClasses(y == "inactive", scores, np.clip((scores + 1) / 2, 0, 1)),
    )
    ranking = ranking_metrics(y, both, classes.tolist())
    baseline = Baseline("always answering “inactive”", 0.9)
    return evaluation_of(metrics, baseline, insight=insight, ranking=ranking, reliability=RELIABILITY)


def by_study() -> StudyScores:
    names = ("Quin_gut_liver_cirrhosis", "Zeller_fecal_colorectal_cancer", "t2dmeta <long>", "t2dmeta_short")
    test = PermutationTest(0.722, np.linspace(0.42, 0.6, 200), "one factor for all")
    across, within = np.array([0.829, 0.654, 0.696, np.nan]), np.array([0.965, 0.846, 0.726, np.nan])
    notes = ("t2dmeta_short: all labels are well, so neither score is defined",)
    return StudyScores("roc_auc", names, np.array([232, 121, 271, 73]), across, within, notes, test)


CASES = {
    "two classes in studies": lambda: dataclasses.replace(classification(2), studies=by_study()),
    "two unequal classes": unequal,
    "two classes": lambda: classification(2),
    "ten classes": lambda: classification(10),
    "forty classes": lambda: classification(40, "a rather long name of class {}"),
    "many classes": lambda: classification(102, "the long, long name of the class with number {} of them all"),
    "a thousand classes": lambda: classification(1000),
    "two ranked classes": lambda: ranked(2),
    "thirty ranked classes with images": lambda: ranked(30, with_images=True),
    "fourteen tasks": lambda: several_tasks(14, insight=of_tasks()),
    "two targets": lambda: several_targets(2),
    "regression, few rows": explained_regression,
    "regression, many rows": lambda: regression(2000),
}


@cache
def page_of(name: str) -> str:
    return CASES[name]().to_html()
