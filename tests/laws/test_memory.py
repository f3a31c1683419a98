"""A fit takes no more memory than its budget, and a budget that is too small names one that is enough."""

from __future__ import annotations

import pytest

from chimap import HistogramClassifier
from chimap._validation import MemoryBudgetError

from .estimators import GIVEN, X, Y
from .peaks import SPARE, TAKING_MEMORY, peak_of_fit
from .sources import cases, keeps_every_row


def is_measured(model):
    """Whether the settings are not refused, and take memory of their own: losses by passes differ by a formula."""
    if keeps_every_row(model):
        return model.loss in ("square", "squared_hinge")
    return model.loss not in ("squared_hinge", "smooth_hinge")


@pytest.mark.slow
@pytest.mark.parametrize("name", cases({name: model for name, model in TAKING_MEMORY.items() if is_measured(model)}))
def test_a_fit_stays_within_the_least_budget_that_it_names(name):
    budget, peak = peak_of_fit(name)
    assert peak <= 1.05 * budget + SPARE


def test_tables_stay_within_their_budget():
    model = HistogramClassifier("chi2", **GIVEN).fit(X, Y)
    needed = model.compile().tables_.nbytes
    assert model.compile(memory=needed).tables_.nbytes == needed
    with pytest.raises(MemoryBudgetError, match=r"the tables take .* allowed\. Raise memory, or the tolerance"):
        model.compile(memory=needed - 1)
