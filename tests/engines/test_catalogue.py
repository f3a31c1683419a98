"""Engines by name: in Python and in the shell."""

from __future__ import annotations

from contextlib import contextmanager
from typing import get_args

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap.cli.options import Engine
from chimap.data import ArraySource
from chimap.engines import ENGINES, LocalEngine, engine_of

from ..histograms import classes


class Counting(LocalEngine):
    """Counts its passes."""

    n_passes = 0

    def run(self, *arguments):
        self.n_passes += 1
        super().run(*arguments)


def test_a_line_makes_a_name(monkeypatch):
    counting, ended = Counting(), []

    @contextmanager
    def running():
        yield counting
        ended.append(counting)

    monkeypatch.setitem(ENGINES, "counting", running)
    X, y = classes(300)
    model = HistogramClassifier("chi2", alpha=1.0).fit_source(ArraySource(X, y), engine="counting")
    assert counting.n_passes > 0
    assert ended == [counting]
    np.testing.assert_array_equal(model.feature_coef_, HistogramClassifier("chi2", alpha=1.0).fit(X, y).feature_coef_)


def test_an_object_needs_no_line():
    counting = Counting()
    with engine_of(counting) as running:
        assert running is counting


def test_the_shell_has_the_names_of_the_catalogue():
    assert [*get_args(Engine)] == [*ENGINES]


def test_other_names_are_refused_with_those_there_are(monkeypatch):
    monkeypatch.setitem(ENGINES, "moon", ENGINES["local"])
    with pytest.raises(ValueError, match=r"engine must be 'local', 'dask', 'moon', the address of .*; got 'mars'"):
        engine_of("mars")
