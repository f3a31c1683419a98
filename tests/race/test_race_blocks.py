"""Columns of several descriptors, declared by their names, in a race: the min-max kernel of each, summed."""

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, HistogramRegressor, MinMax
from chimap.data import ArraySource
from chimap.data.table import declared_blocks
from chimap.models.race_result import Candidate, RaceResult
from chimap.race.candidates import kernels_worth_trying, within
from chimap.race.rounds import ERRORS_TO_OVERRULE_ORDER
from chimap.race.runner import Race
from chimap.race.traits import SampleTraits
from chimap.race.trials import Outcome
from chimap.recipe import Recipe
from chimap.recipe.task import Task

NAMES = [f"small::{i}" for i in range(6)] + [f"large::{i}" for i in range(30)]
MACHINE = "minmax, raw rows, 2 blocks"


def table(n, seed=0):
    """Return rows, and targets that depend on how alike rows of few counts are, next to many that say nothing."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.poisson(2, (n, 6)), rng.poisson(6, (n, 30))]).astype(float)
    prototypes = np.random.default_rng(9).poisson(2, (8, 6)).astype(float)
    return X, MinMax()(X[:, :6], prototypes) @ np.linspace(-1, 1, 8)


def raced(model, X, y, names=NAMES):
    return model.fit_source(ArraySource(sp.csr_matrix(X), y, column_names=names))


def test_declared_blocks_enter_the_race_first_and_the_model_has_them():
    X, y = table(150)
    model = raced(HistogramRegressor(random_state=0), X, y)
    assert model.race_.trials[0].candidate.name == MACHINE
    new, targets = table(300, seed=1)
    alone = raced(HistogramRegressor("minmax", random_state=0), X, y)
    error, rivals = (np.square(each.predict(new) - targets).mean() for each in (model, alone))
    assert error < 0.8 * rivals


def test_a_block_of_noise_is_left_out_where_left_out_rows_say_so():
    X, y = table(150)
    noise = np.random.default_rng(5).poisson(
        2, (150, 6)
    )  # as many columns as the small block: products are not mixed up
    names = [*NAMES, *(f"noise::{i}" for i in range(6))]
    model = raced(HistogramRegressor(random_state=0), np.hstack([X, noise]), y, names)
    scores = {trial.candidate.name: trial.score for trial in model.race_.trials}
    left = {name: scores[f"minmax, raw rows, without {name}"] for name in ("small", "large", "noise")}
    assert left["small"] < scores["minmax, raw rows, 3 blocks"] < max(left["large"], left["noise"])
    alone = {name: scores[f"minmax, raw rows, {name} alone"] for name in ("small", "large", "noise")}
    assert alone["noise"] < min(alone["small"], alone["large"]) < scores["minmax, raw rows, 3 blocks"]
    assert len({*left.values(), *alone.values()}) == 6
    declared = SampleTraits.of(sp.csr_matrix(X), 0, False, declared_blocks(NAMES))
    assert [spec.name for spec in kernels_worth_trying(declared) if spec.blocks is not None] == [MACHINE]


@pytest.mark.parametrize("names", [None, [*NAMES[:-1], "mass"], [f"one::{i}" for i in range(36)]])
def test_columns_of_no_or_one_descriptor_have_no_blocks(names):
    assert declared_blocks(names) is None
    traits = SampleTraits.of(sp.csr_matrix(table(30)[0]), 0, True)
    assert all(spec.blocks is None for spec in kernels_worth_trying(traits))


def test_signed_rows_have_none():
    traits = SampleTraits.of(sp.csr_matrix(table(30)[0] - 1), 2, True, declared_blocks(NAMES))
    assert all(spec.blocks is None for spec in kernels_worth_trying(traits))


@pytest.mark.parametrize("model", [HistogramClassifier(random_state=0), HistogramRegressor(random_state=0)])
def test_few_targets_prefer_the_first_machine_within_two_errors(model):
    """The best of two dozen machines leads by luck: numbers are judged as classes are."""
    X, y = table(60)
    y = np.where(y > np.median(y), "a", "b") if isinstance(model, HistogramClassifier) else y
    source = ArraySource(sp.csr_matrix(X), y, column_names=NAMES)
    asked = Recipe.of(model)
    running = Race.on(asked, source, Task.of(source, asked)[0], None, lambda *given: None)
    assert running.n_errors == ERRORS_TO_OVERRULE_ORDER
    lucky, preferred = Outcome(0.9, deviations=(0.1, 0.1)), Outcome(0.65, deviations=(-0.05, -0.05))
    trials = [
        outcome.trial(Candidate(name, asked), 0, 60, 0.0)
        for name, outcome in zip("ab", (lucky, preferred), strict=True)
    ]
    result = RaceResult(trials, "R2", 60, 0.0, trials)
    assert running.judged(result, ["b", "a"]).trials[0].candidate.name == "b"
    assert running.judged(result, ["a", "b"]).trials[0].candidate.name == "a"


def test_blocks_that_a_user_names_are_raced_with_the_min_max_kernel_too():
    source = ArraySource(sp.csr_matrix(table(90)[0]), table(90)[1])
    blocks = {"small": slice(0, 6), "large": slice(6, 36)}

    def raced_names(features):
        asked = Recipe.of(HistogramRegressor(blocks=blocks, features=features, random_state=0))
        running = Race.on(asked, source, Task.of(source, asked)[0], None, lambda *given: None)
        assert running.traits.blocks == blocks
        return [each.name for each in within(kernels_worth_trying(running.traits), asked)]

    assert "minmax, raw rows" in raced_names("auto")
    assert "minmax, raw rows" not in raced_names("landmarks")
