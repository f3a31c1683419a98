"""The budget "auto" grows with the rows, and a race ends in a machine that its budget holds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import chimap.fit.fit as trunk
from chimap import HistogramClassifier, HistogramRegressor, _memory, load
from chimap._validation import MemoryBudgetError
from chimap.data.doubts import DataWarning
from chimap.models.race_result import Candidate, RaceResult, Trial
from chimap.race import choose
from chimap.race.choose import Attempts, Raced
from chimap.recipe import Recipe

rng = np.random.default_rng(0)
Y = np.arange(120) % 2
X = rng.poisson(1 + 2 * (Y[:, None] == np.arange(40) % 2)).astype(np.float32)


def system(root, available, groups="", **files):
    """A folder with the files of a system that has so many KiB free."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: 99999999 kB\nMemAvailable: {available} kB\n")
    (root / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2 = {"memory.max": "5000", "memory.current": "3000", "memory.stat": "anon 2000\ninactive_file 1000\n"}
V1 = {
    "memory.limit_in_bytes": "5000",
    "memory.usage_in_bytes": "3000",
    "memory.stat": "inactive_file 7\ntotal_inactive_file 500\n",
}
NO_LIMIT = {"a/memory.max": "max", "a/memory.current": "3000", "a/memory.stat": ""}


@pytest.mark.parametrize(
    ("groups", "files", "free"),
    [
        ("", {}, 8192),
        ("0::/\n", V2, 3000),  # of a container
        ("0::/a/b\n", {f"a/{name}": text for name, text in V2.items()}, 3000),  # of the group above
        ("0::/a\n", NO_LIMIT | V2, 3000),
        ("0::/a\n", NO_LIMIT, 8192),
        ("1:cpu:/a\n4:memory:/a\n", {f"memory/a/{name}": text for name, text in V1.items()}, 2500),
        ("4:cpu,memory:/not/mounted\n", {f"memory/{name}": text for name, text in V1.items()}, 2500),
        ("1:cpu:/a\n", {f"memory/a/{name}": text for name, text in V1.items()}, 8192),
        ("0::/\n", V2 | {"memory.current": "9000"}, 0),
    ],
)
def test_what_is_free_is_what_every_control_group_leaves(groups, files, free, tmp_path):
    assert _memory.free_bytes(system(tmp_path, 8, groups, **files)) == free


def test_other_systems_have_something_free(tmp_path):
    assert _memory.free_bytes(tmp_path) > 2**28


@pytest.mark.parametrize(("free", "steps"), [(0.1, 1), (3.9, 1), (4, 2), (23, 4)])
def test_the_budget_doubles_up_to_half_of_what_is_free(free, steps, monkeypatch):
    monkeypatch.setattr(_memory, "free_bytes", lambda: free * 2**30)
    assert [*_memory.budgets("auto")] == ["1GiB", "2GiB", "4GiB", "8GiB"][:steps]
    assert [*_memory.budgets("3MiB")] == ["3MiB"]
    assert Recipe("HistogramClassifier", True).most_memory == 2 ** (29 + steps)


def test_what_is_free_does_not_change_a_fit_that_the_least_budget_holds(monkeypatch):
    fitted = []
    for free in (2**30, 2**40):
        monkeypatch.setattr(_memory, "free_bytes", lambda free=free: free)
        model = HistogramClassifier("chi2", random_state=0).fit(X, Y)
        fitted.append(model.feature_coef_)
        assert model.fitted.recipe.memory == "1GiB"
    np.testing.assert_array_equal(*fitted)


@pytest.fixture
def small_steps(monkeypatch):
    """Budgets of which the machines below need the second."""
    for module in (trunk, choose):
        monkeypatch.setattr(
            module, "budgets", lambda memory: iter(["50KiB", "256MiB"] if memory == "auto" else [memory])
        )


LARGE = {
    "sums": HistogramClassifier("chi2", random_state=0),
    "kept features": HistogramClassifier("chi2", loss="hinge", random_state=0),
    "landmarks": HistogramClassifier("exp-chi2", features="landmarks", n_components=64, random_state=0),
    "blocks of columns": HistogramRegressor("linear", blocks={"a": slice(20), "b": slice(20, 40)}, random_state=0),
}


@pytest.mark.parametrize("machine", LARGE)
def test_a_plain_fit_takes_the_memory_that_it_needs(machine, small_steps, tmp_path):
    model = LARGE[machine].fit(sp.csr_matrix(X) if machine == "kept features" else X, Y)
    assert model.fitted.recipe.memory == "256MiB"
    model.save(tmp_path / "my.model")
    assert load(tmp_path / "my.model").fitted.recipe.memory == "256MiB"
    with pytest.raises(MemoryBudgetError):
        LARGE[machine].set_params(memory="50KiB").fit(X, Y)
    LARGE[machine].set_params(memory="auto")


RECIPES = [Recipe("HistogramClassifier", True, seed=place) for place in range(3)]
TRIALS = [Trial(Candidate(f"machine {recipe.seed}", recipe), 0, 9, 0.5, 0.1) for recipe in RECIPES]
RESULT = RaceResult(TRIALS, "accuracy", 9, 1.0)
CHOICES = [Raced(recipe, None, RESULT.led_by(trial)) for recipe, trial in zip(RECIPES, TRIALS, strict=True)]


def first_held(fit):
    """What a fit makes of the first choice that memory holds."""
    attempts = Attempts(CHOICES)
    for raced in attempts:
        with attempts.held(raced):
            return fit(raced)
    return None


def needing(**budget_of):
    """A fit of machines that need such a budget each, or None for more than there is."""

    def fitted(raced):
        recipe = raced.recipe
        tried.append((recipe.seed, recipe.memory, raced.result.winner.name))
        if recipe.memory != budget_of[f"m{recipe.seed}"]:
            raise MemoryBudgetError(f"{recipe.memory} is too small for {recipe.seed}.")
        return recipe

    tried = []
    return fitted, tried


def test_where_memory_does_not_hold_the_winner_the_next_that_fits_is_taken_and_said(small_steps):
    fitted, tried = needing(m0=None, m1="256MiB", m2="50KiB")
    with pytest.warns(
        DataWarning, match="machine 0 won the race, but 256MiB is too small for 0. The model is machine 1"
    ):
        model = first_held(fitted)
    assert model.seed == 1
    budgets = ("50KiB", "256MiB")
    assert tried == [(place, memory, f"machine {place}") for place in (0, 1) for memory in budgets]


def test_what_fits_is_taken_in_silence_and_what_does_not_is_an_error_about_the_winner(small_steps):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = first_held(needing(m0="256MiB")[0])
    assert model.seed == 0
    with pytest.raises(MemoryBudgetError, match="256MiB is too small for 0"):
        first_held(needing(m0=None, m1=None, m2=None)[0])


def test_a_race_names_the_next_machines_in_its_order(monkeypatch):
    learn, refused = trunk.learn, []

    def without_the_winner(plan, *others, **more):
        refused.append(plan.recipe.normalize)
        if plan.recipe.normalize == refused[0]:
            raise MemoryBudgetError("It is too small.")
        return learn(plan, *others, **more)

    monkeypatch.setattr(trunk, "learn", without_the_winner)
    monkeypatch.setattr(trunk, "fit_candidate", None)  # these candidates share their products
    with pytest.warns(DataWarning, match=r"won the race, but It is too small\. The model is chi2, .* rows, the next"):
        model = HistogramClassifier("chi2", normalize=[None, "l1"], bin_weights=None, random_state=0).fit(X, Y)
    assert {refused[0], model.chosen_["normalize"]} == {None, "l1"}
    first = model.race_.trials[0].candidate
    assert first.settings["normalize"] == model.chosen_["normalize"] == model.fitted.recipe.normalize
