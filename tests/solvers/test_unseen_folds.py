"""Machines that leave a fold out know nothing of its targets, however early their search ends."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.engines import Progress, Stopwatch
from chimap.engines.rows import RowsInMemory
from chimap.losses import Observed, Square
from chimap.machines.objective import GroupNorm, PenalisedLoss
from chimap.moments import FoldMoments, GivenFolds
from chimap.moments.kept import KeptFeatures
from chimap.selection.base import OpenSettings
from chimap.solvers.base import Evidence
from chimap.solvers.catalogue import SOLVERS
from chimap.solvers.held_out import ValidationRows

N, D, K = 60, 90, 3  # more features than rows, so that a start that knows the targets fits them
FOLDS = np.arange(N) % K
WORDS = {
    "logistic": "lbfgs",
    "squared_hinge": "lbfgs",
    "observed": "observed ridge",
    "square": "ridge",
    "wide": "wide ridge",
    "hinge": "liblinear",
}


def rows(flipped):
    """Features, and targets of which those of some folds are replaced by their opposites."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((N, D))
    Y = np.where(rng.random((N, 1)) < 0.5, -1.0, 1.0)
    return Z, np.where(np.isin(FOLDS, flipped)[:, None], -Y, Y)


def evidence_of(flipped, asked="folds"):
    Z, Y = rows(flipped)
    shift = np.zeros(D)
    moments = FoldMoments(K, D, 1, shift, np.zeros(1), np.dtype(float))
    in_memory = RowsInMemory(np.bincount(FOLDS), D, 1, np.dtype(float))
    kept = KeptFeatures(GivenFolds(FOLDS, K))
    for fold in range(K):
        own = fold == FOLDS
        moments.add_shifted(fold, np.ascontiguousarray(Z[own]), Y[own])
        in_memory.put(fold, Z[own], Y[own])
    moments.release_buffers()
    kept.put(Z, Y, 0)
    validation = ValidationRows(np.arange(N), Z, Y, FOLDS, leaves_folds=True)
    return Evidence(moments, in_memory, kept, asked=asked, validation=validation, held_folds=tuple(range(K)))


def held_out(name, flipped, tries):
    """Outputs of the rows of each fold by the machine of the others, (N,), after a solution of all, and a trial."""
    solver = SOLVERS[WORDS[name]]
    loss = {"observed": Observed(Square()), "wide": "square"}.get(name, name)
    evidence = evidence_of(flipped)
    problem = solver.problem(loss, evidence)
    if tries and hasattr(problem, "trial"):
        problem.trial(0.1)
    found = problem.held_out(problem.solve(0.1), evidence.validation)
    outputs = np.empty(N)
    outputs[found.rows] = found.outputs[:, 0]
    return outputs


@pytest.mark.parametrize("tries", [False, True])
@pytest.mark.parametrize("fold", range(K))
@pytest.mark.parametrize("name", WORDS)
def test_outputs_of_a_fold_do_not_depend_on_its_targets(name, fold, tries):
    before, after = held_out(name, [], tries), held_out(name, [fold], tries)
    own = fold == FOLDS
    np.testing.assert_array_equal(np.isnan(before), False)
    atol = 0.02 if name == "logistic" else 1e-8  # where a search ends depends on rounding
    np.testing.assert_allclose(after[own], before[own], rtol=1e-6, atol=atol)
    assert np.abs(after[~own] - before[~own]).max() > 0.1  # of others they do


@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "observed"])
def test_trials_know_nothing_of_the_rows_that_they_are_scored_on(name, alpha):
    """The machine of a trial is the same whatever the targets of fold 0, on which its loss is measured."""
    found = []
    for flipped in ([], [0]):
        loss = {"observed": Observed(Square())}.get(name, name)
        problem = SOLVERS[WORDS[name]].problem(loss, evidence_of(flipped))
        found.append((problem.trial(alpha), problem._best[1].coef))
    assert found[0][0] != found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], atol=0.02 * np.abs(found[0][1]).max())


@pytest.mark.parametrize("asked", ["folds", "nothing"])
@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_weights_of_kernels(loss, asked):
    class Channels:
        borders_ = np.array([0, 30, 60, D])

    found = []
    for flipped in ([], [1]):
        evidence = evidence_of(flipped, asked)
        if loss == "square":
            evidence = Evidence(
                evidence.moments, asked=asked, validation=evidence.validation, held_folds=evidence.held_folds
            )
        open = OpenSettings(0.5 if asked == "nothing" else (0.5,))
        objective = PenalisedLoss(loss, open, groups=GroupNorm(None, False))
        learned = objective.learn(evidence, Channels(), Stopwatch(), Progress())
        outputs = np.empty(N)
        outputs[learned.held_out.rows] = learned.held_out.outputs[:, 0]
        found.append(outputs)
    own = FOLDS == 1
    np.testing.assert_allclose(found[1][own], found[0][own], rtol=1e-5, atol=1e-8)
    assert np.abs(found[1][~own] - found[0][~own]).max() > 0.01
