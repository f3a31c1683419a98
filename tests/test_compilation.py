"""The first call's compilation is seen, and its time is a stage of its own."""

from __future__ import annotations

import time

import numba as nb
import numpy as np

from chimap._progress import LineProgress, compilation
from chimap.engines import Progress, Stopwatch


class Notes(Progress):
    def __init__(self):
        self.told = []

    def note(self, text, *, matters=False):
        self.told.append(text)


def fresh_loops():
    @nb.njit
    def inner(x):
        return x + 1

    @nb.njit
    def outer(x):
        return inner(x) * 2

    return outer


def test_compiling_is_told_once_and_timed():
    clock, notes, outer = Stopwatch(), Notes(), fresh_loops()
    with compilation(clock, notes), clock("work"):
        began = time.perf_counter()
        assert outer(1) == 4
        assert outer(1.0) == 4.0  # for another type: compiled again
        took = time.perf_counter() - began
    assert len(notes.told) == 1
    assert "compiling" in notes.told[0]
    assert 0 < clock.seconds["compile"] <= took
    assert clock.seconds["compile"] + clock.seconds["work"] >= took


def test_what_is_compiled_already_says_nothing():
    clock, notes, outer = Stopwatch(), Notes(), fresh_loops()
    outer(1)
    with compilation(clock, notes):
        outer(1)
    outer(np.float32(1))  # outside the block nobody listens
    assert notes.told == []
    assert clock.seconds == {}


def test_lines_of_a_log(capsys):
    with compilation(Stopwatch(), LineProgress()):
        fresh_loops()(1)
    assert capsys.readouterr().err.startswith("compiling loops")


def test_stages_within_stages_are_counted_once(monkeypatch):
    ticks = iter([0.0, 1.0, 3.0, 7.0])  # outer begins, inner begins, inner ends, outer ends
    monkeypatch.setattr("chimap._progress.time.perf_counter", lambda: next(ticks))
    clock = Stopwatch()
    with clock("outer"), clock("inner"):
        clock.put("deeper", 0.5)
    assert list(clock.seconds.items()) == [("outer", 5.0), ("inner", 1.5), ("deeper", 0.5)]
