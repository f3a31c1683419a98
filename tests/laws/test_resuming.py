"""A fit that is interrupted anywhere and resumed from its checkpoint gives the model of one that is not."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._files import read_header
from chimap._progress import Progress
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.fit.checkpoint import Checkpoint

from ..chunks import short_chunks  # noqa: F401, a fixture
from .estimators import ESTIMATORS, assert_same_answers, outputs
from .sources import (
    FROM_SOURCES,
    ROWS,
    covered,
    keeps_every_row,
    learns_by_blocks,
    made,
    passes_again,
    rounding_of,
    source_for,
    truths,
)

pytestmark = pytest.mark.usefixtures("short_chunks")
EACH_CHUNK = 1e-9  # seconds between two versions of a checkpoint


class Interrupted(Exception):
    pass


class InterruptedBy(Progress):
    """Interrupts the fit at a step of the pass that learns; a pass that is resumed has its first rows as a step."""

    def __init__(self, step: int):
        self.left, self.is_learning = step, False

    def stage(self, name, total, unit="rows"):
        self.is_learning = name in ("learning", "blocks")

    def advance(self, amount=1):
        if self.is_learning and amount:
            self.left -= 1
            if self.left == 0:
                raise Interrupted


class BreakingOff(ArraySource):
    """Rows that cannot be read any more after some chunks."""

    readable = 10**9

    def chunks(self, chunk_rows):
        return self._breaking(super().chunks(chunk_rows))

    def chunks_from(self, *place):
        return self._breaking(super().chunks_from(*place))

    def _breaking(self, chunks):
        for chunk in chunks:
            if self.readable == 0:
                raise Interrupted
            self.readable -= 1
            yield chunk


def is_one_step(model):
    """Whether it is solved on one kernel matrix, so that there is no state before the model."""
    return keeps_every_row(model) and not learns_by_blocks(model)


def refusal_of(model):
    """What an estimator says that cannot write checkpoints, as a pattern; None if it can."""
    if keeps_every_row(model):
        is_solved = getattr(model, "loss", "square") in ("square", "squared_hinge", "poisson", "quantile")
        return None if is_solved else "features='exact' solves loss='square', loss='squared_hinge'"
    hinge = "loss='hinge' keeps the features of all rows in memory and cannot write a checkpoint"
    return hinge if model.loss == "hinge" else None


def fitted(name, path, n_chunks=None, progress=None):
    """Fit, from the checkpoint at the path if there is one, on rows of which so many chunks can be read."""
    model = made(name)
    source = BreakingOff(ROWS, truths(model))
    source.readable = n_chunks or source.readable
    return model.fit_source(source, progress, checkpoint=Checkpoint(path, EACH_CHUNK))


RESUMED = {name: model for name, model in FROM_SOURCES.items() if refusal_of(model) is None and not is_one_step(model)}


def mark_of(name):
    """The settings of the estimators themselves are tested at once, and others where they show more than those do."""
    if name in ESTIMATORS:
        return ()
    return pytest.mark.slow if name in covered(RESUMED) else pytest.mark.thorough


@pytest.mark.parametrize("name", [pytest.param(name, marks=mark_of(name)) for name in RESUMED])
def test_a_resumed_fit_is_an_uninterrupted_one(name, tmp_path):
    path, whole = tmp_path / "resumed", fitted(name, tmp_path / "whole")
    # between two blocks, all rows have been read
    ways = [(2, None), (None, InterruptedBy(3)), (2, None)]
    for n_chunks, progress in [*ways, (None, InterruptedBy(2))] if learns_by_blocks(whole) else ways:
        with pytest.raises(Interrupted):
            fitted(name, path, n_chunks, progress)
    n_added = read_header(path)["next_row"]
    assert 0 < n_added < len(ROWS) or passes_again(whole)  # of which the last chunk was read, in a later pass
    again = fitted(name, path)
    assert_same_answers(again, whole)
    assert again.alpha_ == whole.alpha_
    rounding, plain = rounding_of(whole), made(name)
    plain.fit_source(source_for(plain))
    np.testing.assert_allclose(outputs(whole, ROWS), outputs(plain, ROWS), rtol=rounding, atol=rounding)


@pytest.mark.parametrize("name", [name for name, model in FROM_SOURCES.items() if learns_by_blocks(model)])
def test_a_resumed_sweep_shows_what_an_uninterrupted_one_shows(name, tmp_path):
    whole = made(name)
    whole.fit_source(source_for(whole))
    with pytest.raises(Interrupted):
        fitted(name, tmp_path / "c", None, InterruptedBy(2))
    n_learned = read_header(tmp_path / "c")["next_row"]
    again = fitted(name, tmp_path / "c")
    assert 0 < n_learned < again.n_rows_ == len(ROWS)
    assert_same_answers(again, whole)
    np.testing.assert_array_equal(again.held_out_, whole.held_out_)
    assert again.learning_curve_.scores.tolist() == whole.learning_curve_.scores.tolist()
    assert again.selection_.table() == whole.selection_.table()


@pytest.mark.parametrize("name", ["rows in blocks", "rows in blocks, no map"])
def test_a_sweep_over_other_rows_is_refused(name, tmp_path):
    with pytest.raises(Interrupted):
        fitted(name, tmp_path / "c", None, InterruptedBy(2))
    model, rows = made(name), ROWS.copy()
    rows[700, 3] += 1  # none of those that tell sources apart
    with pytest.raises(DataError, match="array: the rows have changed since the checkpoint was written"):
        model.fit_source(ArraySource(rows, truths(model)), checkpoint=Checkpoint(tmp_path / "c"))


def test_ctrl_c_leaves_a_sweep_to_its_checkpoint(tmp_path):
    class CtrlC(InterruptedBy):
        def advance(self, amount=1):
            try:
                super().advance(amount)
            except Interrupted:
                raise KeyboardInterrupt from None

    short = made("rows in blocks").fit_source(source_for(made("rows in blocks")), CtrlC(2))
    assert 0 < short.n_rows_ < len(ROWS)  # without a checkpoint, the model of the rows so far
    with pytest.raises(KeyboardInterrupt):
        fitted("rows in blocks", tmp_path / "c", None, CtrlC(2))
    assert fitted("rows in blocks", tmp_path / "c").n_rows_ == len(ROWS)


@pytest.mark.parametrize(
    "name", [name for name, model in FROM_SOURCES.items() if is_one_step(model) and refusal_of(model) is None]
)
def test_what_is_solved_in_one_step_begins_anew(name, tmp_path):
    with pytest.raises(Interrupted):
        fitted(name, tmp_path / "c", 2)
    assert not (tmp_path / "c").exists()
    plain = made(name)
    assert_same_answers(fitted(name, tmp_path / "c"), plain.fit_source(source_for(plain)))


@pytest.mark.parametrize("name", [name for name, model in FROM_SOURCES.items() if refusal_of(model)])
def test_what_keeps_all_rows_refuses_a_checkpoint(name, tmp_path):
    with pytest.raises(ValueError, match=refusal_of(made(name))):
        fitted(name, tmp_path / "c")
    assert not (tmp_path / "c").exists()
