"""Machines of one pass are compared with the machine of a plan on rows that none of them has learned from.

The rivals learn from all rows but those. A sweep over blocks of rows learns them last, and scores them after each block
(``selection.contest``), so that it ends where it brings nothing. The simplest machine that is within a standard error
of the best becomes the model, and learns from all rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chimap._validation import MemoryBudgetError
from chimap.data import Source
from chimap.data.source import choose_rows
from chimap.data.views import ChosenRows
from chimap.engines import Progress
from chimap.fit.improve import Learn, ModelAndOutputs
from chimap.machines.base import Facts, Plan, Winner
from chimap.machines.block_plan import block_seconds
from chimap.machines.catalogue import for_all_rows, machine_for
from chimap.models.predict import outputs_of_source
from chimap.models.race_result import Candidate, RaceResult, Trial
from chimap.race.rivals import rivals_of
from chimap.recipe.task import Task, scoring_of
from chimap.selection.contest import Contest
from chimap.selection.jackknife import parts_of_rows
from chimap.solvers.base import Standing

FEWEST_ROWS = 5000  # of fewer, the race has seen most
FEWEST_WATCHED, MOST_WATCHED = 1000, 6000
_WATCHED_DIVISOR = 10
_SHARE = 0.3  # of the seconds of the machine of the plan that a rival may take


@dataclass(frozen=True, eq=False)
class Entry:
    """A rival that has learned: its candidate, its standing, the seconds that it took, and its place by simplicity."""

    candidate: Candidate
    standing: Standing
    seconds: float
    place: int


@dataclass(frozen=True, eq=False)
class Rivals:
    """The rivals of the machine of a plan.

    Parameters
    ----------
    plan : Plan
        The plan.
    source, groups, learn
        The rows, their groups, and what learns from them.
    contest : Contest or None
        The rows that are watched; None if there are no rivals.
    entries : sequence of Entry
        The rivals.
    began : float
        When the machine of the plan began to learn, by ``time.perf_counter``.
    """

    plan: Plan
    task: Task
    source: Source
    groups: np.ndarray | None
    learn: Learn
    contest: Contest | None
    entries: Sequence[Entry]
    began: float

    @classmethod
    def of(
        cls,
        plan: Plan,
        result: RaceResult | None,
        task: Task,
        source: Source,
        groups: np.ndarray | None,
        learn: Learn,
        progress: Progress,
    ) -> Rivals:
        """Return the rivals of the machine of a plan, which have learned from all rows but those that are watched."""
        candidates = rivals_of(result, plan.asked)
        is_open = plan.machine.meets_rivals(plan.recipe, plan.facts) and source.n_rows >= FEWEST_ROWS
        none = cls(plan, task, source, groups, learn, None, (), time.perf_counter())
        if not is_open or not any(candidates):
            return none
        watched = watched_rows(source.n_rows, groups, plan.recipe.seed)
        y = source.labels()
        assert y is not None
        score = task.codec.score(y, scoring_of(plan.asked.scoring, plan.asked.is_classifier, y), source.weights)
        parts = parts_of_rows(watched.size, None if groups is None else groups[watched], plan.recipe.seed)
        columns = plan.facts.filling.dense_columns
        contest = Contest(watched, score, parts, (), lambda n: block_seconds(n, 0, columns))
        rivals = replace(none, contest=contest)
        entries = list(rivals.learned(candidates, progress))
        contest = replace(contest, rivals=[entry.standing for entry in entries])
        return replace(none, contest=contest if entries else None, entries=entries, began=time.perf_counter())

    def learned(self, candidates: Sequence[Sequence[Candidate]], progress: Progress) -> Iterator[Entry]:
        """Yield the rivals that have learned; those that memory does not hold, or that take long, are left out."""
        for place, same in enumerate(candidates):
            for candidate in same:
                began = time.perf_counter()
                try:
                    standing = self.standing_of(candidate)
                except MemoryBudgetError:
                    continue
                if standing is not None:
                    yield Entry(candidate, standing, time.perf_counter() - began, place)
                    progress.note(f"{candidate.name}: {self._name} {standing.score:.4f} of rows left out")

    @property
    def _name(self) -> str:
        assert self.contest is not None
        return self.contest.score.name

    def standing_of(self, candidate: Candidate) -> Standing | None:
        """Return the standing of a candidate that learns from all rows but those watched; None if it takes long."""
        assert self.contest is not None
        y, watched = self.source.labels(), self.contest.places
        assert y is not None
        others = np.setdiff1d(np.arange(self.source.n_rows), watched, assume_unique=True)
        rows = ChosenRows(self.source, others, y[others])
        plan = self.plan_of(candidate, rows)
        if plan.cost.seconds > _SHARE * self.plan.cost.seconds + 1:
            return None
        model = self.learn(plan, rows, None if self.groups is None else self.groups[others]).model
        outputs = outputs_of_source(model, ChosenRows(self.source, watched, None))
        return self.contest.standing(outputs, rows.n_rows)

    def plan_of(self, candidate: Candidate, rows: Source) -> Plan:
        """Return the plan of a candidate for some of the rows."""
        asked = self.plan.asked
        facts = Facts.of(rows, self.task, self.groups, self.plan.facts.request)
        recipe = for_all_rows(candidate.recipe, facts, asked, Winner({}, False, None))
        return machine_for(recipe, facts, asked)

    def decided(
        self, first: ModelAndOutputs, result: RaceResult | None, progress: Progress
    ) -> tuple[ModelAndOutputs, Plan, RaceResult | None]:
        """Return the model of the plan, or that of the simplest rival that is as good, its plan, and the race it leads.

        A rival then learns from all rows.
        """
        seconds = time.perf_counter() - self.began
        own = self.own_standing(first, result)
        if own is None or result is None:
            return first, self.plan, result
        winner = self.winner(own)
        if winner is None:
            return first, self.plan, result
        progress.note(self.told(winner, own, result, seconds))
        try:
            plan = self.plan_of(winner.candidate, self.source)
            model = self.learn(plan, self.source, self.groups)
        except MemoryBudgetError:
            return first, self.plan, result
        return model, plan, self.led_by(winner, result)

    def own_standing(self, first: ModelAndOutputs, result: RaceResult | None) -> Standing | None:
        """Return the standing of the machine of the plan; one that has not left out the rows learns without them."""
        if self.contest is None or result is None:
            return None
        found, watched = first.findings.held_out, self.contest.places
        if found is None:
            return self.standing_of(result.winner)
        if np.isnan(found[watched]).any():
            return None
        return self.contest.standing(found[watched], first.model.learned.n_rows)

    def winner(self, own: Standing) -> Entry | None:
        """Return the rival that becomes the model; None if the machine of the plan does.

        Machines that keep rows stay where they are ahead of the simplest by more than an error. Those of one pass stay
        where no rival is ahead of them by more than that.
        """
        best = max(self.entries, key=lambda entry: entry.standing.score)
        lead = best.standing if best.standing.score > own.score else own
        keeps_rows = self.plan.recipe.is_exact
        if not keeps_rows and not best.standing.score - own.score > best.standing.error_to(own):
            return None
        firsts: dict[int, Entry] = {}
        for entry in sorted(self.entries, key=lambda entry: -entry.standing.score):
            firsts.setdefault(entry.place, entry)
        for _, entry in sorted(firsts.items()):
            if lead.score - entry.standing.score <= entry.standing.error_to(lead):
                return entry
        return None

    def told(self, winner: Entry, own: Standing, result: RaceResult, seconds: float) -> str:
        """Return the sentence that says what was chosen, and why."""
        standing, faster = winner.standing, seconds / max(winner.seconds, 1e-9)
        is_better = standing.score - own.score > standing.error_to(own)
        return (
            f"{winner.candidate.name}: {self._name} {standing.score:.4f} of {self.source.n_rows - standing.n_rows:,} "
            f"rows left out, {'better than' if is_better else 'as good as'} {result.winner.name} ({own.score:.4f})"
            + (f", {faster:.0f} times faster" if faster >= 2 else "")
        )

    def led_by(self, winner: Entry, result: RaceResult) -> RaceResult:
        """Return the result of the race with a last round of all rows, which a rival has won."""
        standing = winner.standing
        trial = Trial(
            winner.candidate,
            max(trial.round for trial in result.trials) + 1,
            standing.n_rows,
            standing.score,
            winner.seconds,
            deviations=tuple(standing.deviations.tolist()),
        )
        return replace(result, trials=[trial, *result.trials], history=[*result.history, trial], expected=None)


def watched_rows(n_rows: int, groups: np.ndarray | None, seed: int) -> np.ndarray:
    """Return the ascending places of rows that no rival learns from: a tenth, within bounds, of whole groups."""
    n = min(max(n_rows // _WATCHED_DIVISOR, FEWEST_WATCHED), MOST_WATCHED)
    if groups is None:
        return choose_rows(n_rows, n, seed + 2)
    _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed + 2).permutation(sizes.size)
    chosen = order[np.cumsum(sizes[order]) <= max(n, sizes[order[0]])]
    return np.flatnonzero(np.isin(number, chosen))
