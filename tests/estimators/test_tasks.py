"""Targets that are a matrix: several regressions and labels of several tasks, entries of which may be missing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

import chimap
from chimap import HistogramClassifier, HistogramRegressor, MultipleKernelLearner, OptimalMap
from chimap._validation import DataError, MemoryBudgetError

FEATURES = {
    "exact": {"kernel": "exp-chi2", "features": "exact"},
    "landmarks": {"kernel": "exp-chi2", "features": "landmarks", "n_components": 40},
    "fourier": {"kernel": "exp-chi2", "features": "fourier", "n_components": 64},
    "additive": {"kernel": "chi2", "features": "additive"},
    "blocks": {"kernel": "chi2", "blocks": [slice(0, 4), slice(4, 8)], "features": "additive"},
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(8), size=180)
    Y = np.sqrt(X) @ rng.normal(size=(8, 4)) + 0.05 * rng.normal(size=(180, 4))
    gaps = Y.copy()
    gaps[rng.random(Y.shape) < 0.25] = np.nan
    gaps[:, 3] = np.where(np.isnan(gaps).all(axis=1), Y[:, 3], gaps[:, 3])
    labels = np.where(np.isnan(gaps), np.nan, np.median(Y, axis=0) < Y)
    return X, Y, gaps, labels


def model(kind, features, map=None, **more):
    settings = {"precision": "float64", "random_state": 0} | FEATURES[features] | more
    if map is not None:
        settings["features"] = chimap.AutomaticFeatures(settings["features"], map=map)
    return kind(**settings)


def one_by_one(fitted, X, Y, alpha):
    """Ridge on the features of a model, a task at a time, on the rows that the task is seen in."""
    Z = fitted.features_.transform(X)
    outputs = []
    for y in Y.T:
        seen = ~np.isnan(y)
        outputs.append(Ridge(alpha=alpha, solver="cholesky").fit(Z[seen], y[seen]).predict(Z))
    return np.column_stack(outputs)


@pytest.mark.parametrize("features", [name for name in FEATURES if name != "exact"])
@pytest.mark.parametrize("alpha", [0.02, "auto"])
def test_each_task_is_ridge_on_the_rows_that_it_is_seen_in(rows, features, alpha):
    X, _, gaps, labels = rows
    fitted = model(HistogramRegressor, features, alpha=alpha).fit(X, gaps)
    assert np.allclose(fitted.predict(X), one_by_one(fitted, X, gaps, fitted.alpha_), rtol=0, atol=1e-6)
    fitted = model(HistogramClassifier, features, alpha=alpha).fit(X, labels)
    outputs = one_by_one(fitted, X, 2 * labels - 1, fitted.alpha_)
    assert np.allclose(fitted.decision_function(X), outputs, rtol=0, atol=1e-6)
    assert np.array_equal(fitted.predict(X), outputs > 0)


def test_each_task_of_an_exact_machine_is_that_of_its_rows(rows):
    X, _, gaps, _ = rows
    fitted = model(HistogramRegressor, "exact", alpha=0.1).fit(X, gaps)
    for task, y in enumerate(gaps.T):
        seen = ~np.isnan(y)
        gamma = fitted.kernel_.gamma
        alone = model(HistogramRegressor, "exact", alpha=0.1, gamma=gamma).fit(X[seen], y[seen])
        new = X[:20] ** 1.1
        assert np.allclose(fitted.predict(new)[:, task], alone.predict(new), atol=1e-3)  # maps of other samples
        assert np.allclose(fitted.held_out_[seen, task], alone.held_out_[:, 0], atol=1e-3)
        assert np.isnan(fitted.held_out_[~seen, task]).all()


def test_residuals_left_out_are_those_of_fits_without_the_row(rows):
    X, _, gaps, _ = rows
    for selection in ("auto", 5):
        fitted = model(HistogramRegressor, "exact", alpha=0.1, gamma=2.0, selection=selection).fit(X, gaps)
        K = fitted.features_.transform(X)[:, np.argsort(fitted.row_numbers_)]
        row = int(np.flatnonzero(~np.isnan(gaps[:, 1]))[0])
        left_out = np.array([row])
        if selection == 5:
            from chimap.moments import fold_of_rows

            folds = fold_of_rows(0, len(X), 5, fitted._seed)
            left_out = np.flatnonzero(folds == folds[row])
        seen = np.setdiff1d(np.flatnonzero(~np.isnan(gaps[:, 1])), left_out)
        A = np.block(
            [
                [K[np.ix_(seen, seen)] + 0.1 * np.eye(seen.size), np.ones((seen.size, 1))],
                [np.ones((1, seen.size)), np.zeros((1, 1))],
            ]
        )
        weights = np.linalg.solve(A, np.append(gaps[seen, 1], 0.0))
        expected = K[row, seen] @ weights[:-1] + weights[-1]
        assert np.isclose(fitted.held_out_[row, 1], expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("features", list(FEATURES))
def test_complete_targets_are_those_of_single_fits(rows, features):
    X, Y, _, _ = rows
    together = model(HistogramRegressor, features, alpha=0.05, gamma=1.5).fit(X, Y)
    for task, y in enumerate(Y.T):
        alone = model(HistogramRegressor, features, alpha=0.05, gamma=1.5).fit(X, y)
        assert np.allclose(together.predict(X)[:, task], alone.predict(X), rtol=0, atol=1e-8)
    assert together.score(X, Y) == pytest.approx(
        np.mean([model(HistogramRegressor, features, alpha=0.05, gamma=1.5).fit(X, y).score(X, y) for y in Y.T[:]])
    )


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_other_losses_leave_missing_entries_out(rows, loss):
    X, _, _, labels = rows
    fitted = model(HistogramClassifier, "additive", loss=loss, alpha=0.5).fit(X, labels)
    for task, y in enumerate(labels.T):
        seen = ~np.isnan(y)
        if loss == "logistic":
            alone = LogisticRegression(C=2.0, tol=1e-8, max_iter=1000)
            alone.fit(fitted.features_.transform(X[seen]), y[seen])
            expected = alone.decision_function(fitted.features_.transform(X))
        else:
            alone = model(HistogramClassifier, "additive", loss=loss, alpha=0.5).fit(X[seen], y[seen])
            expected = alone.decision_function(X)
        assert np.abs(fitted.decision_function(X)[:, task] - expected).max() < 0.05 * np.abs(expected).max()


def test_probabilities_are_of_label_1_and_agree_with_predictions(rows):
    X, _, _, labels = rows
    fitted = model(HistogramClassifier, "landmarks").fit(X, labels)
    P = fitted.predict_proba(X)
    assert P.shape == labels.shape
    assert fitted.predict(X).dtype == np.int64
    assert np.array_equal(P > 0.5, fitted.predict(X) == 1)
    assert np.allclose(np.exp(fitted.predict_log_proba(X)), P)
    seen = ~np.isnan(labels[:, 0])
    assert roc_auc_score(labels[seen, 0], P[seen, 0]) > 0.9
    assert fitted.classes_.tolist() == [0, 1, 2, 3]
    assert fitted.multilabel_


def test_a_score_is_of_the_entries_that_are_there(rows):
    X, Y, gaps, labels = rows
    fitted = model(HistogramClassifier, "landmarks").fit(X, labels)
    right = (fitted.predict(X) == labels) | np.isnan(labels)
    assert fitted.score(X, labels) == pytest.approx(right.all(axis=1).mean())
    weight = np.arange(180.0)
    assert fitted.score(X, labels, weight) == pytest.approx(np.average(right.all(axis=1), weights=weight))
    complete = (np.median(Y, axis=0) < Y).astype(int)
    from sklearn.metrics import accuracy_score, r2_score

    assert fitted.score(X, complete) == accuracy_score(complete, fitted.predict(X))
    regressor = model(HistogramRegressor, "landmarks").fit(X, gaps)
    assert regressor.score(X, Y) == pytest.approx(r2_score(Y, regressor.predict(X)))


def test_matrices_come_in_many_shapes(rows):
    pd = pytest.importorskip("pandas")
    X, _, _, labels = rows
    expected = model(HistogramClassifier, "landmarks", alpha=1.0).fit(X, labels).decision_function(X)
    frame = pd.DataFrame(labels, columns=list("abcd"))
    for Y in (
        frame,
        frame.astype("Int64"),
        np.ma.MaskedArray(np.nan_to_num(labels), np.isnan(labels)),
        [[None if value != value else int(value) for value in row] for row in labels],
    ):
        got = model(HistogramClassifier, "landmarks", alpha=1.0).fit(X, Y).decision_function(X)
        assert np.allclose(got, expected, atol=1e-9)


def test_rows_without_any_entry_are_left_out(rows):
    X, _, gaps, _ = rows
    more = np.vstack([X, X[:5]])
    fitted = model(HistogramRegressor, "additive", alpha=0.1).fit(more, np.vstack([gaps, np.full((5, 4), np.nan)]))
    assert fitted.n_rows_ == 180
    assert np.allclose(fitted.predict(X), model(HistogramRegressor, "additive", alpha=0.1).fit(X, gaps).predict(X))


@pytest.mark.parametrize("features", ["exact", "landmarks"])
def test_a_saved_model_answers_the_same(rows, features, tmp_path):
    X, _, gaps, labels = rows
    for kind, Y in ((HistogramClassifier, labels), (HistogramRegressor, gaps)):
        fitted = model(kind, features, alpha=0.1).fit(X, Y)
        fitted.save(tmp_path / "a.model", overwrite=True)
        again = chimap.load(tmp_path / "a.model")
        assert np.array_equal(again.predict(X), fitted.predict(X))
        if kind is HistogramClassifier:
            assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_compiled_models_answer_with_tasks(rows):
    X, _, _, labels = rows
    fitted = model(HistogramClassifier, "additive", alpha=0.1).fit(X, labels)
    fast = fitted.compile()
    assert (fast.predict(X) == fitted.predict(X)).mean() > 0.99
    assert fast.predict_proba(X).shape == labels.shape


def test_the_race_scores_the_mean_of_the_tasks(rows):
    X, Y, _, labels = rows
    fitted = HistogramClassifier(random_state=0).fit(X, labels)
    assert fitted.race_.measure == "mean roc_auc"  # of few rows
    assert fitted.score(X, labels) > 0.6
    regressor = HistogramRegressor(random_state=0).fit(X, Y)
    assert regressor.race_.measure == "mean R2"
    assert regressor.score(X, Y) > 0.9


def test_a_given_score_chooses_by_the_mean_of_the_tasks(rows):
    X, _, _, labels = rows
    fitted = model(HistogramClassifier, "exact", scoring="roc_auc").fit(X, labels)
    aucs = [roc_auc_score(labels[s, j], fitted.held_out_[s, j]) for j in range(4) for s in [~np.isnan(labels[:, j])]]
    assert fitted.selection_.measure == "mean roc_auc"
    assert fitted.selection_.means[fitted.selection_.chosen] == pytest.approx(np.mean(aucs))


def test_missing_entries_of_dual_machines_are_those_of_kernel_ridge(rows):
    X, _, gaps, _ = rows
    fitted = model(HistogramRegressor, "exact", alpha=1e-3, gamma=1.0).fit(X, gaps)
    seen = ~np.isnan(gaps[:, 0])
    K = fitted.kernel_(X)
    H = np.eye(seen.sum()) - 1 / seen.sum()
    ridge = KernelRidge(alpha=1e-3, kernel="precomputed")
    own = H @ K[np.ix_(seen, seen)] @ H
    y = gaps[seen, 0]
    predicted = ridge.fit(own, y - y.mean()).predict(own) + y.mean()
    assert np.allclose(predicted, fitted.predict(X)[seen, 0], atol=0.02)  # of the kernel, which its map is close to


def test_bad_matrices_are_refused(rows):
    X, _, gaps, labels = rows
    three = labels.copy()
    three[7, 2] = 2
    with pytest.raises(DataError, match=r"row 7, task 2: 2\. Labels of several tasks are 0, 1 or missing"):
        model(HistogramClassifier, "landmarks").fit(X, three)
    infinite = gaps.copy()
    infinite[3, 1] = np.inf
    with pytest.raises(DataError, match="row 3, task 1: inf"):
        model(HistogramRegressor, "landmarks").fit(X, infinite)
    words = np.array([["a", "b"]] * 180)
    with pytest.raises(DataError, match=r"row 0, task 0: .*'a'"):
        model(HistogramClassifier, "landmarks").fit(X, words)
    with pytest.raises(DataError, match="every label is missing"):
        model(HistogramClassifier, "landmarks").fit(X, np.full((180, 3), np.nan))
    empty = gaps.copy()
    empty[:, 1] = np.nan
    for features in ("landmarks", "exact"):
        with pytest.raises(DataError, match=r"array: task 1 has no label in any of \d+ rows"):
            model(HistogramRegressor, features).fit(X, empty)
    with pytest.raises(DataError, match=r"array: task 1 has no label in any of \d+ rows"):
        HistogramRegressor(random_state=0).fit(X, empty)  # before a race is run
    with pytest.raises(DataError, match="150 labels for 180 rows"):
        model(HistogramClassifier, "landmarks").fit(X, labels[:150])
    with pytest.raises(DataError, match="one label per row"):
        MultipleKernelLearner(OptimalMap()).fit(X, labels)


@pytest.mark.parametrize("features", ["additive", "exact"])
def test_an_integer_weight_is_as_many_rows(rows, features):
    X, _, gaps, labels = rows
    weights = np.random.default_rng(0).integers(0, 4, size=len(X))
    more = [np.repeat(part, weights, axis=0) for part in (X, gaps, labels)]
    for kind, Y, Y_more in ((HistogramRegressor, gaps, more[1]), (HistogramClassifier, labels, more[2])):
        settings = {"kernel": "linear", "features": features, "alpha": 0.1, "precision": "float64"}
        one = kind(**settings).fit(X, Y, sample_weight=weights)
        many = kind(**settings).fit(more[0], Y_more)
        assert np.allclose(one._outputs(X), many._outputs(X), rtol=0, atol=1e-9)


def test_a_threshold_is_of_one_task(rows):
    X, _, _, labels = rows
    with pytest.raises(ValueError, match="threshold is for a single task"):
        model(HistogramClassifier, "additive", threshold="f1").fit(X, labels)


WEIGHTS = {"balanced": "balanced", "of all": {1: 4.0}, "of each": [{0: 1, 1: 3}, {1: 5.0}, None, {0: 0.5, 1: 8.0}]}


@pytest.fixture(scope="module")
def rare(rows):
    """Labels of which task 2 has few ones, with all entries and with gaps."""
    _, Y, gaps, _ = rows
    labels = (np.quantile(Y, [0.5, 0.6, 0.9, 0.7], axis=0).diagonal() < Y).astype(float)
    return labels, np.where(np.isnan(gaps), np.nan, labels)


def each_alone(X, Y, class_weight, sample_weight=None, **settings):
    """(scores, probabilities, weights of classes) of a model a task, of the rows that it is seen in."""
    found = []
    for task, y in enumerate(Y.T):
        seen = ~np.isnan(y)
        own = class_weight[task] if isinstance(class_weight, list) else class_weight
        weights = None if sample_weight is None else sample_weight[seen]
        one = model(HistogramClassifier, class_weight=own, **settings)
        one.fit(X[seen], y[seen].astype(int), sample_weight=weights)
        weighed = np.ones(2) if one.class_weight_ is None else one.class_weight_
        found.append((one.decision_function(X), one.predict_proba(X)[:, 1], weighed))
    scores, probabilities, weights = zip(*found, strict=True)
    return np.column_stack(scores), np.column_stack(probabilities), np.array(weights)


@pytest.mark.covering(2)
@pytest.mark.parametrize("features", ["additive", "exact"])
@pytest.mark.parametrize("weights", list(WEIGHTS))
@pytest.mark.parametrize("has_gaps", [False, True])
def test_weights_of_classes_are_those_of_each_task(rows, rare, features, weights, has_gaps):
    X, class_weight = rows[0], WEIGHTS[weights]
    Y = rare[int(has_gaps)]
    settings = {"features": features, "alpha": 0.1, "gamma": 1.5, "map": chimap.HomogeneousMap("chi2", 3)}
    sample_weight = np.random.default_rng(0).uniform(0.5, 2, len(X)) if weights == "balanced" else None
    together = model(HistogramClassifier, class_weight=class_weight, **settings)
    together.fit(X, Y, sample_weight=sample_weight)
    scores, probabilities, of_classes = each_alone(X, Y, class_weight, sample_weight, **settings)
    assert np.allclose(together.decision_function(X), scores, rtol=0, atol=1e-6)
    assert np.allclose(together.class_weight_, of_classes)
    # rows are left out by the factor that is each task's own, or by one that all share
    assert np.abs(together.predict_proba(X) - probabilities).max() < (1e-6 if features == "exact" else 0.12)
    plain = model(HistogramClassifier, **settings).fit(X, Y)
    assert np.abs(plain.decision_function(X) - scores).max() > 0.1


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_weights_of_classes_of_other_losses(rows, rare, loss):
    X, Y, class_weight = rows[0], rare[1], WEIGHTS["of each"]
    settings = {"features": "additive", "alpha": 0.5, "loss": loss, "map": chimap.HomogeneousMap("chi2", 3)}
    together = model(HistogramClassifier, class_weight=class_weight, **settings).fit(X, Y)
    scores, _, _ = each_alone(X, Y, class_weight, **settings)
    off = np.abs(together.decision_function(X) - scores).max()
    assert off < 0.02 * np.abs(scores).max()
    plain = model(HistogramClassifier, **settings).fit(X, Y)
    assert np.abs(plain.decision_function(X) - scores).max() > 10 * off


@pytest.mark.parametrize("settings", [{"loss": "square"}, {"loss": "hinge"}, {"features": "exact", "gamma": "mean"}])
def test_a_strength_is_chosen_for_weighed_tasks(rows, rare, settings):
    """And a rare label is found more often than without weights."""
    X, Y = rows[0], rare[0]
    fitted = HistogramClassifier("exp-chi2", class_weight="balanced", random_state=0, **settings).fit(X, Y)
    plain = HistogramClassifier("exp-chi2", random_state=0, **settings).fit(X, Y)
    assert fitted.predict(X)[Y[:, 2] == 1, 2].mean() >= plain.predict(X)[Y[:, 2] == 1, 2].mean()
    sets = fitted.predict_set(X, alpha=0.2)  # which count rows as they come
    held = np.take_along_axis(sets, Y.astype(int)[:, :, None], axis=2)[:, :, 0]
    assert (held.mean(axis=0) > 0.75).all()


def test_the_race_takes_weights_of_tasks(rows, rare):
    fitted = HistogramClassifier(class_weight="balanced", random_state=0).fit(rows[0], rare[1])
    assert fitted.class_weight_.shape == (4, 2)
    assert fitted.class_weight_[2, 1] > 2 * fitted.class_weight_[2, 0]


def test_a_task_of_one_class_is_not_balanced(rows, rare):
    Y = rare[0].copy()
    Y[:, 1] = 0.0
    fitted = model(HistogramClassifier, "additive", class_weight="balanced", alpha=1.0).fit(rows[0], Y)
    assert fitted.class_weight_[1].tolist() == [1, 1]
    assert (fitted.predict(rows[0])[:, 1] == 0).all()


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ([{0: 1}, {1: 2}], "2 dictionaries, but y has 4 tasks"),
        ([None, None, {2: 1.0}, None], "task 2: class_weight names 2, which is none of the classes 0, 1"),
        ([None, {1: -1.0}, None, None], "task 1: class_weight: 1 has the weight -1.0"),
        ("even", "class_weight must be None, 'balanced'"),
    ],
)
def test_bad_weights_of_tasks(rows, class_weight, message):
    with pytest.raises(ValueError, match=message):
        model(HistogramClassifier, "additive", class_weight=class_weight).fit(rows[0], rows[3])


def test_where_weights_of_tasks_are_not_taken(rows, rare):
    X, Y = rows[0], rare[0]
    with pytest.raises(ValueError, match="For several tasks"):
        model(HistogramClassifier, "additive", class_weight=[{0: 1}, {1: 2}]).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="class_weight with several tasks needs separate sums for each task"):
        model(HistogramClassifier, "additive", class_weight={1: 2.0}).partial_fit(X, Y)


@pytest.mark.parametrize("features", ["additive", "landmarks"])
@pytest.mark.parametrize("alpha", [0.05, "auto"])
def test_batches_of_tasks_are_ridge_on_all_rows(rows, features, alpha):
    X, Y, _, _ = rows
    labels = (np.median(Y, axis=0) < Y).astype(int)
    for kind, targets, plain in (
        (HistogramRegressor, Y, Y),
        (HistogramClassifier, pd.DataFrame(labels), 2.0 * labels - 1),
    ):
        fitted = model(kind, features, alpha=alpha)
        for part in (slice(0, 80), slice(80, 130), slice(130, 180)):
            fitted.partial_fit(X[part], targets[part])
        outputs = fitted._outputs(X)
        assert np.allclose(outputs, one_by_one(fitted, X, plain, fitted.alpha_), rtol=0, atol=1e-6)
    assert fitted.predict(X).shape == fitted.predict_proba(X).shape == (180, 4)
    assert np.array_equal(fitted.predict(X), fitted._outputs(X) > 0)


@pytest.mark.parametrize("features", ["additive", "landmarks"])
@pytest.mark.parametrize("alpha", [0.05, "auto"])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_leave_missing_entries_out(rows, features, alpha, weighted):
    """Whether the first batch misses some, or they come later."""
    X, Y, gaps, labels = rows
    complete = (np.median(Y, axis=0) < Y).astype(float)
    late, late_labels = np.vstack([Y[:80], gaps[80:]]), np.vstack([complete[:80], labels[80:]])
    weights = np.random.default_rng(1).integers(1, 4, size=180) if weighted else np.ones(180, int)
    for kind, targets, plain in (
        (HistogramRegressor, gaps, gaps),
        (HistogramRegressor, late, late),
        (HistogramClassifier, labels, 2 * labels - 1),
        (HistogramClassifier, late_labels, 2 * late_labels - 1),
    ):
        fitted = model(kind, features, alpha=alpha)
        for part in (slice(0, 80), slice(80, 130), slice(130, 180)):
            fitted.partial_fit(X[part], targets[part], sample_weight=weights[part] if weighted else None)
        again, plain_again = np.repeat(X, weights, axis=0), np.repeat(plain, weights, axis=0)
        outputs = fitted._outputs(again)
        expected = one_by_one(fitted, again, plain_again, fitted.alpha_)
        assert np.allclose(outputs, expected, rtol=0, atol=1e-6)
    assert np.array_equal(fitted.predict_proba(X) > 0.5, fitted.predict(X) == 1)


@pytest.mark.parametrize("alpha", [0.05, "auto"])
def test_batches_with_missing_entries_are_the_fit(rows, alpha):
    X, _, gaps, _ = rows
    settings = {"alpha": alpha, "map": chimap.HomogeneousMap("chi2", 3)}
    whole = model(HistogramRegressor, "additive", **settings).fit(X, gaps)
    batches = model(HistogramRegressor, "additive", **settings)
    batches.partial_fit(X[:50], gaps[:50]).partial_fit(X[50:], gaps[50:])
    assert np.array_equal(whole.features_.transform(X), batches.features_.transform(X))
    assert np.allclose(whole.predict(X), batches.predict(X), rtol=0, atol=1e-7)
    assert batches.alpha_ == pytest.approx(whole.alpha_)


def test_rows_without_any_entry_are_left_out_of_batches(rows):
    X, _, gaps, _ = rows
    none = np.isnan(gaps).any(axis=1)
    some = np.where(none[:, None], np.nan, gaps)
    with_them = model(HistogramRegressor, "additive", alpha=0.05).partial_fit(X, some)
    without = model(HistogramRegressor, "additive", alpha=0.05).partial_fit(X[~none], gaps[~none])
    assert np.allclose(with_them.predict(X), without.predict(X), rtol=0, atol=1e-9)
    with pytest.raises(DataError, match="every label is missing"):
        with_them.partial_fit(X[:3], np.full((3, 4), np.nan))
    assert with_them._batches.count == np.count_nonzero(~none)


def test_what_batches_with_missing_entries_do_not_take(rows):
    X, Y, gaps, _ = rows
    machine = model(HistogramRegressor, "additive", selection="gcv").partial_fit(X, Y)
    with pytest.raises(ValueError, match="selection='gcv' needs targets without missing entries"):
        machine.partial_fit(X, gaps)
    tight = model(HistogramRegressor, "fourier", n_components=600, alpha=1.0, memory="10MiB")
    tight.partial_fit(X, Y)
    with pytest.raises(MemoryBudgetError, match="600 features"):
        tight.partial_fit(X, gaps)


def test_bad_batches_of_tasks_are_refused(rows):
    X, Y, _, labels = rows
    machine = model(HistogramRegressor, "additive").partial_fit(X[:90], Y[:90])
    with pytest.raises(DataError, match=r"y has 3 task\(s\), but the batches before have 4"):
        machine.partial_fit(X[90:], Y[90:, :3])
    with pytest.raises(DataError, match=r"y has 1 task\(s\), but the batches before have 4"):
        machine.partial_fit(X[90:], Y[90:, 0])
    single = model(HistogramRegressor, "additive").partial_fit(X[:90], Y[:90, 0])
    with pytest.raises(DataError, match="y has 4 tasks, but the batches before have one label for each row"):
        single.partial_fit(X[90:], Y[90:])
    with pytest.raises(ValueError, match="classes are for a single task"):
        model(HistogramClassifier, "additive").partial_fit(X, np.nan_to_num(labels), classes=[0, 1])


def test_rows_of_tasks_are_explained(rows):
    X, Y, _, labels = rows
    machine = HistogramClassifier("chi2", features="additive", alpha=1.0).fit(X, labels)
    explanation = machine.explain(X[:3])
    assert explanation.contributions.shape == (3, 8, 4)
    assert np.allclose(explanation.scores, machine.decision_function(X[:3]), atol=1e-5)
    ranked = machine.importance(X, labels, kind="permutation")
    assert ranked.values[0] > 0
    assert HistogramRegressor("chi2", alpha=1.0).fit(X, Y).explain(X[:3]).contributions.shape == (3, 8, 4)


def test_features_that_do_not_fit_the_budget_are_made_again(rows):
    X, _, gaps, _ = rows
    big = np.tile(X, (30, 1)) + 1e-4 * np.random.default_rng(0).random((30 * len(X), 8))
    targets = np.tile(gaps, (30, 1))
    settings = {"features": "fourier", "n_components": 256, "alpha": 1.0}
    kept = HistogramRegressor("exp-chi2", random_state=0, **settings).fit(big, targets)
    anew = HistogramRegressor("exp-chi2", random_state=0, memory="9MiB", **settings).fit(big, targets)
    assert np.allclose(kept.predict(X), anew.predict(X), atol=1e-4)
