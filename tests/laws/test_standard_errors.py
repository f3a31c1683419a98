"""Standard errors count groups: rows that repeat what their group says make no error smaller."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from chimap.machines.holding_out import folds_of_groups
from chimap.race.runner import Race
from chimap.reports.measures import mean_interval, share_interval
from chimap.selection.base import SelectionResult
from chimap.selection.jackknife import error_of_mean, parts_of_rows, standard_error
from chimap.selection.scoring import HeldOutScore
from chimap.solvers.base import KernelRows
from chimap.solvers.contenders import RowsToCome

N_GROUPS, SIZE = 25, 10


def of_a_gain(values, groups):
    """Of landmarks, and of what covariates and counts add to each other."""
    rows, parts = np.arange(values.size), parts_of_rows(values.size, groups, 0)
    return HeldOutScore(values, None).gain_and_error(np.zeros((rows.size, 1)), 0.5 * values[:, None], rows, parts)[1]


def of_a_trial(values, groups):
    """Of the race, its rounds and its bins."""
    score = HeldOutScore(values, None)
    race = SimpleNamespace(groups=groups, asked=SimpleNamespace(seed=0))
    return standard_error(Race._deviations(race, score, np.arange(values.size), 0.5 * values[:, None]))


def of_a_selection(values, groups):
    folds = folds_of_groups(groups, 5).folds
    means = np.array([[values[folds == fold].mean() for fold in range(5)]])
    return SelectionResult("folds", {"alpha": np.ones(1)}, means, np.ones(5), 0, "r2", True).standard_errors[0]


def of_a_contender(values, groups):
    """Of a machine that a sweep may go on from; few rows tell no error."""
    values, groups = np.repeat(values, 8), np.repeat(groups, 8)
    n, together = values.size, np.split(np.arange(values.size), np.flatnonzero(np.diff(groups)) + 1)
    rows = KernelRows(None, np.arange(n), together, np.zeros((n, 1)), 0.0, None, HeldOutScore(values, None), None)
    return RowsToCome(rows, slice(0, n)).gain_and_error(np.zeros((n, 1)), 0.5 * values[:, None])[1]


def of_an_interval(interval):
    return lambda values, groups: np.diff(interval(values, 0.95, groups)).item()


PLACES = {
    "mean": error_of_mean,
    "gain": of_a_gain,
    "trial": of_a_trial,
    "selection": of_a_selection,
    "contender": of_a_contender,
    "interval of a mean": of_an_interval(mean_interval),
    "interval of a share": lambda values, groups: of_an_interval(share_interval)(values > 0, groups),
}


@pytest.mark.parametrize("place", PLACES)
def test_standard_errors_count_groups(place):
    values, groups = np.random.default_rng(1).standard_normal(N_GROUPS), np.arange(N_GROUPS)
    error = PLACES[place](values, groups)
    assert error > 0
    repeated = PLACES[place](np.repeat(values, SIZE), np.repeat(groups, SIZE))
    assert repeated == pytest.approx(error, rel=0.1)
