"""scikit-learn's checks of estimators."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

# The same rows or weights in another container or memory, which other checks of the same estimator bring too.
TWICE = (
    "check_estimator_sparse_matrix",
    "check_classifiers_train(readonly_memmap=True)",
    "check_classifiers_train(readonly_memmap=True,X_dtype=float32)",
    "check_regressors_train(readonly_memmap=True)",
    "check_regressors_train(readonly_memmap=True,X_dtype=float32)",
    "check_estimators_pickle(readonly_memmap=True)",
    "check_sample_weights_not_an_array",
    "check_sample_weights_list",
)


def every_check(estimators: list) -> Callable:
    """A decorator for a test of (estimator, check); checks that come twice are thorough."""
    pairs = [pair for estimator in estimators for pair in estimator_checks_generator(estimator)]
    cases = [
        pytest.param(
            estimator,
            check,
            marks=[pytest.mark.thorough] if described(check) in TWICE else [],
            id=f"{estimator}-{described(check)}".replace("\n", "").replace(" ", ""),
        )
        for estimator, check in pairs
    ]
    return pytest.mark.parametrize(("estimator", "check"), cases)


def described(check: partial) -> str:
    """Its name and settings."""
    settings = ",".join(f"{name}={value}" for name, value in check.keywords.items())
    return f"{check.func.__name__}({settings})" if settings else check.func.__name__


def meets(estimator: object, check: partial, errors: dict[str, type[Exception] | str]) -> None:
    """Run the check; those that are named must end in the error, or are skipped for the reason.

    This and not a mark, for which pytest would parse all of scikit-learn's checks to show where each failed.
    """
    expected = errors.get(check.func.__name__)
    if isinstance(expected, str):
        pytest.skip(expected)
    with nullcontext() if expected is None else pytest.raises(expected):
        check(estimator)
