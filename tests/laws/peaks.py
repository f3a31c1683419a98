"""The peak of the memory that a fit allocates; see ``test_memory``."""

from __future__ import annotations

import gc
import re
import tracemalloc
from collections.abc import Callable
from functools import cache

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier

from chimap import HistogramClassifier
from chimap._memory import parse_memory
from chimap._validation import MemoryBudgetError

from ..histograms import classes
from .estimators import ESTIMATORS, FEW
from .sources import FROM_SOURCES

LEARNING_WEIGHTS = {
    f"learned weights of bins, {features}": HistogramClassifier(
        "exp-chi2", features=features, bin_weights="learn", **FEW
    )
    for features in ("landmarks", "fourier")
}
TAKING_MEMORY: dict[str, BaseEstimator] = {
    name: model
    for name, model in (ESTIMATORS | FROM_SOURCES | LEARNING_WEIGHTS).items()
    if "memory" in model.get_params(deep=False)
}
N_COMPONENTS = 500
SPARE = 8 * 2**20  # threads of few rows
LARGER = {"blocks": {"a": slice(0, 200), "b": slice(200, 400)}, "n_components": N_COMPONENTS}


def made(name: str, memory: str) -> BaseEstimator:
    """The estimator of the catalogue, with so many components that they outweigh what the process has anyway."""
    model = clone(TAKING_MEMORY[name])
    given = {
        parameter: value
        for parameter, value in LARGER.items()
        if model.get_params(deep=False).get(parameter) not in (None, "auto")
    }
    return model.set_params(memory=memory, **given)


@cache
def rows_and_classes() -> tuple[np.ndarray, np.ndarray]:
    rows, labels = classes(3000, 400)
    return rows.astype(np.float32), labels


def fit(model: BaseEstimator) -> None:
    rows, labels = rows_and_classes()
    model.fit(rows, labels if is_classifier(model) else rows[:, 0] + np.sqrt(rows[:, 1]))


def peak_of_fit(name: str) -> tuple[int, int]:
    """The bytes of the least budget, and those that the fit takes of it at its peak."""
    memory, peak = least_memory(name)
    if peak > parse_memory(memory):  # it has compiled and loaded what it calls
        peak = peak_of(lambda: fit(made(name, memory)))
    return parse_memory(memory), peak


def least_memory(name: str) -> tuple[str, int]:
    """The budget that an estimator names when it is given too little, and the peak of the fit in it.

    A stage after the first may name more than the first.
    """
    memory = "1MiB"
    for _ in range(3):
        try:
            return memory, peak_of(lambda memory=memory: fit(made(name, memory)))
        except MemoryBudgetError as error:
            named = re.search("Give memory='([^']+)'", str(error))
            if named is None:
                raise
            memory = named[1]
    raise AssertionError(f"{name} refuses the budget that it names, {memory}")


def peak_of(call: Callable[[], object]) -> int:
    """Bytes of arrays and objects that are alive at once during a call, besides those from before.

    numpy tells Python of its arrays. Resident memory, which also depends on what the system takes back and returns, is
    mostly within a MiB of this, and three MiB above it at most.
    """
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
