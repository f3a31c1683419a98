"""What is taken where features and their number are left open."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from chimap import AutomaticFeatures, HistogramClassifier, HistogramRegressor, PrincipalFeatures
from chimap._validation import MemoryBudgetError
from chimap.data import ArraySource
from chimap.features.base import Footprint
from chimap.features.exact import ExactFeatures
from chimap.features.families import FAMILIES
from chimap.features.fourier import FourierFeatures
from chimap.features.landmarks import LandmarkFeatures
from chimap.machines import explicit, keeps_rows
from chimap.machines.base import Facts, Request
from chimap.machines.catalogue import machine_for
from chimap.recipe import Recipe
from chimap.recipe.task import Task

from ..histograms import classes

X, Y = classes(300)


def resolved(recipe, source, request=None):
    """The recipe with values for these rows."""
    task, source, _ = Task.of(source, recipe)
    return machine_for(recipe, Facts.of(source, task, None, request or Request(can_keep=True))).recipe


EXP = {"kernel": "exp-chi2", "random_state": 0}


def test_rows_that_fit_are_all_kept():
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | EXP).fit(X, Y)
    assert isinstance(model.features_, ExactFeatures)
    given = HistogramClassifier(**{"kernel": "exp-chi2"} | EXP, features="exact").fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), given.decision_function(X))
    assert model.features == "auto"


@pytest.mark.parametrize("kernel", ["minmax", "pq", "skewed_chi2"])
def test_kernels_without_a_map_keep_rows_whose_pairs_take_seconds(kernel, monkeypatch):
    model = HistogramClassifier(kernel, random_state=0).fit(X, Y)
    assert isinstance(model.features_, ExactFeatures)
    monkeypatch.setattr(keeps_rows, "_MOST_LOOPED", X.size * len(X) - 1)
    assert "n_components" in model.fit(X, Y).features_.get_params()


@pytest.mark.parametrize(
    "asked",
    [
        {"n_components": 50},
        {"loss": "logistic", "n_components": 50},
        {"blocks": [slice(0, 4), slice(4, None)], "n_components": 30},
        {"features": PrincipalFeatures(5), "n_components": 50},
        {"selection": "gcv"},
    ],
    ids=str,
)
def test_what_the_exact_machine_does_not_have_takes_landmarks(asked):
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | EXP, **asked).fit(X, Y)
    assert "landmarks" in model.features_.describe()


def test_more_rows_than_the_most_take_blocks_or_landmarks(monkeypatch):
    monkeypatch.setattr(keeps_rows, "MOST_ROWS", 299)
    for module in ("matrix", "blocks"):
        monkeypatch.setattr(f"chimap.machines.{module}.FEWEST_BLOCK_ROWS", 100)
    model = HistogramRegressor(**{"kernel": "exp-chi2"} | EXP).fit(X, X[:, 0])
    assert model._taken["solver"] == "blocks"
    gaps = np.column_stack([X[:, 0], X[:, 1]])
    gaps[::7, 0] = np.nan  # each target has a matrix of its own
    assert isinstance(model.fit(X, gaps).features_, LandmarkFeatures)
    monkeypatch.setattr(keeps_rows, "MOST_ROWS", 300)
    assert isinstance(model.fit(X, X[:, 0]).features_, ExactFeatures)


def test_sampling_takes_random_features_and_additive_kernels_their_map():
    assert isinstance(
        HistogramClassifier(**{"kernel": "exp-chi2"} | EXP, features=AutomaticFeatures(sampling="iid"))
        .fit(X, Y)
        .features_,
        FourierFeatures,
    )
    assert "Optimal" in HistogramClassifier("chi2").fit(X, Y).features_.describe()


def test_the_number_of_landmarks_follows_rows_and_memory():
    numbers = [explicit.landmarks_of(n) for n in (10, 20_000, 100_000, 10**8)]
    assert numbers[0] == 1000 < numbers[1] < numbers[2] < numbers[3] == 8000
    rows = ArraySource(np.random.default_rng(0).dirichlet(np.ones(20), 40_000), np.arange(40_000) % 3)

    def landmarks(memory):
        model = HistogramClassifier(**{"kernel": "exp-chi2"} | EXP, features="landmarks", memory=memory)
        return resolved(Recipe.of(model), rows).n_components

    assert landmarks("1GiB") == explicit.landmarks_of(40_000)
    assert 64 <= landmarks("20MiB") < landmarks("32MiB") < landmarks("1GiB")


def test_a_small_first_batch_takes_random_features():
    model = HistogramClassifier(**{"kernel": "exp-chi2"} | EXP).partial_fit(X[:100], Y[:100], classes=np.unique(Y))
    assert isinstance(model.features_, FourierFeatures)


@pytest.mark.parametrize("features", ["landmarks", "fourier"])
def test_too_many_components_are_refused_with_the_most_that_fit(features):
    rows = np.random.default_rng(0).random((3000, 20), dtype=np.float32)
    y = np.arange(3000) % 3
    settings = {"features": features, "memory": "32MiB", "random_state": 0}
    with pytest.raises(MemoryBudgetError) as refused:
        HistogramClassifier("exp-chi2", n_components=2900, **settings).fit(rows, y)
    most = int(re.search(r"At most about n_components=(\d+) fits it", str(refused.value))[1])
    assert 100 < most < 2900
    HistogramClassifier("exp-chi2", n_components=most, **settings).fit(rows, y)
    with pytest.raises(MemoryBudgetError):
        HistogramClassifier("exp-chi2", n_components=most + 1, **settings).fit(rows, y)


class Sketch(FourierFeatures):
    """A family that says nothing but what every one has to."""

    @classmethod
    def takes(cls, kernel):
        return True

    def footprint(self, n_bins):
        return Footprint(self.n_components, n_bins, self.n_components)

    def fitting_bytes(self, n_rows, row_bytes, itemsize):
        return 0


@pytest.fixture
def sketch(monkeypatch):
    monkeypatch.setitem(FAMILIES, "sketch", (Sketch,))


def test_families_with_a_number_of_components(sketch):
    def taken(kernel, features="auto", **settings):
        recipe = Recipe("HistogramClassifier", True, kernel, features, **settings)
        return explicit.takes_components(recipe), explicit.takes_landmarks(recipe)

    assert taken("exp-chi2") == taken("pq") == taken("exp-chi2", n_components="auto") == (True, True)
    assert taken("exp-chi2", landmarks=X[:20]) == (True, True)
    assert taken("gaussian", features="fourier", sampling="structured") == taken("skewed-chi2") == (True, False)
    assert taken("exp-chi2", features="sketch") == (True, False)
    for kernel in ("chi2", "linear", "dirichlet", "additive-gaussian"):
        assert taken(kernel) == (False, False)
    assert taken("exp-chi2", features="exact") == (False, False)
    assert taken(["exp-chi2", "chi2"]) == taken("exp-chi2", features=FourierFeatures()) == (False, False)


def test_a_new_family_is_told_how_many_components_fit(sketch):
    asked = {"features": "sketch", "n_components": 10**6, "memory": "400MiB"}
    with pytest.raises(MemoryBudgetError, match=r"At most about n_components=\d+ fits it"):
        HistogramClassifier(**EXP, **asked).fit(X, Y)


def test_open_settings_get_values_and_others_stay():
    recipe = Recipe.of(HistogramClassifier("exp-chi2", precision="auto", gamma="auto", random_state=0))
    exact = resolved(recipe, ArraySource(X, Y))
    assert exact.resolved == {"features", "precision"}
    assert (exact.features, exact.precision) == ("exact", "float32")
    landmarks = resolved(replace(recipe, features="landmarks"), ArraySource(X, Y))
    assert landmarks.resolved == {"n_components", "precision"}
    assert (landmarks.gamma, landmarks.n_components) == ("auto", 1000)  # a sample chooses gamma
    batch = resolved(recipe, ArraySource(X, Y), Request(can_keep=True, is_batch=True))
    assert batch.features == "fourier"  # too few rows for landmarks that serve later ones
    assert recipe.resolved == frozenset()
    assert recipe.features == recipe.gamma == recipe.precision == "auto"


@pytest.mark.parametrize("settings", [{"loss": "hinge", "alpha": 0.1}, {"loss": "squared_hinge"}, {"alpha": 0.1}])
def test_features_that_are_kept_need_no_room_for_sums_of_their_products(settings):
    """60,000 features squared are 29 GB; the plan of their machine says so only where it sums them."""
    rng = np.random.default_rng(0)
    wide = sparse.csr_array(sparse.random_array((40, 20_000), density=0.01, rng=rng, format="csr"))
    model = HistogramClassifier("chi2", features="additive", memory="1GiB", **settings)
    assert model.fit(wide, np.arange(40) % 2).n_rows_ == 40
    recipe = Recipe.of(model)
    task, source, _ = Task.of(ArraySource(wide, np.arange(40) % 2), recipe)
    plan = machine_for(recipe, Facts.of(source, task, None, Request(can_keep=True)))
    assert plan.cost.n_bytes < 2**30
    assert plan.ahead
