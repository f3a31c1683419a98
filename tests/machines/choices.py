"""The machine that each of some 200 combinations of settings and rows gets, by the shape of the rows alone.

``choices.txt`` has a line for each: what is asked for, the rows, and what they get. ``python -m
tests.machines.choices`` writes it anew, for a change of choices that is meant.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import scipy.sparse

from chimap import AutomaticFeatures, HistogramClassifier, HistogramRegressor, PrincipalFeatures
from chimap._progress import Stopwatch
from chimap._threads import threads
from chimap._validation import AUTO
from chimap.backends import BACKENDS, DeviceKind
from chimap.data import Source
from chimap.engines import Progress
from chimap.fit.collecting import COLLECTORS, FitRun, check_request
from chimap.fit.fit import _prepared_rows
from chimap.machines.base import Facts, Request
from chimap.machines.catalogue import machine_for
from chimap.machines.method import Method
from chimap.models.race_result import Trial
from chimap.race.choose import final_recipe
from chimap.race.specs import EXACT_MARGINS, MARGINS, RIDGE, KernelSpec
from chimap.recipe import Recipe
from chimap.recipe.task import Task

FILE = Path(__file__).with_name("choices.txt")
_SHOWN = 1000  # rows that are there, for the density of their columns


class Shape(Source):
    """Rows of which only the shape is there, and some to see how filled they are."""

    can_seek = True

    def __init__(self, n_rows: int, n_features: int, filled: int, y: np.ndarray):
        self.name, self.n_rows, self.n_features, self.dtype = "rows", n_rows, n_features, np.dtype(np.float32)
        self.is_sparse, self._filled, self._y = filled > 0, filled, y
        self.row_bytes = 8.0 * filled + 4 if filled else 4.0 * n_features

    def labels(self):
        return self._y

    def fingerprint(self):
        return {}

    def chunks(self, chunk_rows):
        raise AssertionError("a choice reads few rows")

    def take(self, rows):
        assert rows.size <= _SHOWN
        if not self.is_sparse:
            return np.ones((rows.size, self.n_features), np.float32)
        shape, share, rng = (rows.size, self.n_features), self._filled / self.n_features, int(rows[0])
        return scipy.sparse.random_array(shape, density=share, format="csr", rng=rng).astype(np.float32)


@cache
def source_of(rows: str) -> Shape:
    """Return a source from words: "1,000 x 64, 3 classes", "1,000 x 30,000 with 80 filled, 2 targets with gaps"."""
    size, labels = rows.split(", ")
    n, n_features, *filled = (int(word.replace(",", "")) for word in size.split() if word[0].isdigit())
    numbers = np.arange(n)
    kind, number = labels.split()[1], int(labels.split()[0])
    if kind == "classes":
        y = (numbers % number).astype(np.int64)
    elif kind == "tasks":
        y = np.stack([(numbers // (j + 1)) % 2 for j in range(number)], axis=1).astype(float)
    else:
        y = np.stack([(numbers * (j + 1) % 97).astype(float) for j in range(number)], axis=1)
        y = y[:, 0] if number == 1 else y
    if labels.endswith("gaps"):
        y[::7, 0] = np.nan
    return Shape(n, n_features, filled[0] if filled else 0, y)


# A device that has ten times the speed of this machine, and room for 2 GiB.
DEVICE = SimpleNamespace(
    speed=10.0, holds=lambda n, columns, block, dtype: dtype.itemsize * (n * columns + block**2) < 2**31
)


class Case(NamedTuple):
    """What is asked for, and of which rows. won: of a race, the kernel and method of its winner."""

    rows: str
    asked: dict[str, object]
    won: str = ""
    request: Request = Request(can_keep=True)

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={_word(value)}" for name, value in self.asked.items())
        beside = [name for name in ("is_batch", "has_checkpoint") if getattr(self.request, name)]
        beside += [] if self.request.can_keep else ["other processes"]
        won = f"a race won by {self.won}" if self.won else ""
        return "; ".join(part for part in (self.rows, won, settings, *beside) if part)


def _word(value: object) -> str:
    return type(value).__name__ + str(value.n_components) if isinstance(value, PrincipalFeatures) else repr(value)


SMALL, MANY = "300 x 64, 3 classes", "100,000 x 64, 10 classes"
ROWS = (
    "50 x 20, 2 classes",
    SMALL,
    "300 x 2,000, 2 classes",
    "4,000 x 64, 1 targets",
    "9,000 x 784, 10 classes",
    "20,000 x 784, 10 classes",
    MANY,
    "1,000,000 x 784, 10 classes",
    "1,000 x 30,000 with 80 filled, 20 classes",
    "20,000 x 30,000 with 80 filled, 20 classes",
    "200,000 x 2,000 with 50 filled, 2 classes",
    "300,000 x 100,000 with 100 filled, 2 classes",
    "300 x 64, 3 tasks with gaps",
    "60,000 x 64, 2 targets with gaps",
    "60,000 x 64, 3 targets",
)
KERNELS = ("exp-chi2", "chi2", "minmax", "linear")
WINNERS = ("exp-chi2 ridge", "chi2 ridge", "minmax ridge", "linear margins", "gaussian exact margins")
OTHERS: tuple[dict[str, object], ...] = (
    {"features": "exact"},
    {"features": "landmarks"},
    {"features": "fourier"},
    {"features": "landmarks", "gamma": "auto"},
    {"features": "additive"},
    {"n_components": 50},
    {"features": PrincipalFeatures(5), "n_components": 50},
    {"features": PrincipalFeatures((5, 9)), "loss": "logistic"},
    {"features": AutomaticFeatures(sampling="iid")},
    {"features": AutomaticFeatures(n_terms=3)},
    {"features": "exact", "loss": "logistic"},
    {"features": "exact", "loss": "squared_hinge"},
    {"features": "exact", "selection": "gcv"},
    {"features": PrincipalFeatures(5, "exact")},
    {"loss": "hinge"},
    {"loss": "logistic"},
    {"loss": "logistic", "scoring": "roc_auc"},
    {"loss": "squared_hinge"},
    {"selection": "gcv"},
    {"selection": "holdout"},
    {"selection": 3},
    {"precision": "auto"},
    {"blocks": [slice(0, 4), slice(4, None)]},
    {"class_weight": "balanced"},
    {"precision": "float64"},
    {"time_limit": 1e-3},
    {"time_limit": 10.0},
    {"memory": "64MiB"},
    {"memory": "8GiB"},
    {"alpha": 1.0},
)
ON_DEVICES: tuple[dict[str, object], ...] = (
    {"kernel": "exp-chi2"},
    {"kernel": "chi2"},
    {"kernel": "minmax"},
    {"kernel": "minmax", "features": "exact"},
    {"kernel": "chi2", "loss": "logistic"},
    {"kernel": "chi2", "class_weight": {0: 2.0}},
)
REQUESTS = (Request(can_keep=False), Request(can_keep=True, has_checkpoint=True), Request(can_keep=True, is_batch=True))
NORMALISED: tuple[dict[str, object], ...] = ({}, {"features": "exact"}, {"n_components": 50}, {"loss": "logistic"})
REGRESSIONS: tuple[dict[str, object], ...] = (
    {"loss": "poisson"},
    {"loss": "quantile"},
    {"loss": "quantile", "features": "exact"},
    {"loss": "epsilon_insensitive", "features": "exact"},
)


def cases() -> Iterator[Case]:
    """Yield all cases, in the order of the file."""
    for rows in ROWS:
        yield from (Case(rows, {"kernel": kernel}) for kernel in KERNELS)
    for rows in ROWS[:-3]:
        yield from (Case(rows, {}, winner) for winner in WINNERS[: 4 if "targets" not in rows else 3])
    for rows in (SMALL, MANY):
        yield from (Case(rows, {"kernel": "exp-chi2", **asked}) for asked in OTHERS)
    for rows in (SMALL, "20,000 x 30,000 with 80 filled, 20 classes"):
        yield from (Case(rows, {"kernel": "chi2", **asked}) for asked in OTHERS[-8:])
    for rows in ("2,000 x 64, 1 targets", "4,000 x 64, 1 targets", "60,000 x 64, 1 targets"):
        yield from (Case(rows, {"kernel": "exp-chi2", **asked}) for asked in REGRESSIONS)
    for request in REQUESTS:
        for rows in (SMALL, MANY, "200,000 x 2,000 with 50 filled, 2 classes"):
            yield from (Case(rows, {"kernel": kernel}, request=request) for kernel in ("exp-chi2", "chi2"))
    for rows in (SMALL, MANY, "20,000 x 30,000 with 80 filled, 20 classes", "300 x 64, 3 tasks with gaps"):
        yield from (Case(rows, {**asked, "device": "gpu"}) for asked in ON_DEVICES)
    yield from (Case(MANY, {"memory": memory}, "exp-chi2 ridge") for memory in ("64MiB", "8GiB"))
    yield Case(MANY, {"time_limit": 20.0}, "exp-chi2 ridge")
    for rows in (SMALL, "9,000 x 784, 10 classes", MANY, "20,000 x 30,000 with 80 filled, 20 classes"):
        for kernel in ("exp-chi2", "chi2"):  # named ones, whose normalisation is raced
            yield from (Case(rows, {"kernel": kernel, **asked}, f"{kernel} ridge") for asked in NORMALISED)
    yield Case("1,000 x 64, 100 classes", {}, "gaussian exact margins")
    yield Case("12,000 x 64, 100 classes", {}, "gaussian exact margins")


def raced(recipe: Recipe, won: str, facts: Facts) -> Recipe:
    """Return the recipe for all rows of the winner of a race, which chose a strength of .5 and, if it can, gamma 2."""
    kernel, method = won.split(" ", 1)
    spec = KernelSpec(kernel, None, next(way for way in (RIDGE, MARGINS, EXACT_MARGINS) if way.name == method))
    candidate = spec.candidate(recipe) if recipe.leaves_open("kernel") else spec.candidate_within(recipe)
    learned = {"alpha": 0.5} | ({"gamma": 2.0} if kernel.startswith(("exp-", "gaussian")) else {})
    trial = Trial(candidate, 0, 200, 0.9, 1.0, learned)
    running = SimpleNamespace(asked=recipe, scoring=None, leaves_out=facts.n_rows < 500)
    return final_recipe(running, trial, facts)


def choice(case: Case) -> str:
    """Return the machine of a case in words, or the error; gamma is 2 wherever a sample would choose it."""
    kind = HistogramRegressor if "targets" in case.rows else HistogramClassifier
    recipe, source, request = (
        Recipe.of(kind(random_state=0, **{"memory": "1GiB"} | case.asked)),
        source_of(case.rows),
        case.request,
    )
    try:
        task, source, _ = Task.of(source, recipe)
        won, facts = recipe, Facts.of(source, task, None, request)
        check_request(recipe, task.has_gaps, request)
        if case.won:
            won = raced(recipe, case.won, facts)
        plan = machine_for(won, facts, recipe)
        recipe = plan.recipe
        if recipe.leaves_open("gamma") and not recipe.is_exact:
            recipe = recipe.with_values(gamma=2.0)
        method = Method.of(recipe, source.column_names, has_gaps=task.has_gaps)
        collectors = COLLECTORS[method.objective.solver.needs]
        collectors.check(request)
        engine = SimpleNamespace(n_waiting=0)
        run = FitRun(engine, Progress(), Stopwatch(), request)  # type: ignore[arg-type]
        if not request.is_batch:
            collectors.planned(method, plan, _prepared_rows(method, task, source, None, None), run, None)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    features = recipe.features if isinstance(recipe.features, str) else type(recipe.features).__name__
    names = ("n_terms", "n_components", "gamma", "alpha", "loss")
    values = [f"{name}={value}" for name in names if (value := getattr(recipe, name)) not in (AUTO, "mean", "square")]
    return ", ".join([features, f"solver {method.objective.solver.name}", *values, recipe.precision])


def lines() -> list[str]:
    """Return the lines of the file."""
    device = DeviceKind(lambda name: DEVICE, lambda name: None)  # type: ignore[arg-type, return-value]
    with threads(2), patch.dict(BACKENDS, {"gpu": device}):
        return [f"{case} -> {choice(case)}" for case in cases()]


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n")
