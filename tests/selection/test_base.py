"""The one shape of what a selection comes to."""

from __future__ import annotations

import numpy as np
import pytest

from chimap.selection.base import SelectionResult, fold_count


def result(chosen=1, **changes):
    settings = {"n_components": np.array([5, 5, 2, 2]), "alpha": np.array([1.0, 0.1, 0.1, 1.0])}
    scores = np.array([[3.0, 5.0], [2.0, 2.0], [4.0, 4.0], [9.0, 1.0]])
    return SelectionResult("folds", settings, scores, np.array([30, 10]), chosen, baseline=8.0, **changes)


def test_means_weigh_the_folds_by_their_rows():
    np.testing.assert_allclose(result().means, [3.5, 2.0, 4.0, 7.0])
    np.testing.assert_allclose(result().r2, 1 - result().means / 8)
    np.testing.assert_allclose(result().standard_errors, [1.0, 0.0, 0.0, 4.0])
    one_fold = SelectionResult("holdout", {"alpha": np.ones(1)}, np.ones((1, 1)), np.ones(1), 0, measure="loss")
    assert one_fold.standard_errors.tolist() == [0]
    assert np.isnan(one_fold.r2).all()


def test_table_has_one_row_a_candidate():
    table = result().table()
    assert [row["chosen"] for row in table] == [False, True, False, False]
    assert table[3] == {"n_components": 2, "alpha": 1.0, "mean": 7.0, "standard_error": 4.0, "chosen": False}
    assert result().best == {"n_components": 5, "alpha": 0.1}


def test_grid_finds_every_pair_whatever_its_order():
    rows, columns, places = result().grid("n_components", "alpha")
    assert rows.tolist() == [2, 5]
    assert columns.tolist() == [0.1, 1.0]
    np.testing.assert_allclose(result().means[places], [[4.0, 7.0], [2.0, 3.5]])


@pytest.mark.parametrize(("greater", "best"), [(False, 0.1), (True, 1.0)])
def test_some_candidates_choose_anew(greater, best):
    some = result(greater_is_better=greater).of(np.array([2, 3]))
    assert some.best == {"n_components": 2, "alpha": best}


def test_of_equals_the_one_that_was_chosen_stays():
    settings = {"alpha": np.array([0.1, 1.0, 10.0])}
    equal = SelectionResult("folds", settings, np.full((3, 2), 0.9), np.array([5, 5]), 2, greater_is_better=True)
    assert equal.of(np.array([1, 2])).best == {"alpha": 10.0}
    assert equal.of(np.array([0, 1])).best == {"alpha": 0.1}


def test_numbers_of_folds():
    assert (fold_count("auto"), fold_count(3), fold_count(np.int64(1), least=1)) == (5, 3, 1)
    for wrong in ("most", "gcv", 0, 1, 2.5, None):
        with pytest.raises(ValueError, match="selection"):
            fold_count(wrong)
