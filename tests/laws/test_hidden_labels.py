"""What normalisations and weights of bins learn from labels knows nothing of the rows by which a model is scored."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import FourierKernelLearner, HistogramClassifier
from chimap.data import ArraySource
from chimap.data.views import ChosenRows
from chimap.fit.rivals import watched_rows
from chimap.machines.method import Method
from chimap.machines.rows import PreparedRows
from chimap.normalizations import CATALOGUE
from chimap.race import bins
from chimap.recipe import Recipe
from chimap.selection.contest import Contest

BY_LABELS = sorted(name for name, each in CATALOGUE.items() if each.needs_labels)
RNG = np.random.default_rng(0)
N = 400
# Texts of some sixty words of 2000, so rare that weights by labels could tell labels of noise of the rows they know.
X = sp.csr_matrix(RNG.random((N, 2000)) < 0.03).astype(np.float32)
NOISE = RNG.permutation(np.arange(N) % 2)
GROUPS = np.arange(N) // 4

PATHS = {
    "leave one out": {"kernel": "gaussian"},
    "given strength": {"kernel": "gaussian", "alpha": 0.1},
    "sums": {"kernel": "linear", "features": "landmarks", "n_components": 50},
    "sums, given strength": {"kernel": "linear", "features": "landmarks", "n_components": 50, "alpha": 1.0},
    "wide ridge": {"kernel": "linear", "features": "additive", "n_bins": 9000},
    "liblinear": {"kernel": "linear", "loss": "hinge"},
    "sparse margins": {"kernel": "linear", "loss": "squared_hinge"},
    "passes": {"kernel": "linear", "features": "landmarks", "n_components": 50, "loss": "logistic", "alpha": 1.0},
}


@pytest.fixture
def told(monkeypatch):
    """Return a list of (hidden rows, places, outputs) of the rows that each fit calibrates by."""
    calls = []
    plain = PreparedRows.held_out_rows

    def noted(self, held_out):
        if held_out is not None:
            calls.append((self.hidden, held_out.rows, held_out.outputs))
        return plain(self, held_out)

    monkeypatch.setattr(PreparedRows, "held_out_rows", noted)
    return calls


def is_chance(outputs, y, n_errors=3.5):
    """Whether outputs rank two classes of noise by chance: within so many errors of a mean rank."""
    ranks = np.argsort(np.argsort(outputs[:, 0]))
    auc = (ranks[y == 1].mean() - ranks[y == 0].mean()) / y.size + 0.5
    return abs(auc - 0.5) < n_errors * np.sqrt((y.size + 1) / (12 * (y == 1).sum() * (y == 0).sum()))


@pytest.mark.parametrize("name", BY_LABELS)
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
@pytest.mark.parametrize("path", PATHS)
def test_labels_of_noise_stay_noise(name, path, groups, told):
    settings = dict(PATHS[path])
    rows = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(N, settings.pop("n_bins", X.shape[1])))
    model = HistogramClassifier(normalize=name, random_state=0, **settings).fit(rows, NOISE, groups=groups)
    hidden, places, outputs = told[-1]
    assert hidden[places].all()
    assert 0.6 * N / 5 < places.size <= hidden.sum() < N / 4
    assert groups is None or not np.intersect1d(groups[hidden], groups[~hidden]).size
    assert is_chance(outputs, NOISE[places])
    if model.fitted.learned.selection is not None and model.fitted.learned.selection.measure == "accuracy":
        assert np.max(model.fitted.learned.selection.scores) < 0.5 + 3.5 * 0.5 / np.sqrt(hidden.sum())
    other = NOISE.copy()
    other[hidden] = 1 - other[hidden]
    again = HistogramClassifier(normalize=name, random_state=0, **settings).fit(rows, other, groups=groups)
    np.testing.assert_array_equal(again.normalization_.idf, model.normalization_.idf)


@pytest.mark.parametrize("name", BY_LABELS)
@pytest.mark.parametrize("n_rows", [N, 2400])
def test_a_race_of_labels_of_noise_is_decided_by_chance(name, n_rows):
    rows = sp.csr_matrix(np.random.default_rng(1).random((n_rows, 1500)) < 0.03).astype(np.float32)
    y = np.random.default_rng(2).permutation(np.arange(n_rows) % 2)
    model = HistogramClassifier("linear", normalize=[name, "tf-idf"], bin_weights=None, random_state=0).fit(rows, y)
    (trial,) = [trial for trial in model.race_.trials if trial.candidate.settings["normalize"] == name]
    assert not trial.error
    n_scored = min(model.race_.n_held_out, n_rows)
    assert abs(trial.score - 0.5) < 3.5 * 0.5 / np.sqrt(n_scored)


@pytest.mark.parametrize("name", BY_LABELS)
def test_a_choice_by_rows_whose_labels_are_known_is_refused(name):
    for selection in (5, "gcv"):
        model = HistogramClassifier("linear", features="additive", normalize=name, selection=selection)
        with pytest.raises(
            ValueError, match=r"selection=.* scores others. Use selection='auto', or normalize='tf-idf'"
        ):
            model.fit(X, NOISE)


@pytest.mark.parametrize("name", BY_LABELS)
def test_a_race_of_named_normalisations_leaves_out_what_folds_may_not_score(name):
    named = {"normalize": ["tf-idf", name], "selection": 5, "random_state": 0}
    trials = HistogramClassifier(**named).fit(X, NOISE).race_.trials
    assert {trial.candidate.settings["normalize"] for trial in trials} == {"tf-idf"}


@pytest.mark.parametrize("name", BY_LABELS)
def test_blocks_go_by_the_rows_that_they_may_score(name, told):
    rng = np.random.default_rng(3)
    rows = sp.csr_matrix(rng.random((1500, 300)) < 0.1).astype(np.float32)
    y = rng.permutation(np.arange(1500) % 2)
    model = HistogramClassifier(
        "gaussian", features="exact", normalize=name, memory="9MiB", gamma="mean", random_state=0
    ).fit(rows, y)
    hidden, places, outputs = told[-1]
    assert model.block_rows_.size > 1
    assert hidden[places].all()
    assert np.isnan(model.held_out_[~hidden]).all()
    assert is_chance(outputs, y[places])


@pytest.mark.parametrize("name", BY_LABELS)
def test_rows_that_are_watched_hide_their_labels_too(name):
    method = Method.of(Recipe("HistogramClassifier", True, kernel="gaussian", features="exact", normalize=name))
    source, watched = ArraySource(X, NOISE), np.arange(0, N, 9)
    plain = method.hidden(source, None, None)
    hidden = method.hidden(source, None, Contest(watched, None, [], (), None))
    assert hidden[watched].all()
    others = np.setdiff1d(np.arange(N), watched)
    np.testing.assert_array_equal(hidden[others], plain[others])
    assert not plain[watched].all()


# --- weights of bins, kept although they gain nothing

WEIGHED = {
    "leave one out": {"kernel": "gaussian"},
    "given strength": {"kernel": "gaussian", "alpha": 0.1},
    "sums": {"kernel": "exp-chi2", "features": "landmarks", "n_components": 40},
    "sums, given strength": {"kernel": "exp-chi2", "features": "landmarks", "n_components": 40, "alpha": 1.0},
    "passes": {"kernel": "exp-chi2", "features": "landmarks", "n_components": 40, "loss": "logistic", "alpha": 1.0},
}


@pytest.fixture
def keeps_weights(monkeypatch):
    monkeypatch.setattr(bins, "_is_better", lambda *_: True)


def of_size(n):
    """Return n rows of 600 bins, labels of noise for them, and groups of four."""
    rng = np.random.default_rng(1)
    rows = sp.csr_matrix(rng.random((n, 600)) < 0.03).astype(np.float32)
    return rows, rng.permutation(np.arange(n) % 2), np.arange(n) // 4


@pytest.mark.usefixtures("keeps_weights")
@pytest.mark.parametrize(
    ("path", "n", "is_grouped"), [*product(WEIGHED, [N], [False, True]), ("leave one out", 2100, False)]
)
def test_weights_of_bins_that_learn_noise_leave_it_noise(path, n, is_grouped, told):
    rows, y, groups = of_size(n)
    groups = groups if is_grouped else None
    model = HistogramClassifier(bin_weights="learn", random_state=0, **WEIGHED[path]).fit(rows, y, groups=groups)
    hidden, places, outputs = told[-1]
    assert np.ptp(model.bin_weights_) > 0
    assert hidden[places].all()
    assert n / 6 < places.size < n / 2
    known = np.flatnonzero(~hidden)
    assert np.isin(model.fitted.recipe.weighed_rows, known).all()
    assert not is_grouped or not np.intersect1d(groups[hidden], groups[known]).size
    assert is_chance(outputs, y[places])
    if model.selection_ is not None:
        assert np.max(model.selection_.scores) < 0.5 + 3.5 * 0.5 / np.sqrt(hidden.sum())


def test_watched_rows_are_among_those_hidden_from_weights_of_bins():
    hidden, groups = np.random.default_rng(0).random(9000) < 0.4, np.arange(9000) // 3
    assert hidden[watched_rows(9000, None, 3, hidden)].all()
    hidden = hidden[groups]
    watched = watched_rows(9000, groups, 3, hidden)
    assert hidden[watched].all()
    assert np.isin(groups, groups[watched]).sum() == watched.size >= 900


@pytest.mark.parametrize("settings", [{"selection": 5}, {"selection": "gcv"}])
@pytest.mark.parametrize("kernel", ["gaussian", "auto"])
def test_weights_of_bins_are_not_learned_where_all_rows_are_scored(settings, kernel):
    with pytest.raises(ValueError, match=r"bin_weights='learn'.* Use selection='auto', or bin_weights=None"):
        HistogramClassifier(kernel, bin_weights="learn", **settings).fit(X, NOISE)
    with pytest.raises(ValueError, match="partial_fit may score any of them"):
        HistogramClassifier(kernel, bin_weights="learn").partial_fit(X, NOISE, classes=[0, 1])
    race = HistogramClassifier(normalize=["l1", None], random_state=0, selection=5).fit(X[:200], NOISE[:200]).race_
    assert not any("bins" in trial.candidate.name for trial in race.trials)


def test_rows_that_are_chosen_keep_what_is_hidden_of_them():
    source = ArraySource(X, NOISE)
    source.hidden = np.arange(N) % 3 == 0
    some = ChosenRows(source, np.arange(0, N, 2), NOISE[::2])
    np.testing.assert_array_equal(some.hidden, source.hidden[::2])
    recipe = Recipe("HistogramClassifier", True, kernel="gaussian", features="exact", weighed_rows=np.arange(3))
    np.testing.assert_array_equal(Method.of(recipe).hidden(some, None, None), some.hidden)


@pytest.mark.parametrize("objective", ["held-out", "gradients"])
def test_widths_that_validation_rows_end_learn_no_noise(objective, told):
    rows, y, _ = of_size(N)
    settings = {"widths": "bin", "n_components": 128, "random_state": 0, "max_iter": 10}
    FourierKernelLearner(objective=objective, **settings).fit(rows, y)
    _, places, outputs = told[-1]
    assert is_chance(outputs, y[places])


def test_widths_that_nothing_ends_learn_noise(told, monkeypatch):
    """What ends the search is what keeps scores honest, so no fit of 40 rows goes without."""
    settings = {"widths": "bin", "n_components": 128, "random_state": 0, "max_iter": 10, "tol": 1e-9}
    rows, y, _ = of_size(N)
    with pytest.raises(ValueError, match="validation_fraction must be above 0"):
        FourierKernelLearner(validation_fraction=0, **settings).fit(rows, y)
    monkeypatch.setattr("chimap.kernel_learning.widths._FEWEST_TO_VALIDATE", N + 1)
    FourierKernelLearner(**settings).fit(rows, y)
    _, places, outputs = told[-1]
    assert not is_chance(outputs, y[places])
