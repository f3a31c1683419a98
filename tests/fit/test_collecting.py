"""Every kind of evidence has one collector, and every solver names one of these kinds."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap.fit.collecting import COLLECTORS
from chimap.fit.collecting.kernel import order_of
from chimap.machines.base import Request
from chimap.moments import DealtFolds, GivenFolds
from chimap.solvers.base import Needs
from chimap.solvers.catalogue import SOLVERS

from ..histograms import classes


def test_collectors_cover_what_solvers_need():
    assert set(COLLECTORS) == set(get_args(Needs))
    assert {solver.needs for solver in SOLVERS.values()} == set(COLLECTORS)


@pytest.mark.parametrize(
    ("needs", "request_", "message"),
    [
        ("features", Request(True, has_checkpoint=True), "cannot write a checkpoint"),
        ("features", Request(False), "engine='local'"),
        ("kernel", Request(True, has_unlabelled=True), "does not support unlabelled rows"),
        ("blocks", Request(True, has_unlabelled=True), "does not support unlabelled rows"),
    ],
)
def test_a_collector_refuses_what_it_cannot_serve(needs, request_, message):
    with pytest.raises(ValueError, match=message):
        COLLECTORS[needs].check(request_)


def test_collectors_of_sums_serve_every_request():
    for needs in ("moments", "rows"):
        COLLECTORS[needs].check(Request(False, has_checkpoint=True, has_unlabelled=True, has_curve=True))


def test_rows_that_are_left_out_together_are_adjacent():
    fold_of_rows = np.random.default_rng(0).integers(0, 7, 60)
    order, groups = order_of(GivenFolds(fold_of_rows, 8), 60, seed=3)
    assert sorted(order) == list(range(60))
    assert np.array_equal(np.concatenate(groups), np.arange(60))
    assert len(groups) == 7  # the empty fold is none
    for places in groups:
        assert np.unique(fold_of_rows[order[places]]).size == 1
    assert not np.array_equal(fold_of_rows[order], np.sort(fold_of_rows))  # folds come in random order


def test_rows_that_are_left_out_alone_are_in_random_order():
    order, groups = order_of(DealtFolds(1, 0), 60, seed=3)
    assert groups is None
    assert sorted(order) == list(range(60))
    assert not np.array_equal(order, np.arange(60))


def test_whole_groups_are_left_out_in_as_many_folds_as_asked_for():
    X, y = classes(120)
    groups = np.arange(120) // 4
    model = HistogramClassifier("exp-chi2", features="exact", selection=5, random_state=0).fit(X, y, groups=groups)
    alone = HistogramClassifier("exp-chi2", features="exact", random_state=0).fit(X, y, groups=groups)
    assert model.selection_.rule == alone.selection_.rule == "leave-group-out"
    assert not np.isnan(model.held_out_).any()
    assert not np.allclose(model.held_out_, alone.held_out_)  # 24 rows are left out together, not 4
