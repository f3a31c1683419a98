"""What other modules take from an estimator. Its users need none of it, so it has no public names."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, clone

from chimap._types import ArrayLike, MatrixLike, Parameters, Rows
from chimap.data import Source
from chimap.features.mapped_functions import MappedModel
from chimap.fit.recipe import Recipe
from chimap.fit.rows import Preparation
from chimap.fit.targets import Codec

# --- of estimators to fit


def codec_for(model: BaseEstimator, y: np.ndarray) -> Codec:
    """Return how labels or targets y become numbers."""
    codec: Codec = model._codec_type.of(y)
    return codec


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


def without_posterior(model: BaseEstimator) -> BaseEstimator:
    """Return an unfitted copy of an estimator that will not keep the posterior of its weights."""
    copied = clone(model)
    copied._keeps_posterior = False
    return copied


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
