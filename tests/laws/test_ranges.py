"""Numbers at the ends of their range: over the catalogues, a fit answers with finite numbers or says what it refuses.

A magnitude of 1e30 is far beyond where squares fit in float32, and 1e300 in float64.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import is_regressor
from sklearn.exceptions import ConvergenceWarning

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.features.families import FAMILIES
from chimap.kernels import AdditiveKernel, Exponential, as_kernel, names
from chimap.kernels.plain import Linear
from chimap.solvers.kernel_matrix import has_exact_machine

from ..histograms import classes
from .estimators import ESTIMATORS, made, outputs

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
X, Y = classes(72, 8)
SERVED = [
    (kernel, features)
    for kernel in names()
    for features, families in FAMILIES.items()
    if any(family.takes(as_kernel(kernel)) for family in families)
]
every_machine = pytest.mark.parametrize(("kernel", "features"), SERVED)
HOMOGENEOUS = [pair for pair in SERVED if isinstance(as_kernel(pair[0]), AdditiveKernel | Exponential | Linear)]
LOSSES = ("square", "squared_hinge", "logistic", "hinge")


def fitted(kernel, features="auto", rows=X, **settings):
    n = {} if features == "exact" else {"n_components": 16}
    model = HistogramClassifier(kernel, features=features, random_state=0, **n, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows, Y)


def finite(model, rows=X):
    answered = model.decision_function(rows)
    assert np.isfinite(answered).all()
    return answered


def answered_or_refused(call):
    """What a call returns, and the text of the error by which it refuses instead."""
    try:
        return call(), ""
    except (DataError, ValueError) as error:
        return None, str(error)


# --- gamma="auto"


@every_machine
def test_gamma_is_chosen_wherever_the_kernel_has_one(kernel, features):
    model = fitted(kernel, features, gamma="auto")
    finite(model)
    fixed = fitted(kernel, features)
    if getattr(fixed.kernel_, "gamma", 1) == 1:  # no width, so that there is nothing to choose
        np.testing.assert_array_equal(finite(model), finite(fixed))
    else:
        assert 0.24 < model.kernel_.gamma / fixed.kernel_.gamma < 4.1


def test_gamma_is_chosen_for_the_winner_of_a_race():
    finite(HistogramClassifier(gamma="auto", random_state=0).fit(X, Y))


# --- rows in other units


@pytest.mark.covering(2)
@pytest.mark.parametrize(("precision", "exponents"), [("float32", (-100, 100)), ("float64", (-1000, 1000))])
@pytest.mark.parametrize(("kernel", "features"), HOMOGENEOUS)
def test_units_of_rows_change_no_answer(kernel, features, precision, exponents):
    """Kernels of one degree measure rows by each other: powers of two change no digit of them."""
    dtype = np.float32 if precision == "float32" else np.float64
    expected = finite(fitted(kernel, features, X.astype(dtype), precision=precision), X.astype(dtype))
    for exponent in exponents:
        rows = np.ldexp(X.astype(dtype), exponent)
        answered = finite(fitted(kernel, features, rows, precision=precision), rows)
        tolerance = 5e-3 if precision == "float32" else 1e-6
        np.testing.assert_allclose(answered, expected, atol=tolerance * np.abs(expected).max())


@pytest.mark.covering(2)
@pytest.mark.parametrize(("precision", "scales"), [("float32", (1e-30, 1e30)), ("float64", (1e-300, 1e300))])
@pytest.mark.parametrize(("kernel", "features"), [pair for pair in SERVED if pair not in HOMOGENEOUS])
def test_rows_of_any_unit_are_answered_or_refused_by_name(kernel, features, precision, scales):
    for scale in scales:
        rows = (X * scale).astype(precision)
        answer, refusal = answered_or_refused(
            lambda rows=rows: finite(fitted(kernel, features, rows, precision=precision), rows)
        )
        assert answer is not None or any(word in refusal for word in ("row", "gamma", "equal"))


# --- strengths


@pytest.mark.parametrize(
    ("features", "loss"),
    [(features, loss) for features in FAMILIES for loss in LOSSES if features != "exact" or has_exact_machine(loss)],
)
def test_a_huge_strength_answers_with_the_mean(features, loss):
    kernel = "chi2" if features == "additive" else "exp-chi2"
    answered = finite(fitted(kernel, features, loss=loss, alpha=1e300))
    assert np.ptp(answered, axis=0).max() < 1e-6


@every_machine
def test_a_tiny_strength_is_answered_or_refused_by_name(kernel, features):
    answer, refusal = answered_or_refused(lambda: finite(fitted(kernel, features, alpha=1e-300)))
    assert answer is not None or "alpha" in refusal or "strength" in refusal


@pytest.mark.parametrize("alpha", [1e-300, 1e300])
@pytest.mark.parametrize("name", [name for name, model in ESTIMATORS.items() if hasattr(model, "alpha")])
def test_every_estimator_takes_or_refuses_extreme_strengths(name, alpha):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        y = X[:, 0] if is_regressor(made(name)) else Y
        model = made(name).set_params(alpha=alpha)
        answer, refusal = answered_or_refused(lambda: outputs(model.fit(X, y), X))
    assert "alpha" in refusal or "strength" in refusal if answer is None else np.isfinite(answer).all()


# --- one huge entry


HUGE = (1e10, 3e38)


@every_machine
def test_a_huge_entry_of_a_row_to_predict_is_answered_or_refused_with_its_row(kernel, features):
    model = fitted(kernel, features, X.astype(np.float32))
    expected = finite(model, X.astype(np.float32))
    for entry in HUGE:
        rows = X.astype(np.float32)
        rows[9, 4] = entry
        answer, refusal = answered_or_refused(lambda rows=rows: finite(model, rows))
        if answer is None:
            assert "row 9" in refusal
            continue
        others = (np.delete(scores, 9, axis=0) for scores in (answer, expected))
        np.testing.assert_allclose(*others, rtol=1e-4, atol=1e-4)


@every_machine
def test_a_huge_entry_of_a_fit_is_named(kernel, features):
    """Kernels that add up bins cannot tell the other rows apart; the rest need not say anything."""
    exact = as_kernel(kernel)
    degree = exact.degree or getattr(getattr(exact, "kernel", None), "degree", 0)
    for entry in HUGE:
        rows = X.astype(np.float32)
        rows[9, 4] = entry
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            warnings.simplefilter("error", RuntimeWarning)
            answer, refusal = answered_or_refused(lambda rows=rows: finite(fitted(kernel, features, rows), X))
        assert answer is not None or any(word in refusal for word in ("row 9", "gamma", "precision"))
        named = [warning for warning in said if "row 9, column 4" in str(warning.message)]
        assert bool(named) == bool(degree)


def test_a_fit_without_such_an_entry_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted("exp-chi2")
        fitted("gaussian", rows=X * [1e6, 1, 1, 1, 1, 1, 1, 1])  # all rows share the large column
