"""More rows than the work allows: the machine of some rows, solved block by block, against landmarks for all of them.

Which of the two is better depends on how much more the left-out rows say, so it is measured: landmarks learn from all
rows but the latest of the sweep, and both are scored on these, which neither has seen.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
from sklearn.base import is_classifier

from chimap._validation import MemoryBudgetError
from chimap.data import Source
from chimap.data.views import ChosenRows
from chimap.engines import Progress
from chimap.estimators.internals import codec_of
from chimap.estimators.recipe_model import RecipeModel
from chimap.fit.automatic import is_automatic, landmarks_in
from chimap.fit.result import FitResult
from chimap.race.rows import scoring_of
from chimap.selection.jackknife import deviations_of, parts_of_rows, standard_error
from chimap.selection.leave_one_out import FEW_ROWS
from chimap.solvers.blocks import USUAL_SECONDS

_SHARE = 0.5  # of the usual seconds of a fit that landmarks for all rows may take beside it


def asks_for_rival(model: RecipeModel) -> bool:
    """Whether a fitted machine left rows out, and the user named neither features nor a time limit."""
    left_out = getattr(model, "n_unlearned_", 0) > 0
    return left_out and is_automatic(getattr(model, "features", None)) and model.time_limit is None


def rival_of(
    model: RecipeModel,
    source: Source,
    groups: np.ndarray | None,
    fit: Callable[[RecipeModel, Source, np.ndarray | None], FitResult],
    progress: Progress,
) -> RecipeModel | None:
    """Return the model with landmarks for all rows if it predicts rows better that neither has seen, or None.

    Parameters
    ----------
    model : RecipeModel
        Fitted block by block on some of the rows.
    source : Source
        All rows.
    groups : array of shape (n,) or None
        Their groups.
    fit : callable
        Fits a model with its settings to rows and groups.
    progress : Progress
        Is told the two scores.
    """
    latest = model.row_numbers_[-FEW_ROWS:]
    latest = np.sort(latest[~np.isnan(model.held_out_[latest]).all(axis=1)])
    if not latest.size:
        return None
    y = source.labels()
    assert y is not None
    others = np.setdiff1d(np.arange(source.n_rows), latest)
    rows, of_rows = ChosenRows(source, others, y[others]), None if groups is None else groups[others]
    rival = copy.copy(model)
    for name in ("row_numbers_", "held_out_", "_made"):
        rival.__dict__.pop(name, None)
    rival.chosen_ = {name: value for name, value in model.chosen_.items() if name != "alpha"}
    rival.chosen_ |= {"features": "landmarks", "gamma": getattr(model.kernel_, "gamma", "mean")}
    try:
        rival._settle(rows, of_rows, is_plain=False)
        most = landmarks_in(_SHARE * USUAL_SECONDS, source.n_rows)
        rival._taken["n_components"] = min(rival._taken.get("n_components", most), most)
        rival._adopt(fit(rival, rows, of_rows))
    except MemoryBudgetError:
        return None  # the machine in blocks stands
    score = codec_of(model).score(
        y, scoring_of(model._given().get("scoring"), is_classifier(model), y), source.weights
    )
    outputs = model.held_out_[latest], rival.predict_source(ChosenRows(source, latest, None))
    parts = parts_of_rows(latest.size, None if groups is None else groups[latest], model._fit_seed)
    ours, theirs = (deviations_of(score.without_each(o, latest, parts)) for o in outputs)
    gain = score(outputs[1], latest) - score(outputs[0], latest)
    progress.note(
        f"{score.name} of rows left out: {score(outputs[0], latest):.4f} by {model.n_rows_:,} rows in blocks, "
        f"{score(outputs[1], latest):.4f} by {rival.features_.describe()} for all rows"
    )
    return rival if gain > standard_error(theirs - ours) else None
