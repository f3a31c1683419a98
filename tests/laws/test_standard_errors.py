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
from chimap.selection.scoring import HeldOutScore, gain_and_error
from chimap.solvers.blocks import BlockRidge

N_GROUPS, SIZE = 25, 10


def of_a_gain(values, groups):
    """Of landmarks, and of what covariates and counts add to each other."""
    rows, parts = np.arange(values.size), parts_of_rows(values.size, groups, 0)
    return gain_and_error(HeldOutScore(values, None), np.zeros((rows.size, 1)), 0.5 * values[:, None], rows, parts)[1]


def of_a_trial(values, groups):
    """Of the race, its rounds and its bins."""
    score = HeldOutScore(values, None)
    race = SimpleNamespace(groups=groups, asked=SimpleNamespace(seed=0))
    return standard_error(Race._deviations(race, score, np.arange(values.size), 0.5 * values[:, None]))


def of_a_selection(values, groups):
    folds = folds_of_groups(groups, 5).folds
    means = np.array([[values[folds == fold].mean() for fold in range(5)]])
    return SelectionResult("folds", {"alpha": np.ones(1)}, means, np.ones(5), 0, "r2", True).standard_errors[0]


def of_a_falling_strength(values, groups):
    """The least mean of the slopes of a block that is said to be above three errors; few rows never are."""
    values, groups = np.repeat(values, 8), np.repeat(groups, 8)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    sweep = SimpleNamespace(_row_weights=None, _hidden=None, _starts=starts)
    sweep._weights_of_new = lambda block: BlockRidge._weights_of_new(sweep, block)
    sweep._edges_of_parts = lambda block: BlockRidge._edges_of_parts(sweep, block)
    block, ones = slice(0, values.size), np.ones((values.size, 1))
    means = np.linspace(0, 2, 200)
    high = [BlockRidge._is_too_strong(sweep, (values + mean)[:, None], ones, block) for mean in means]
    least = means[np.argmax(high)]
    assert least == pytest.approx(3 * error_of_mean(values, groups), rel=0.2)
    return least


def of_an_interval(interval):
    return lambda values, groups: np.diff(interval(values, 0.95, groups)).item()


PLACES = {
    "mean": error_of_mean,
    "gain": of_a_gain,
    "trial": of_a_trial,
    "selection": of_a_selection,
    "falling strength": of_a_falling_strength,
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
