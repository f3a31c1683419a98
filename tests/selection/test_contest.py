"""When a sweep ends: rivals that it will not leave behind, and a curve that is flat."""

import numpy as np
import pytest

from chimap.selection.contest import SECONDS_WORTH_SAVING, Contest, gain_to
from chimap.selection.jackknife import error_between, parts_of_rows
from chimap.selection.scoring import HeldOutScore
from chimap.solvers.base import Standing

Y = np.random.default_rng(0).normal(size=400)
PLACES = np.arange(0, 400, 2)


def contest(rivals=(), seconds=lambda n: 0.0):
    return Contest(PLACES, HeldOutScore(Y, None), parts_of_rows(PLACES.size, None, 0), rivals, seconds)


def standing(n_rows, score, error=0.01, seed=0):
    """Return a standing whose differences to those of other seeds have errors of about ``error``."""
    deviations = np.random.default_rng(seed).normal(size=10)
    return Standing(n_rows, score, error * deviations / np.linalg.norm(deviations))


def test_a_standing_is_the_score_of_the_watched_rows_with_its_error():
    found = contest().standing((Y[PLACES] + 0.5)[:, None], 7)
    assert found.n_rows == 7
    assert found.score == pytest.approx(1 - 0.25 / Y[PLACES].var())
    assert 0 < np.linalg.norm(found.deviations) < 0.2
    assert error_between(found, found) == 0
    assert np.isnan(error_between(found, Standing(7, 0.5, np.zeros(0))))


@pytest.mark.parametrize(
    ("scores", "ends"),
    [
        ((0.60, 0.61), "ahead"),  # the line adds .01 to .61: never .8
        ((0.60, 0.75), ""),  # it adds .18
        ((0.70, 0.81), ""),  # ahead by less than an error, and it will be by more
        ((0.805, 0.805), "as good"),
        ((0.90, 0.90), ""),  # far ahead, and short
    ],
)
def test_a_sweep_goes_on_while_it_is_ahead_of_its_rivals_or_will_be(scores, ends):
    curve = [standing(n, score, seed=1) for n, score in zip((1000, 2000), scores, strict=True)]
    verdict = contest([standing(8000, 0.7), standing(8000, 0.8)]).verdict(curve, 8000, [])
    assert ends in verdict
    assert bool(ends) == bool(verdict)


def test_machines_of_fewer_rows_tell_the_slope_after_the_first_block():
    first, rival = [standing(1000, 0.6, seed=1)], [standing(8000, 0.8)]
    assert not contest(rival).verdict(first, 8000, [])
    assert not contest(rival).verdict(first, 8000, [(250, 0.2), (1000, 0.6)])
    assert contest(rival).verdict(first, 8000, [(500, 0.59), (1000, 0.6)])


@pytest.mark.parametrize(
    ("scores", "is_flat"), [((0.8, 0.801, 0.802), True), ((0.8, 0.82, 0.84), False), ((0.84, 0.82, 0.8), True)]
)
def test_a_long_sweep_ends_where_its_curve_is_flat(scores, is_flat):
    curve = [standing(n, score, 0.005, seed=n) for n, score in zip((1000, 2000, 4000), scores, strict=True)]
    long = contest(seconds=lambda n: n / 8000 * 3 * SECONDS_WORTH_SAVING)
    assert bool(long.verdict(curve, 8000, [])) == is_flat
    assert not contest(seconds=lambda n: n / 8000).verdict(curve, 8000, [])
    assert not long.verdict(curve[:2], 8000, [])


def test_the_line_is_of_the_last_two_octaves():
    steep = [standing(100, 0.0, seed=3), *(standing(n, 0.8, seed=n) for n in (1000, 2000, 4000))]
    assert contest(seconds=lambda n: n / 10).verdict(steep, 8000, [])


def test_scores_that_are_not_defined_tell_nothing():
    assert gain_to(400, [(25, np.nan), (100, 0.7)]) == np.inf
    curve = [standing(n, np.nan, seed=n) for n in (1000, 2000, 4000)]
    assert not contest([standing(8000, 0.8)], lambda n: n / 10).verdict(curve, 8000, [])
