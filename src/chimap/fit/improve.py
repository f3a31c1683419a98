"""A fit goes on to a larger machine while that predicts rows better that neither has seen.

Two machines grow. Where the number of landmarks is left to the fit, it doubles: how many are worth their time depends
on the rows. Twice the landmarks take four times the work, so that all fits before the last take a third of its time.
Where a machine in blocks took in some of the rows only, landmarks for all rows are its rival: they learn from all rows
but the latest of the sweep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from chimap._validation import MemoryBudgetError
from chimap.data import Source
from chimap.data.views import ChosenRows
from chimap.engines import Progress
from chimap.machines.base import Facts, Plan
from chimap.machines.catalogue import machine_for
from chimap.models.model import Model
from chimap.models.predict import outputs_of_source
from chimap.recipe.task import Task, scoring_of
from chimap.selection.jackknife import parts_of_rows
from chimap.selection.leave_one_out import FEW_ROWS
from chimap.solvers.base import WatchedRows
from chimap.solvers.findings import Findings
from chimap.solvers.held_out import HeldOut


@dataclass(frozen=True)
class ModelAndOutputs:
    """A model, its outputs for rows that it has not seen, None if there are none, and what its solver has found.

    Rows are numbered as in the source that it has learned from.
    """

    model: Model
    held_out: HeldOut | None
    findings: Findings


class Learn(Protocol):
    """Learns from rows, in groups if these are given, as a plan says; a sweep ends by the rows that it watches."""

    def __call__(
        self, plan: Plan, source: Source, groups: np.ndarray | None, watch: WatchedRows | None = None
    ) -> ModelAndOutputs: ...


def improved(
    best: ModelAndOutputs,
    plan: Plan,
    task: Task,
    source: Source,
    groups: np.ndarray | None,
    learn: Learn,
    progress: Progress,
) -> Model:
    """Return the model of a plan, or that of the last larger machine that beats the one before by more than the error.

    A machine that memory does not hold is none.
    """
    y, asked = source.labels(), plan.asked
    assert y is not None
    while True:
        before = best
        try:
            rival = rival_of(best, plan, task, source, groups)
            if rival is None:
                return before.model
            best, plan = learn(rival.plan, rival.source, None if groups is None else groups[rival.learned]), rival.plan
        except MemoryBudgetError:
            return before.model
        outputs, places = rival.outputs_of(best), rival.places
        if outputs is None:
            return before.model
        score = task.codec.score(y, scoring_of(asked.scoring, asked.is_classifier, y), source.weights)
        parts = parts_of_rows(places.size, None if groups is None else groups[places], plan.recipe.seed)
        gain, error = score.gain_and_error(rival.outputs, outputs, places, parts)
        progress.note(
            f"{score.name} of rows left out: {score(rival.outputs, places):.4f} by {before.model.features.describe()} "
            f"for {before.model.learned.n_rows:,} rows, {gain:+.4f} (standard error {error:.4f}) by "
            f"{best.model.features.describe()} for {best.model.learned.n_rows:,}"
        )
        if not gain > error:
            return before.model


@dataclass(frozen=True, eq=False)
class Rival:
    """A larger machine, and the rows that it is compared on.

    plan: of the machine. source: the rows that it learns from. learned: their places among all. places: of the rows of
    the comparison. outputs: of the machine before, for these. left_out: these rows, where the machine does not learn
    from them; None where it leaves them out by itself.
    """

    plan: Plan
    source: Source
    learned: np.ndarray
    places: np.ndarray
    outputs: np.ndarray
    left_out: Source | None

    def outputs_of(self, learned: ModelAndOutputs) -> np.ndarray | None:
        """Return the outputs of what was learned for the rows of the comparison; None if it has left out others."""
        if self.left_out is not None:
            return outputs_of_source(learned.model, self.left_out)
        is_same = learned.held_out is not None and np.array_equal(learned.held_out.rows, self.places)
        return learned.held_out.outputs if is_same and learned.held_out is not None else None


def rival_of(best: ModelAndOutputs, plan: Plan, task: Task, source: Source, groups: np.ndarray | None) -> Rival | None:
    """Return the larger machine than that of a plan; None if there is none, or no rows to compare it on.

    Raise MemoryBudgetError if memory does not hold it.
    """
    model, held_out, others = best.model, best.held_out, np.arange(source.n_rows)
    rows, facts, latest = source, plan.facts, latest_unlearned(best.findings)
    if latest.size:
        y = source.labels()
        assert y is not None
        others = np.setdiff1d(np.arange(source.n_rows), latest)
        rows = ChosenRows(source, others, y[others])
        facts = Facts.of(rows, task, groups, plan.facts.request)
    recipe = plan.machine.larger(plan, facts, model.features._n_features_out, model.gamma)
    if recipe is None:
        return None
    if latest.size:
        seen = best.findings.held_out
        assert seen is not None
        return Rival(machine_for(recipe, facts), rows, others, latest, seen[latest], ChosenRows(source, latest, None))
    larger = replace(plan, recipe=recipe)
    return None if held_out is None else Rival(larger, rows, others, held_out.rows, held_out.outputs, None)


def latest_unlearned(found: Findings) -> np.ndarray:
    """Return the places of the latest rows of a sweep that let out others; none of a machine that learned all rows."""
    if not found.n_unlearned or found.row_numbers is None or found.held_out is None:
        return np.zeros(0, dtype=np.intp)
    latest = found.row_numbers[-FEW_ROWS:]
    return np.sort(latest[~np.isnan(found.held_out[latest]).all(axis=1)])
