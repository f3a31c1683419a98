"""What other modules take from an estimator. Its users need none of it, so it has no public names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier

from chimap._types import ArrayLike, MatrixLike, Parameters, Rows
from chimap.data import Source
from chimap.features.base import Features
from chimap.features.mapped_functions import MappedModel
from chimap.fit.recipe import Recipe
from chimap.fit.rows import Preparation
from chimap.fit.targets import Codec
from chimap.race.runner import Fit
from chimap.recipe import Recipe as Asked
from chimap.selection import SelectionResult

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

    def fit(recipe: Asked, source: Source, groups: np.ndarray | None) -> FittedCopy:
        copied = clone(model).set_params(
            **{each.name: getattr(recipe, each.name) for each in fields(recipe) if each.name in names}
        )
        copied._keeps_posterior = recipe.keeps_posterior
        return FittedCopy(copied.fit_source(source, groups=groups))

    return fit


@dataclass(frozen=True)
class FittedCopy:
    """What a race reads of a fitted estimator; see ``race.runner.FittedCandidate``."""

    model: BaseEstimator

    @property
    def codec(self) -> Codec:
        """See ``FittedCandidate``."""
        return codec_of(self.model)

    @property
    def alpha(self) -> float:
        """See ``FittedCandidate``."""
        return float(self.model.alpha_)

    @property
    def gamma(self) -> float | None:
        """See ``FittedCandidate``."""
        gamma = getattr(self.model.kernel_, "gamma", None)
        return None if gamma is None else float(gamma)

    @property
    def features(self) -> Features:
        """See ``FittedCandidate``."""
        features: Features = self.model.features_
        return features

    @property
    def coef(self) -> np.ndarray:
        """See ``FittedCandidate``."""
        return np.asarray(self.model.coef_)

    @property
    def selection(self) -> SelectionResult | None:
        """See ``FittedCandidate``."""
        selection: SelectionResult | None = self.model.selection_
        return selection

    @property
    def n_passes(self) -> int:
        """See ``FittedCandidate``."""
        return int(self.model.n_passes_)

    @property
    def keeps_rows(self) -> bool:
        """See ``FittedCandidate``: only exact machines number their rows."""
        return hasattr(self.model, "row_numbers_")

    @property
    def stage_seconds(self) -> Mapping[str, float]:
        """See ``FittedCandidate``."""
        seconds: Mapping[str, float] = self.model.stage_seconds_
        return seconds

    def outputs(self, source: Source) -> np.ndarray:
        """See ``FittedCandidate``."""
        return np.asarray(self.model.predict_source(source))

    def prepared(self, rows: Rows) -> Rows:
        """See ``FittedCandidate``."""
        return preparation_of(self.model)(rows, 0, "the sample")

    def mapped(self) -> MappedModel | None:
        """See ``FittedCandidate``."""
        return mapped_model_of(self.model)


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
