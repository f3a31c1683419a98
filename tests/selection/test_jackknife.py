"""The jackknife against formulas where there are some."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from chimap.selection.jackknife import N_PARTS, deviations_of, parts_of_rows, scores_without, standard_error

RNG = np.random.default_rng(0)


def _deviations(score, parts):
    return deviations_of(scores_without(score, parts))


def test_each_row_alone_gives_the_standard_error_of_a_mean():
    right = RNG.random(300) < 0.8
    found = _deviations(lambda rows: float(right[rows].mean()), np.arange(300))
    assert standard_error(found) == pytest.approx(right.std(ddof=1) / np.sqrt(300), rel=1e-9)


def test_parts_give_about_the_same():
    right = RNG.random((40, 2000)) < 0.9
    parts = parts_of_rows(2000, None, 0)
    errors = [standard_error(_deviations(lambda rows, r=r: float(r[rows].mean()), parts)) for r in right]
    assert np.mean(errors) == pytest.approx(np.sqrt(0.9 * 0.1 / 2000), rel=0.1)


def test_a_difference_of_machines_that_are_wrong_on_the_same_rows_is_known_better():
    right = RNG.random(1000) < 0.7
    other = right.copy()
    other[:10] = True
    parts = parts_of_rows(1000, None, 0)
    one, two = (_deviations(lambda rows, r=r: float(r[rows].mean()), parts) for r in (right, other))
    assert standard_error(one - two) < 0.3 * standard_error(one)


def test_groups_are_never_divided_and_widen_the_error():
    groups = np.repeat(np.arange(50), 20)
    parts = parts_of_rows(1000, groups, 0)
    assert all(np.unique(parts[groups == group]).size == 1 for group in range(50))
    assert np.unique(parts).size == N_PARTS
    right = (RNG.random(50) < 0.7)[groups]
    of_groups, of_rows = (
        standard_error(_deviations(lambda rows: float(right[rows].mean()), each))
        for each in (parts, parts_of_rows(1000, None, 0))
    )
    assert of_groups > 2 * of_rows


def test_a_score_that_is_not_defined_without_some_part_does_not_spoil_it():
    y = np.zeros(200, bool)
    y[:3] = True
    scores, parts = RNG.random(200) + 0.3 * y, np.minimum(np.arange(200) // 3, 9)
    found = _deviations(lambda rows: roc_auc_score(y[rows], scores[rows]) if y[rows].any() else float("nan"), parts)
    assert np.isfinite(found).all()
    assert standard_error(found) > 0


def test_one_part_says_nothing():
    assert np.isnan(standard_error(_deviations(lambda rows: 1.0, np.zeros(5, int))))
    assert np.isnan(standard_error(_deviations(lambda rows: float("nan"), np.arange(5))))


def test_without_the_only_part_there_is_no_score():
    assert np.isnan(scores_without(lambda rows: 1.0, np.zeros(5, int))).all()
    assert _deviations(lambda rows: 1.0, np.zeros(5, int)).size == 0
