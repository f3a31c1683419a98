"""What other modules take from an estimator. Its users need none of it, so it has no public names."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier

from chimap._types import ArrayLike, MatrixLike, Parameters, Rows
from chimap.data import Source
from chimap.features.mapped_functions import MappedModel
from chimap.fit.recipe import Recipe
from chimap.fit.rows import Preparation
from chimap.fit.targets import Codec
from chimap.race.runner import Fit, FittedCandidate
from chimap.recipe import Recipe as Asked

# --- of estimators to fit


def seed_of(model: BaseEstimator) -> int:
    """Return the seed of the fit; before one, what ``random_state`` would give."""
    return int(model._fit_seed)


def rows_that_count(
    model: BaseEstimator, source: Source, groups: ArrayLike | None
) -> tuple[Source, np.ndarray | None]:
    """Return the rows with weight above 0, with class weights included in their weights, and their groups."""
    rows: tuple[Source, np.ndarray | None] = model._weighed(source, groups)
    return rows


def recipe_for(model: BaseEstimator, source: Source) -> tuple[Parameters, Recipe]:
    """Return the parameters of a fit of a source, with what "auto" stands for, and its recipe."""
    model._settle(source)
    return model._given(), model._recipe()


def asked_of(model: BaseEstimator) -> Asked:
    """Return the recipe that the parameters of an estimator ask for, with the seed of its fit."""
    given = model.get_params(deep=False)
    settings = {each.name: given[each.name] for each in fields(Asked) if each.name in given}
    return Asked(type(model).__name__, is_classifier(model), **settings, seed=seed_of(model))


def fit_of(model: BaseEstimator) -> Fit:
    """Return how a race fits a recipe: by a copy of the estimator that has its settings."""
    names = model.get_params(deep=False).keys()

    def fit(recipe: Asked, source: Source, groups: np.ndarray | None) -> FittedCandidate:
        copied = clone(model).set_params(
            **{each.name: getattr(recipe, each.name) for each in fields(recipe) if each.name in names}
        )
        copied._keeps_posterior = recipe.keeps_posterior
        return fitted_candidate(copied.fit_source(source, groups=groups))

    return fit


def fitted_candidate(model: BaseEstimator) -> FittedCandidate:
    """Return what a race reads of a fitted estimator."""
    gamma = getattr(model.kernel_, "gamma", None)
    return FittedCandidate(
        codec_of(model), float(model.alpha_), None if gamma is None else float(gamma), model.features_, model.coef_,
        model.selection_, model.n_passes_,
        hasattr(model, "row_numbers_"),  # only exact machines number their rows
        model.stage_seconds_, model.predict_source,
        lambda rows: preparation_of(model)(rows, 0, "the sample"), lambda: mapped_model_of(model),
    )  # fmt: skip


# --- of fitted models


def codec_of(model: BaseEstimator) -> Codec:
    """Return how labels or targets became numbers, as learned from all of them."""
    codec: Codec = model._codec
    return codec


def preparation_of(model: BaseEstimator) -> Preparation:
    """Return how rows become the input of the features."""
    model._refresh()
    preparation: Preparation = model._preparation
    return preparation


def mapped_model_of(model: BaseEstimator) -> MappedModel | None:
    """Return the scores as a function of mapped rows, or None if they are not such a function."""
    mapped: MappedModel | None = model._mapped_model()
    return mapped


def rows_as_read(model: BaseEstimator, X: MatrixLike | Source) -> Rows:
    """Return rows X as they are given, in the columns of the fit."""
    rows: Rows = model._rows_as_read(X)[0]
    return rows
