"""The exact kernel machine against scikit-learn's, and against the linear machine on a map's features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import FunctionTransformer, KernelCenterer
from sklearn.svm import SVC, LinearSVC

from chimap import HistogramClassifier, HomogeneousMap, KernelClassifier, MomentsRidgeClassifier, OptimalMap, chi2
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import ArraySource
from chimap.export import export_model

from ..held_out import watched


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300], np.array(list("abcdefghij"))[y[:300]], X[300:450]


def test_svm_is_scikit_learns_one_versus_rest(digits):
    """The strength is 1/C on the kernel as it is."""
    X, y, new = digits
    gram = chi2(X)
    expected = OneVsRestClassifier(SVC(kernel="precomputed", C=0.02)).fit(gram, y)
    found = KernelClassifier("chi2", alpha=50.0).fit(X, y)
    middle = np.eye(300) - 1 / 300
    assert found.scale_ == pytest.approx(np.trace(middle @ gram @ middle) / len(gram), rel=1e-12)
    np.testing.assert_allclose(found.decision_function(new), expected.decision_function(chi2(new, X)), atol=2e-3)
    assert (found.predict(new) == expected.predict(chi2(new, X))).all()


def test_ridge_is_kernel_ridge_with_a_free_intercept(digits):
    X, y, _ = digits
    found = KernelClassifier("chi2", alpha=20.0, loss="square").fit(X, y)
    np.testing.assert_allclose(found.dual_coef_.sum(axis=1), 0, atol=1e-9)
    gram = KernelCenterer().fit_transform(chi2(X))
    for t, name in enumerate(found.classes_):
        target = np.where(y == name, 1.0, -1.0)
        machine = KernelRidge(alpha=20.0, kernel="precomputed").fit(gram, target - target.mean())
        np.testing.assert_allclose(found.dual_coef_[t], machine.dual_coef_, atol=1e-10)


@pytest.mark.parametrize("alpha", [0.1, 3.0])
def test_a_strength_means_the_same_as_in_the_other_classifiers(digits, alpha):
    X, y, new = digits
    found = KernelClassifier("gaussian", gamma=1e-3, alpha=alpha, loss="square").fit(X, y)
    exact = HistogramClassifier("gaussian", gamma=1e-3, features="exact", alpha=alpha).fit(X, y)
    np.testing.assert_allclose(exact.decision_function(new), found.decision_function(new), atol=1e-4)
    psi = HomogeneousMap("chi2", 3).fit(X)
    mapped = KernelClassifier(map=psi, alpha=alpha, loss="square").fit(X, y)
    linear = MomentsRidgeClassifier(alpha=alpha).fit(psi.transform(X).astype(float), y)
    np.testing.assert_allclose(linear.decision_function(psi.transform(new)), mapped.decision_function(new), atol=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_a_map_gives_the_linear_machine_on_its_features(digits, loss):
    X, y, new = digits
    psi = OptimalMap("chi2", 3)
    found = KernelClassifier(map=psi, alpha=20.0, loss=loss).fit(X, y)
    Z, Zn = psi.fit(X).transform(X), psi.transform(new)
    by_gram = KernelClassifier("precomputed", alpha=20.0, loss=loss).fit(Z @ Z.T, y)
    np.testing.assert_allclose(found.decision_function(new), by_gram.decision_function(Zn @ Z.T), atol=1e-6)
    np.testing.assert_allclose(Zn @ found.coef_.T + found.intercept_, found.decision_function(new), atol=1e-9)
    if loss == "hinge":
        linear = LinearSVC(C=1 / 20.0, loss="hinge", intercept_scaling=100, max_iter=100_000, random_state=0).fit(Z, y)
        assert (linear.predict(Zn) == found.predict(new)).mean() > 0.97


@pytest.mark.parametrize("kernel", ["chi2", "exp-chi2", "pq"])
def test_sparse_rows_and_threads_give_the_same(digits, kernel):
    X, y, new = digits
    dense = KernelClassifier(kernel, alpha=0.1, n_jobs=1).fit(X, y).decision_function(new)
    sparse = (
        KernelClassifier(kernel, alpha=0.1, n_jobs=3).fit(sp.csr_matrix(X), y).decision_function(sp.csr_matrix(new))
    )
    np.testing.assert_allclose(sparse, dense, atol=1e-6)


def test_two_classes_have_one_machine(digits):
    X, y, new = digits
    few = np.isin(y, ["a", "b"])
    found = KernelClassifier().fit(X[few], y[few])
    assert found.decision_function(new).shape == (len(new),)
    assert found.dual_coef_.shape == (1, few.sum())


def test_bad_settings(digits):
    X, y, _ = digits
    with pytest.raises(MemoryBudgetError, match=r"memory='10MiB' is too small for the kernel matrix of 300 rows"):
        KernelClassifier(memory="10MiB").fit(X, y)
    with pytest.raises(ValueError, match="alpha must be a positive number"):
        KernelClassifier(alpha=0).fit(X, y)
    with pytest.raises(ValueError, match="loss must be one of 'hinge', 'square'"):
        KernelClassifier(loss="logistic").fit(X, y)
    with pytest.raises(DataError, match="Negative values"):
        KernelClassifier().fit(-X, y)
    with pytest.raises(DataError, match="one class only"):
        KernelClassifier().fit(X, np.zeros(300))
    with pytest.raises(ValueError, match="alpha must be one of 'auto'"):
        KernelClassifier(alpha="best").fit(X, y)
    with pytest.raises(ValueError, match="alpha must be 'auto', a number or several numbers"):
        KernelClassifier(alpha=[]).fit(X, y)
    for selection in (0, 2.5, None):
        with pytest.raises(ValueError, match=r"selection \(folds\) must be a positive whole number"):
            KernelClassifier(selection=selection).fit(X, y)
    for selection in (1, "gcv"):
        with pytest.raises(ValueError, match="selection must be 'auto' or at least 2 folds"):
            KernelClassifier(selection=selection).fit(X, y)


def shifted(mean, dtype, n=240):
    rng = np.random.default_rng(0)
    return (rng.random((n, 8)) + mean).astype(dtype)


@pytest.mark.parametrize("loss", ["hinge", "square"])
@pytest.mark.parametrize("kernel", ["linear", "chi2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_far_from_zero_lose_nothing(kernel, loss, dtype):
    for mean in (10, 100, 1000):
        X = shifted(mean, dtype)
        y = X.astype(float) @ np.linspace(-1, 1, 8) > 0
        machine = KernelClassifier(kernel, loss=loss, random_state=0).fit(X[:160], y[:160])
        assert machine.score(X[160:], y[160:]) > 0.9


def test_the_strength_is_chosen_by_folds_and_said(digits):
    X, y, _ = digits
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    strengths = [1e6, 10.0, 100.0]
    machine = KernelClassifier("chi2", alpha=strengths, selection=folds).fit(X, y)
    by_hand = GridSearchCV(KernelClassifier("chi2"), {"alpha": sorted(strengths)}, cv=folds).fit(X, y)
    result = machine.selection_
    assert (result.rule, result.measure, result.alphas.tolist()) == ("folds", "accuracy", [10.0, 100.0, 1e6])
    assert result.weights.tolist() == [100, 100, 100]
    for k in range(3):
        np.testing.assert_allclose(result.scores[:, k], by_hand.cv_results_[f"split{k}_test_score"], atol=0.02)
    assert result.means[2] < result.means[result.chosen] == result.means.max()
    assert machine.alpha_ == result.best["alpha"]
    assert result.describe().startswith("cross-validated over 3 folds: accuracy 0.")
    alone = KernelClassifier("chi2", alpha=machine.alpha_, selection=1).fit(X, y)
    np.testing.assert_array_equal(alone.dual_coef_, machine.dual_coef_)
    assert (alone.alpha_, alone.selection_) == (machine.alpha_, None)
    usual = KernelClassifier(random_state=0).fit(X, y)
    np.testing.assert_allclose(usual.selection_.alphas / usual.scale_, [1e-3, 1e-2, 0.1, 1, 10])
    assert KernelClassifier(selection="auto", random_state=0).fit(X, y).selection_.n_folds == 5


def test_of_strengths_that_tie_the_largest_is_taken():
    rows = np.repeat(np.eye(2), 20, axis=0)
    machine = KernelClassifier("linear", alpha=[0.01, 0.1, 1.0], random_state=0).fit(rows, rows[:, 0])
    assert machine.selection_.means.tolist() == [1, 1, 1]
    assert machine.alpha_ == 1.0


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_rows_of_a_group_are_held_out_together(loss):
    """Copies of rows with labels at random tell each other's, and nothing else does."""
    rng = np.random.default_rng(0)
    rows, labels, copies = rng.dirichlet(np.ones(8), 60), rng.integers(0, 2, 60), np.repeat(np.arange(60), 3)
    X, y = rows[copies], labels[copies]
    model = KernelClassifier("exp-chi2", gamma=300.0, loss=loss, alpha=[1e-3, 1e-2], random_state=0)
    alone = model.fit(X, y)
    told, sure = alone.selection_.means.max(), np.abs(alone.predict_proba(X)[:, 1] - 0.5).mean()
    grouped = model.fit(X, y, groups=copies)
    assert told > 0.85 > 0.7 > grouped.selection_.means.max()
    assert grouped.selection_.n_folds == 3
    assert sure > 0.3 > 0.2 > np.abs(grouped.predict_proba(X)[:, 1] - 0.5).mean()
    with pytest.raises(DataError, match="groups must have one entry for each of the 180 rows"):
        model.fit(X, y, groups=copies[:-1])
    with pytest.raises(ValueError, match="parts rows of a group"):
        model.set_params(selection=StratifiedKFold(3)).fit(X, y, groups=np.arange(180) % 60)


def test_few_rows_hold_nothing_out(digits):
    X = digits[0][:3]
    machine = KernelClassifier().fit(X, [0, 1, 1])
    assert machine.selection_ is None
    assert machine.alpha_ == pytest.approx(0.1 * machine.scale_)
    rare = KernelClassifier(random_state=0).fit(digits[0][:9], [0, 0, 0, 0, 1, 1, 1, 1, 2])
    assert set(rare.classes_) == {0, 1, 2}


def test_a_source_and_a_named_column_are_read_as_rows_and_labels(digits):
    X, y, new = digits
    expected = KernelClassifier("chi2", alpha=50.0).fit(X, y)
    found = KernelClassifier("chi2", alpha=50.0).fit_source(ArraySource(X, y))
    np.testing.assert_array_equal(found.predict_source(ArraySource(new)), expected.decision_function(new))
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    named = KernelClassifier("chi2", alpha=50.0).fit(frame.assign(digit=y), "digit")
    np.testing.assert_array_equal(named.dual_coef_, expected.dual_coef_)
    assert named.score(frame.assign(digit=y), "digit") == expected.score(X, y)


@pytest.mark.parametrize("settings", [{"kernel": "chi2"}, {"map": OptimalMap()}], ids=str)
def test_rows_of_an_unseen_class_are_told(digits, settings):
    """By their distance where the machine keeps its rows, and by their scores alone where a map replaces them."""
    X, y, _ = digits
    model = KernelClassifier(alpha=50.0, loss="square", **settings).fit(X[y < "i"], y[y < "i"])
    others, labels = (part[300:] for part in load_digits(return_X_y=True))
    assert roc_auc_score(labels < 8, model.unassigned_at(others)) > 0.85
    assert model.fitted.answers.novelty.has_distances == ("kernel" in settings)


def test_a_kernel_matrix_is_of_the_rows_of_the_fit(digits):
    X, y, new = digits
    gram = chi2(X)
    found = KernelClassifier("precomputed", alpha=50.0).fit(sp.csr_matrix(gram), y)
    expected = KernelClassifier("chi2", alpha=50.0).fit(X, y)
    np.testing.assert_allclose(found.decision_function(chi2(new, X)), expected.decision_function(new), atol=1e-9)
    with pytest.raises(DataError, match=r"takes the kernel matrix \(n, n\) of n labelled rows; got \(300, 299\)"):
        KernelClassifier("precomputed").fit(gram[:, 1:], y)
    with pytest.raises(ValueError, match="are given, and not computed"):
        found.kernel_(X)
    weights = np.arange(300) % 3
    some = found.fit(gram, y, sample_weight=weights, groups=np.arange(300) // 2)
    assert (some.row_numbers_ == np.flatnonzero(weights)).all()
    assert (some.dual_coef_[:, ::3] == 0).all()
    assert some.dual_coef_.shape == (10, 300)


def test_any_transformer_is_a_map(digits):
    X, y, new = digits
    found = KernelClassifier(map=FunctionTransformer(np.sqrt), alpha=50.0, loss="square").fit(X, y)
    expected = KernelClassifier("linear", alpha=50.0, loss="square").fit(np.sqrt(X), y)
    np.testing.assert_allclose(found.decision_function(new), expected.decision_function(np.sqrt(new)), atol=1e-9)
    assert isinstance(found.map_, FunctionTransformer)
    assert not hasattr(found, "rows_")
    assert not hasattr(expected, "map_")
    np.testing.assert_array_equal(expected.rows_, np.sqrt(X))


def test_several_tasks_are_refused(digits):
    with pytest.raises(DataError, match=r"KernelClassifier takes one label per row, shape \(300,\); got \(300, 2\)"):
        KernelClassifier().fit(digits[0], np.column_stack([digits[1] == "a", digits[1] == "b"]))


def test_a_machine_is_exported_and_one_of_a_map_is_compiled(digits, tmp_path):
    X, y, new = digits
    runtime = pytest.importorskip("onnxruntime")
    for name, settings in (("kept rows", {"kernel": "exp-chi2"}), ("map", {"map": OptimalMap()})):
        model = KernelClassifier(alpha=1.0, **settings).fit(X, y)
        export_model(model, tmp_path / f"{name}.onnx")
        session = runtime.InferenceSession(tmp_path / f"{name}.onnx")
        np.testing.assert_allclose(session.run(["scores"], {"X": new})[0], model.decision_function(new), atol=1e-9)
    assert (model.compile().predict(new) == model.predict(new)).mean() > 0.98


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_held_out_outputs_are_those_of_machines_without_the_fold(digits, loss, monkeypatch):
    X, y, _ = digits
    labels, folds = (y > "e").astype(int), KFold(3)
    seen = watched(monkeypatch)
    KernelClassifier("exp-chi2", alpha=0.1, loss=loss, selection=folds, gamma=0.01).fit(X, labels)
    found = seen[0]
    expected = []
    for train, test in folds.split(X):
        machine = KernelClassifier("exp-chi2", alpha=0.1, loss=loss, gamma=0.01).fit(X[train], labels[train])
        expected.append((labels[test], machine.decision_function(X[test])))
    held = [np.concatenate(parts)[: found.y.size] for parts in zip(*expected, strict=True)]
    np.testing.assert_array_equal(found.y, held[0])
    np.testing.assert_allclose(found.outputs[:, 0], held[1], atol=5e-3 if loss == "hinge" else 1e-9)
    assert found.y.size == (100 if loss == "hinge" else 300)  # as many as are enough, or all
