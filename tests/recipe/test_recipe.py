"""Settings of a fit: what they are read from, and how a race and the rows at hand replace those that are open."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from chimap import (
    FourierFeatures,
    FourierKernelLearner,
    HistogramClassifier,
    HistogramRegressor,
    MultipleKernelRegressor,
    PrincipalFeatures,
)
from chimap.recipe import AUTO, Recipe, is_auto

ESTIMATORS = [
    HistogramClassifier(),
    HistogramRegressor("chi2", memory="512MiB", alpha=[0.1, 1.0], bin_weights=np.ones(4)),
    FourierKernelLearner("gaussian", max_iter=3),
    MultipleKernelRegressor(blocks=[slice(0, 2), slice(2, 4)], shared=True),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_every_parameter_is_a_setting_of_the_recipe_or_of_its_learner(estimator):
    recipe = Recipe.of(estimator)
    learned = estimator._recipe().learner
    names = {field.name for field in fields(recipe)}
    parameters = estimator.get_params(deep=False)
    parameters.pop("covariates", None)  # they come with the rows
    for name, value in parameters.items():
        assert getattr(recipe if name in names else learned, name) is value
    assert recipe.estimator == type(estimator).__name__
    assert recipe.is_classifier == hasattr(estimator, "predict_proba")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_settings_have_the_names_and_values_of_parameters(estimator):
    found, parameters = estimator._recipe().settings, estimator.get_params(deep=False)
    given = parameters.keys() - {"covariates", "verbose", "features"}
    assert all(found[name] is parameters[name] for name in given)
    assert not found.keys() & {"seed", "raced", "resolved", "learner", "n_terms", "map", "sampling", "n_principal"}


def test_settings_of_features_are_those_of_an_object():
    given = PrincipalFeatures(8, FourierFeatures(sampling="orthogonal"))
    found = Recipe.of(HistogramClassifier("exp-chi2", features=given)).settings["features"]
    assert (found.n_components, found.features.family, found.features.sampling) == (8, "fourier", "orthogonal")
    raced = Recipe.of(HistogramClassifier()).with_raced(kernel="gaussian", features="exact").settings
    assert (raced["kernel"], raced["features"]) == ("gaussian", "exact")


def test_a_recipe_is_frozen_and_a_race_makes_another_one():
    asked = Recipe.of(HistogramClassifier(alpha=[1.0, 2.0]))
    with pytest.raises(FrozenInstanceError):
        asked.kernel = "chi2"
    raced = asked.with_raced(kernel="chi2", alpha=2.0)
    assert raced.raced_settings == {"kernel": "chi2", "alpha": 2.0}
    assert asked.raced_settings == {}
    assert is_auto(asked.kernel)
    open_again = raced.without_raced("alpha", of=asked)
    assert open_again.raced_settings == {"kernel": "chi2"}
    assert open_again.alpha is asked.alpha


def test_settings_are_open_until_they_get_a_value():
    recipe = Recipe.of(HistogramClassifier(gamma=0.5, bin_weights=np.ones(3)))
    assert recipe.leaves_open("kernel", "features", "alpha")
    assert not recipe.leaves_open("kernel", "gamma")
    assert not recipe.leaves_open("bin_weights")
    assert not recipe.with_values(features="exact").leaves_open("features")
    assert not recipe.with_raced(kernel="chi2").leaves_open("kernel")


def test_values_of_open_settings_are_not_the_choice_of_a_race():
    recipe = Recipe.of(HistogramClassifier()).with_raced(kernel="exp-chi2").with_values(features="exact")
    assert recipe.resolved == {"features"}
    assert recipe.raced == {"kernel"}
    assert recipe.is_exact


def test_a_generator_gives_another_seed_to_each_recipe_and_a_number_the_same():
    drawn = HistogramClassifier(random_state=np.random.RandomState(0))
    assert Recipe.of(drawn).seed != Recipe.of(drawn).seed
    fixed = HistogramClassifier(random_state=3)
    assert Recipe.of(fixed).seed == Recipe.of(fixed).seed


def test_the_search_for_gamma_begins_at_the_mean_where_every_row_is_kept():
    searching = Recipe.of(HistogramClassifier("exp-chi2", features="exact", gamma=AUTO))
    assert searching.exact_kernel.gamma == "mean"
    assert Recipe.of(HistogramClassifier("exp-chi2", gamma=0.5)).exact_kernel.gamma == 0.5
