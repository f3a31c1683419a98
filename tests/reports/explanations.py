"""Explanations to draw, of small models of digits."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.datasets import load_digits

from chimap import HistogramClassifier, HistogramRegressor
from chimap.reports import ExplainedRow, Likeness, ModelExplanation
from chimap.reports.pictures import grey, painted


@cache
def explanation(features: str = "additive", two: bool = False, regression: bool = False) -> ModelExplanation:
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], (y[:400] == 3 if two else y[:400])
    settings = (
        {"kernel": "chi2"}
        if features == "additive"
        else {"kernel": "exp-chi2", "features": features, "n_components": 40}
    )
    estimator = HistogramRegressor if regression else HistogramClassifier
    model = estimator(random_state=0, **settings).fit(X, y)
    found = model.explain(X[:2])
    rows = [
        ExplainedRow(
            f"<row {i}>",
            int(y[i]),
            int(y[i]),
            None if regression else 8,
            found.contributions[i, :, 0],
            float(found.base[0]),
            float(found.scores[i, 0]),
            X[i],
            [Likeness("landmark 3", 3, 0.9, 0.2)] if features == "landmarks" else [],
            grey(X[i], (8, 8)),
            painted(found.contributions[i, :, 0], (8, 8), X[i]),
        )
        for i in range(2)
    ]
    ranked = model.importance(X)
    return ModelExplanation(
        title="<b>chi2</b>: digits.model",
        model_name="HistogramClassifier",
        data={"model": "digits.model", "rows looked at": 400},
        importance=ranked,
        is_additive=features == "additive",
        output_names=tuple(getattr(model, "classes_", np.array(["prediction"])).tolist()),
        classes=None if regression else tuple(model.classes_.tolist()),
        bin_names=np.array([f"pixel in row {i // 8}, column {i % 8}" for i in range(64)]),
        effects=tuple(model.effects(ranked.bins[:3], X)),
        rows=tuple(rows),
        which_rows="The worst mistakes first.",
        painted=painted(ranked.by_bin, (8, 8)),
    )
