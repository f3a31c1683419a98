"""Rows that are like none of the classes, against sets and distances that are computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from chimap import HistogramClassifier, HistogramRegressor, LookupClassifier, OnlineIntersectionClassifier, load, report
from chimap._errors import InputError
from chimap.data import ArraySource
from chimap.features.nearest import FAR
from chimap.selection.conformal import Conformal

from ..histograms import classes

SHARES = (0.02, 0.05, 0.1, 0.3)
X, Y = classes(160, 8)
GROUPS = np.arange(160) // 4
KEEPERS = {
    "exact": {"kernel": "exp-chi2", "features": "exact"},
    "blocks of rows": {"kernel": "exp-chi2", "features": "exact", "memory": "5MiB"},
    "blocks of columns": {"kernel": "exp-chi2", "features": "exact", "blocks": [slice(0, 4), slice(4, 8)]},
    "no map": {"kernel": "pq", "features": "exact"},
    "gaussian": {"kernel": "gaussian", "features": "exact"},
    "landmarks": {"kernel": "exp-chi2", "features": "landmarks", "n_components": 100},
    "passes": {"kernel": "exp-chi2", "features": "landmarks", "n_components": 100, "loss": "logistic"},
    "nystroem": {"kernel": "chi2", "features": "landmarks", "n_components": 100},
}
OTHERS = {
    "additive": {"kernel": "chi2"},
    "fourier": {"kernel": "exp-chi2", "features": "fourier", "n_components": 256},
    "hinge": {"kernel": "linear", "loss": "hinge"},
}


def fitted(name, X=X, y=Y, **fit):
    settings = (KEEPERS | OTHERS)[name]
    return HistogramClassifier(random_state=0, **settings).fit(X, y, **fit)


@pytest.fixture(scope="module")
def digits():
    """Rows of eight digits to learn from, others of them, and rows of the two digits that are left out."""
    rows, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(np.flatnonzero(y < 8))
    return rows[order[:700]], y[order[:700]], rows[order[700:]], rows[y >= 8]


@pytest.mark.parametrize("name", KEEPERS | OTHERS)
def test_unseen_digits_are_told_from_seen_ones(digits, name):
    rows, y, seen, unseen = digits
    model = fitted(name, rows / 16, y) if name != "blocks of columns" else fitted("exact", rows / 16, y)
    assert model.fitted.answers.novelty.has_distances == (name in KEEPERS)
    shares = np.concatenate([model.unassigned_at(part / 16) for part in (seen, unseen)])
    assert roc_auc_score(np.repeat([1, 0], [len(seen), len(unseen)]), shares) > 0.9
    found = model.predict(seen / 16, unassigned=0.05) == "unassigned"
    assert found.mean() < 0.15  # up to twice .05, and chance
    np.testing.assert_array_equal(found, shares[: len(seen)] <= 0.05)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", ["exact", "additive", "landmarks"])
def test_a_row_without_a_set_is_unassigned_and_others_keep_their_label(digits, name, share):
    rows, y, _, unseen = digits
    model = fitted(name, rows / 16, y)
    labels = model.predict(unseen / 16, unassigned=share)
    is_unassigned = labels == "unassigned"
    assert is_unassigned[~model.predict_set(unseen / 16, alpha=share).any(axis=1)].all()
    assert (labels[~is_unassigned] == model.predict(unseen / 16)[~is_unassigned]).all()
    # the others are more novel than all but this share of the left-out rows
    novelty, prepared = model.fitted.answers.novelty, model.fitted.preparation(unseen / 16, 0, "X")
    far = novelty.shares(model.fitted.signs(model.fitted.outputs_of_all(prepared), prepared)) <= share
    has_set = model.predict_set(unseen / 16, alpha=share).any(axis=1)
    np.testing.assert_array_equal(is_unassigned, far | ~has_set)


def kernel_distances(model, rows, others):
    """Distances between all rows and others, by the formula of the kernel."""
    kernel = model.kernel_
    squares = kernel.diagonal(rows)[:, None] + kernel.diagonal(others) - 2 * np.asarray(kernel(rows, others))
    return np.sqrt(np.maximum(squares, 0))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
@pytest.mark.parametrize("name", ["gaussian", "no map"])
def test_distances_are_those_of_the_kernel_and_leave_groups_out(name, groups, kind):
    model = fitted(name, kind(X), Y, groups=groups)
    new = classes(30, 8, seed=5)[0]
    signs = model.fitted.signs(model.decision_function(new), model.fitted.preparation(kind(new), 0, "X"))
    np.testing.assert_allclose(signs[:, 1], kernel_distances(model, new, X).min(axis=1), atol=1e-3)
    own = np.arange(160) if groups is None else groups
    among = kernel_distances(model, X, X)
    among[own[:, None] == own] = np.inf
    left_out = np.sort(model.fitted.answers.novelty.signs[:, 1])
    np.testing.assert_allclose(left_out, np.sort(among.min(axis=1)), atol=1e-3)


def test_rows_of_a_group_are_near_each_other_and_do_not_say_what_is_far():
    copies = np.repeat(X[:40], 4, axis=0) * (1 + 1e-3 * np.random.default_rng(0).random((160, 8)))
    y = np.repeat(Y[:40], 4)
    alone, grouped = (fitted("exact", copies, y, groups=g).fitted.answers.novelty for g in (None, GROUPS))
    assert alone.signs[:, 1].max() < 0.1 < np.median(grouped.signs[:, 1])
    assert grouped.weights.sum() == pytest.approx(40)


@pytest.mark.parametrize("name", ["exact", "no map", "landmarks"])
def test_rows_without_entries_are_no_neighbours_and_have_no_label(name):
    rows = np.concatenate([X, np.zeros((3, 8))])
    model, plain = (fitted(name, some, y) for some, y in ((rows, np.append(Y, [0, 1, 2])), (X, Y)))
    new = np.concatenate([classes(5, 8, seed=5)[0], np.zeros((2, 8))])
    signs = [m.fitted.signs(m.decision_function(new), m.fitted.preparation(new, 0, "X"))[:, 1] for m in (model, plain)]
    assert (signs[0][-2:] == FAR).all()
    assert (model.predict(new, unassigned=0.05)[-2:] == "unassigned").all()
    if name != "landmarks":  # others are chosen
        np.testing.assert_allclose(*[s[:5] for s in signs], rtol=0.2)


@pytest.mark.parametrize("name", ["exact", "landmarks", "additive"])
def test_files_batches_of_rows_and_sources_give_the_same(name, tmp_path):
    model = fitted(name)
    new = classes(3000, 8, seed=7)[0]
    expected = model.unassigned_at(new)
    model.save(tmp_path / "a.model")
    np.testing.assert_array_equal(load(tmp_path / "a.model").unassigned_at(new), expected)
    np.testing.assert_allclose(model.unassigned_at(new[2500:]), expected[2500:], atol=0.02)
    np.testing.assert_allclose(model.unassigned_at(ArraySource(new)), expected, atol=1e-12)
    chunks = list(model.labels_in_chunks(ArraySource(new), 0.2))
    assert [start for start, _, _ in chunks] == [0, 2048]
    labels = np.concatenate([labels for _, _, labels in chunks])
    np.testing.assert_array_equal(labels, model.predict(new, unassigned=0.2))


def test_labels_of_any_type():
    new = np.concatenate([X[:4], np.zeros((1, 8))])
    for y in (Y.astype(str), Y, Y > 1, Y.astype(str).astype(object)):
        model = fitted("exact", X, y)
        labels = model.predict(new, unassigned=1e-3)
        assert labels.tolist() == [*model.predict(new[:4]).tolist(), "unassigned"]
    assert fitted("exact", X, Y.astype(str)).predict(new, unassigned=0.05).dtype.kind == "U"


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "additive"])
def test_machines_that_grow_by_batches(exact):
    model = HistogramClassifier("exp-chi2" if exact else "chi2", features="exact" if exact else "additive")
    for part in np.split(np.arange(160), 2):
        model.partial_fit(X[part], Y[part], classes=np.unique(Y))
    assert (model.predict(X, unassigned=0.05) == "unassigned").mean() < 0.2


@pytest.mark.parametrize("share", [0, 1, -0.1, 2, True, "a few", np.nan])
def test_shares_that_are_none(share):
    with pytest.raises(InputError, match=r"unassigned must be above 0 and below 1, a share of rows such as \.05"):
        fitted("additive").predict(X, unassigned=share)


def test_models_that_cannot_tell():
    rows, y = X[:40], np.where(Y[:40] == 0, "unassigned", "known")
    with pytest.raises(InputError, match="a class of the model has this name"):
        fitted("additive", X, np.where(Y == 0, "unassigned", "known")).predict(X, unassigned=0.05)
    with pytest.raises(InputError, match="one label per row"):
        fitted("additive", X, np.column_stack([Y == 0, Y == 1]).astype(int)).predict(X, unassigned=0.05)
    with pytest.raises(TypeError, match="unassigned"):
        HistogramRegressor("chi2").fit(rows, rows[:, 0]).predict(rows, unassigned=0.05)
    for other in (LookupClassifier(), OnlineIntersectionClassifier()):
        with pytest.raises(InputError, match=f"which a {type(other).__name__} does not keep: use a Histogram"):
            other.fit(rows, y).predict(rows, unassigned=0.05)
    with pytest.raises(InputError, match="CompiledClassifier does not keep"):
        fitted("additive").compile().predict(rows, unassigned=0.05)
    old = fitted("additive")
    state = {name: value for name, value in old.__getstate__().items() if name != "_novelty"}
    older = HistogramClassifier()
    older.__setstate__(state)
    assert (older.predict(X) == old.predict(X)).all()
    with pytest.raises(InputError, match="knows of none: fit it again, with this version and with more rows"):
        older.predict(X, unassigned=0.05)


@pytest.mark.parametrize("weights", [None, np.linspace(0.2, 2, 50)], ids=["equal", "weights"])
def test_shares_of_sets_are_those_of_their_thresholds(weights):
    """A score is above the threshold of a share if, and only if, its own share is no larger."""
    scores = np.random.default_rng(0).integers(0, 30, (50, 1)).astype(float)  # some tie
    conformal, new = Conformal(scores, weights), np.arange(-1.0, 31.0)[:, None]
    shares = conformal.shares(new)[:, 0]
    for alpha in np.linspace(0.011, 0.93, 40):
        np.testing.assert_array_equal(new[:, 0] > conformal.threshold(alpha)[0], shares <= alpha)


def test_evaluations_count_them_and_score_the_others(digits):
    rows, y, seen, unseen = digits
    model = fitted("exact", rows / 16, y)
    new, labels = (np.concatenate([seen, unseen[:100]]) / 16, np.concatenate([model.predict(seen / 16), np.zeros(100)]))
    evaluated = report(model, new, labels, insight=False, unassigned=0.05)
    found = model.predict(new, unassigned=0.05)
    is_unassigned = found == "unassigned"
    right = (found == labels)[~is_unassigned].mean()
    assert evaluated.unassigned == (0.05, is_unassigned.mean(), pytest.approx(right))
    assert evaluated.as_dict()["unassigned"]["rate"] == is_unassigned.mean()
    line = f"{is_unassigned.mean():.1%} of the rows at 0.05; accuracy of the others {right:.1%}"
    assert evaluated.summary()["unassigned"] == line
    assert line in evaluated.to_html()
    assert report(model, new, labels, insight=False).unassigned is None
    with pytest.raises(InputError, match="no classes that a row could lack"):
        report(HistogramRegressor("chi2").fit(X, X[:, 0]), X, X[:, 0], insight=False, unassigned=0.05)
