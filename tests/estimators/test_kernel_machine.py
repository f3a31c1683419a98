"""The exact kernel machine against scikit-learn's, and against the linear machine on a map's features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

from chimap import KernelClassifier, OptimalMap, chi2
from chimap._validation import DataError, MemoryBudgetError


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300], np.array(list("abcdefghij"))[y[:300]], X[300:450]


def test_svm_is_scikit_learns_one_versus_rest(digits):
    X, y, new = digits
    gram, values = chi2(X), chi2(new, X)
    scale = np.trace(gram) / len(gram)
    expected = OneVsRestClassifier(SVC(kernel="precomputed", C=2.0)).fit(gram / scale, y)
    found = KernelClassifier("chi2", C=2.0).fit(X, y)
    np.testing.assert_allclose(
        found.decision_function(new), expected.decision_function(values / scale), atol=1e-6
    )
    assert (found.predict(new) == expected.predict(values / scale)).all()


def test_ridge_is_kernel_ridge_with_a_free_intercept(digits):
    X, y, _ = digits
    found = KernelClassifier("chi2", C=5.0, loss="square").fit(X, y)
    np.testing.assert_allclose(found.dual_coef_.sum(axis=1), 0, atol=1e-9)
    gram = chi2(X) / found.scale_
    for t, name in enumerate(found.classes_):
        target = np.where(y == name, 1.0, -1.0) - found.intercept_[t]
        machine = KernelRidge(alpha=1 / 5.0, kernel="precomputed").fit(gram, target)
        np.testing.assert_allclose(found.dual_coef_[t] * found.scale_, machine.dual_coef_, atol=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_a_map_gives_the_linear_machine_on_its_features(digits, loss):
    X, y, new = digits
    psi = OptimalMap("chi2", 3)
    found = KernelClassifier(map=psi, loss=loss).fit(X, y)
    Z, Zn = psi.fit(X).transform(X), psi.transform(new)
    by_gram = KernelClassifier("precomputed", loss=loss).fit(Z @ Z.T, y)
    np.testing.assert_allclose(found.decision_function(new), by_gram.decision_function(Zn @ Z.T), atol=1e-6)
    np.testing.assert_allclose(Zn @ found.coef_.T + found.intercept_, found.decision_function(new), atol=1e-9)
    if loss == "hinge":
        linear = LinearSVC(
            C=10 / found.scale_, loss="hinge", intercept_scaling=100, max_iter=100_000, random_state=0
        ).fit(Z, y)
        assert (linear.predict(Zn) == found.predict(new)).mean() > 0.97


@pytest.mark.parametrize("kernel", ["chi2", "exp-chi2", "pq"])
def test_sparse_rows_and_threads_give_the_same(digits, kernel):
    X, y, new = digits
    dense = KernelClassifier(kernel, n_jobs=1).fit(X, y).decision_function(new)
    sparse = KernelClassifier(kernel, n_jobs=3).fit(sp.csr_matrix(X), y).decision_function(sp.csr_matrix(new))
    np.testing.assert_allclose(sparse, dense, atol=1e-6)


def test_two_classes_have_one_machine(digits):
    X, y, new = digits
    few = np.isin(y, ["a", "b"])
    found = KernelClassifier().fit(X[few], y[few])
    assert found.decision_function(new).shape == (len(new),)
    assert found.dual_coef_.shape == (1, few.sum())


def test_bad_settings(digits):
    X, y, _ = digits
    with pytest.raises(
        MemoryBudgetError, match=r"memory='10MiB' is too small for the kernel matrix of 300 rows"
    ):
        KernelClassifier(memory="10MiB").fit(X, y)
    with pytest.raises(ValueError, match="C must be a positive number"):
        KernelClassifier(C=0).fit(X, y)
    with pytest.raises(ValueError, match="loss must be one of 'hinge', 'square'"):
        KernelClassifier(loss="logistic").fit(X, y)
    with pytest.raises(DataError, match="Negative values"):
        KernelClassifier().fit(-X, y)
    with pytest.raises(DataError, match="one class only"):
        KernelClassifier().fit(X, np.zeros(300))
