"""bin_weights: given, learned, saved, exported, and refused where a kernel has none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits

from chimap import HistogramClassifier, HistogramRegressor, load
from chimap._validation import DataError
from chimap.export import export_model
from chimap.export.parts import parts_of
from chimap.export.tables import bin_tables
from chimap.features.weighted import BinWeights
from chimap.kernels import Exponential, chi2
from chimap.models.race_result import Candidate, Trial
from chimap.race.bins import learn_bins
from chimap.race.trials import Outcome
from chimap.recipe import Recipe
from chimap.selection.jackknife import standard_error

ASKED = Recipe("HistogramClassifier", True)

DIGITS, LABELS = load_digits(return_X_y=True)
X, y = DIGITS[:300], LABELS[:300]
WEIGHTS = np.linspace(0.2, 1.8, 64)
NAMED = {"kernel": "exp-chi2", "alpha": 0.1, "random_state": 0}


def with_noise(rows, seed=0):
    """As many bins of noise as there are: each is a bin of the rows in another order."""
    rng = np.random.default_rng(seed)
    return np.hstack([rows, np.column_stack([rng.permutation(column) for column in rows.T])])


@pytest.mark.parametrize("features", ["exact", "landmarks", "fourier"])
@pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix])
def test_weights_that_are_given_are_scaled_columns(features, as_rows):
    given = {**NAMED, "features": features, "n_components": 64}
    scaled = BinWeights(WEIGHTS).rows(X, Exponential(chi2))
    expected = HistogramClassifier(**given).fit(as_rows(scaled), y)
    model = HistogramClassifier(**given, bin_weights=WEIGHTS).fit(as_rows(X), y)
    np.testing.assert_allclose(
        model.decision_function(as_rows(X)), expected.decision_function(as_rows(scaled)), atol=1e-3
    )
    np.testing.assert_array_equal(model.bin_weights_, WEIGHTS)


def test_weights_come_after_normalising():
    model = HistogramClassifier(**NAMED, normalize="l1", bin_weights=WEIGHTS).fit(X, y)
    np.testing.assert_allclose(model.decision_function(3 * X), model.decision_function(X), atol=1e-3)


def test_a_bin_of_weight_0_does_not_matter():
    weights = np.where(np.arange(64) < 20, 0.0, 1.0)
    model = HistogramClassifier(**NAMED, bin_weights=weights).fit(X, y)
    other = X.copy()
    other[:, :20] = 5
    np.testing.assert_allclose(model.decision_function(other), model.decision_function(X), atol=1e-5)


def test_blocks_have_the_degree_of_their_own_kernels():
    blocks = {"a": slice(0, 32), "b": slice(32, 64)}
    kernels, factors = ["chi2", "linear"], np.r_[WEIGHTS[:32], np.sqrt(WEIGHTS[32:])]
    given = {"kernel": kernels, "blocks": blocks, "alpha": 0.1, "random_state": 0}
    expected = HistogramClassifier(**given).fit(X * factors, y)
    model = HistogramClassifier(**given, bin_weights=WEIGHTS).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X * factors), atol=1e-3)


def test_noise_loses_its_weight_and_the_score_rises():
    rows = with_noise(DIGITS[:900])
    train, test = slice(0, 600), slice(600, 900)
    given = {"kernel": "exp-chi2", "random_state": 0}
    plain = HistogramClassifier(**given).fit(rows[train], LABELS[train])
    learned = HistogramClassifier(**given, bin_weights="learn").fit(rows[train], LABELS[train])
    weights = learned.bin_weights_
    assert weights.mean() == pytest.approx(1)
    assert weights[:64].mean() > 3 * weights[64:].mean()
    assert learned.score(rows[test], LABELS[test]) > plain.score(rows[test], LABELS[test])
    assert [t.candidate.name for t in learned.race_.trials] == ["exp-chi2, learned bins", "exp-chi2"]


def test_the_race_learns_them_for_its_leader():
    rows = with_noise(DIGITS[:600])
    model = HistogramClassifier(random_state=0).fit(rows, LABELS[:600])
    assert any("learned bins" in row["name"] for row in model.race_.rows())
    assert model.bin_weights_ is not None
    none = HistogramClassifier(random_state=0, bin_weights=None).fit(rows[:100], LABELS[:100])
    assert none.bin_weights_ is None
    assert not any("learned bins" in row["name"] for row in none.race_.rows())


def test_a_block_has_one_weight():
    blocks = {"signal": slice(0, 2), "noise": slice(2, 30)}
    rows, target = signal_and_noise(1000)
    # An additive kernel: "mean" gives every block of an exponential one its width, whatever the weight of the block.
    model = HistogramRegressor("chi2", blocks=blocks, bin_weights="learn", random_state=1).fit(rows, target)
    first, second = model.bin_weights_[:2], model.bin_weights_[2:]
    assert first.min() == first.max() > second.min() == second.max()


def signal_and_noise(n_rows=400):
    """Rows of 30 bins, and targets that depend on the first two."""
    rows = np.random.default_rng(0).gamma(1.0, size=(n_rows, 30))
    return rows, np.sin(2 * rows[:, 0]) + rows[:, 1]


def test_a_regression_learns_them_too():
    rows, target = signal_and_noise()
    model = HistogramRegressor("exp-chi2", bin_weights="learn", random_state=0).fit(rows, target)
    assert model.bin_weights_[:2].min() > 3 * model.bin_weights_[2:].max()


def test_the_same_seed_gives_the_same_weights():
    rows = with_noise(X)
    first, second = (
        HistogramClassifier("exp-chi2", bin_weights="learn", random_state=1).fit(rows, y) for _ in range(2)
    )
    np.testing.assert_array_equal(first.bin_weights_, second.bin_weights_)


def outcomes(*scores, spread=0.01):
    """A weighing whose rounds have these scores, its next weights twice those before."""
    told = iter(scores)

    def weigh(weights):
        return Outcome(next(told), {}, (spread, -spread)), lambda: 2 * weights

    return weigh


FIRST = Trial(Candidate("one", ASKED), 2, 100, 0.5, 0.0)


def test_weights_are_kept_only_if_the_score_rises():
    equal = np.ones((2, 3))
    assert learn_bins(outcomes(0.5, 0.5, 0.4, 0.3), equal, None, FIRST).weights is None
    kept = learn_bins(outcomes(0.5, 0.6, 0.7, 0.4), equal, None, FIRST)
    np.testing.assert_array_equal(kept.weights, np.ones(3))
    assert (kept.trial.score, kept.trial.round) == (0.7, 2)


@pytest.mark.parametrize(
    ("screened", "errors", "is_kept"),
    [(None, 0.9, False), (None, 1.8, False), (None, 2.2, True), (2, 0.9, False), (2, 1.8, True)],
)
def test_a_rise_within_twice_its_error_is_none_or_within_one_of_a_screening(screened, errors, is_kept):
    rise = errors * standard_error(np.array([0.1, 0.0]))
    told = iter([(0.5, (0.1, 0.0)), (0.5 + rise, (0.0, 0.0)), *[(0.5, (0.0, 0.0))] * 3])

    def weigh(weights):
        score, deviations = next(told)
        return Outcome(score, {}, deviations), lambda: weights

    other = None if screened is None else np.full((1, 3), screened)
    assert (learn_bins(weigh, np.ones((1, 3)), other, FIRST).weights is not None) is is_kept


def test_a_saved_model_keeps_its_weights(tmp_path):
    model = HistogramClassifier("exp-chi2", bin_weights="learn", random_state=0).fit(with_noise(X), y)
    model.save(tmp_path / "a.model")
    loaded = load(tmp_path / "a.model")
    np.testing.assert_array_equal(loaded.bin_weights_, model.bin_weights_)
    np.testing.assert_array_equal(loaded.predict(with_noise(X)), model.predict(with_noise(X)))
    assert clone(loaded).get_params()["bin_weights"] == "learn"


def test_a_compiled_model_has_them():
    model = HistogramClassifier("chi2", alpha=1.0, bin_weights=WEIGHTS).fit(X, y)
    np.testing.assert_allclose(model.compile().decision_function(X), model.decision_function(X), atol=1e-2)


def test_partial_fit_has_them():
    given = {"kernel": "chi2", "alpha": 1.0, "bin_weights": WEIGHTS}
    whole = HistogramClassifier(**given, features="additive").fit(X, y)
    batches = HistogramClassifier(**given).partial_fit(X, y, classes=np.arange(10))
    np.testing.assert_allclose(batches.decision_function(X), whole.decision_function(X), atol=1e-2)


# --- bad input


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.ones(3), "one weight for each of the 64 bins"),
        (-WEIGHTS, "bin_weights, bin 0: -0.2"),
        (np.where(WEIGHTS > 1, np.nan, 1), "weights are finite"),
        (np.zeros(64), "all weights are zero"),
        (["a"] * 64, "one per bin"),
    ],
)
def test_weights_that_will_not_do_are_refused(weights, said):
    with pytest.raises(DataError, match=said):
        HistogramClassifier("chi2", bin_weights=weights).fit(X, y)


def test_an_unknown_word_is_refused():
    with pytest.raises(ValueError, match="bin_weights must be"):
        HistogramClassifier("chi2", bin_weights="learned").fit(X, y)


def test_a_kernel_that_is_not_homogeneous_has_no_weights():
    for weights in (WEIGHTS, "learn"):
        with pytest.raises(DataError, match="not homogeneous"):
            HistogramClassifier("skewed-chi2", bin_weights=weights).fit(X, y)


@pytest.mark.parametrize("normalize", [None, "l1"])
def test_tables_and_onnx_have_them(tmp_path, normalize):
    onnxruntime = pytest.importorskip("onnxruntime")
    weights = np.where(np.arange(64) < 5, 0.0, WEIGHTS)
    model = HistogramClassifier("chi2", alpha=1.0, bin_weights=weights, normalize=normalize).fit(X, y)
    expected = model.decision_function(X)
    export_model(model, tmp_path / "a.onnx")
    scores = onnxruntime.InferenceSession(tmp_path / "a.onnx").run(["scores"], {"X": X.astype(np.float32)})
    np.testing.assert_allclose(scores[0], expected, atol=1e-3)
    tables = bin_tables(parts_of(model), 0.01)
    np.testing.assert_allclose(tables.scores(X), expected, atol=tables.bound + 1e-3)


def test_features_without_gradients_end_a_fit_only_where_weights_are_asked_for():
    rows = np.random.default_rng(0).dirichlet(np.ones(12), 300)
    given = {"features": "landmarks", "n_components": 64, "random_state": 0}
    target = np.sqrt(rows[:, 0]) - rows[:, 1]
    model = HistogramRegressor(**given).fit(rows, target)
    assert model.kernel_.name == "chi2"
    assert model.bin_weights_ is None
    with pytest.raises(DataError, match="Give weights, or name an exponential kernel"):
        HistogramRegressor(**given, bin_weights="learn").fit(rows, target)
