"""One evaluation of every kind of page."""

from __future__ import annotations

import pytest

from chimap.reports import Evaluation

from .cases import CASES


@pytest.fixture(params=CASES)
def evaluation(request) -> Evaluation:
    return CASES[request.param]()
