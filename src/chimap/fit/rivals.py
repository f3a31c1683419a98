"""Machines of one pass are compared with the machine of a plan on rows that none of them has learned from.

The rivals learn from all rows but those. A sweep over blocks of rows learns them last, and scores them after each block
(``selection.contest``), so that it ends where it brings nothing. The simplest machine that is within a standard error
of the best becomes the model, and learns from all rows. Where a machine of one pass has won the race, and the best
exponential kernel was near, that kernel's sweep is a rival too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap._types import Parameters
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import Source
from chimap.data.source import choose_rows
from chimap.data.views import ChosenRows
from chimap.engines import Progress
from chimap.fit.collecting.kernel import order_of
from chimap.fit.improve import Learn, ModelAndOutputs
from chimap.losses import Square
from chimap.machines.base import Facts, Plan, Winner
from chimap.machines.block_plan import block_seconds, sweep_columns
from chimap.machines.catalogue import for_all_rows, machine_for
from chimap.models.predict import outputs_of_source
from chimap.models.race_result import Candidate, RaceResult, Trial
from chimap.moments import DealtFolds, GivenFolds
from chimap.race.rivals import RIVALS, challenger_of, rivals_of
from chimap.race.rounds import ERRORS_TO_DROP
from chimap.recipe import Recipe
from chimap.recipe.task import Task, scoring_of
from chimap.selection.contest import Contest
from chimap.selection.jackknife import error_between, is_behind, parts_of_rows
from chimap.solvers.base import Standing

FEWEST_ROWS = 5000  # of fewer, the race has seen most
FEWEST_WATCHED, MOST_WATCHED = 1000, 6000
_WATCHED_DIVISOR = 10
# Groups, and rows of each class, among those watched. With 130 positive ones, a linear machine that is .013 of the area
# under the curve behind the kernel on new molecules was within an error of it.
FEWEST_GROUPS, FEWEST_OF_A_CLASS = 10, 200
# Of counted work that a rival may take: seconds, and a share of those of the machine of the plan
MOST_SECONDS, _SHARE = 10.0, 0.3


@dataclass(frozen=True, eq=False)
class Entry:
    """A rival that has learned.

    Parameters
    ----------
    candidate : Candidate
        The rival.
    standing : Standing
        Its standing.
    seconds : float
        The seconds that it took.
    place : int
        Its place by simplicity.
    learned : tuple of ModelAndOutputs and Plan, or None, default=None
        Its model and plan, of a sweep, which comes to the watched rows last; None of what learns once more, from all
        rows.
    """

    candidate: Candidate
    standing: Standing
    seconds: float
    place: int
    learned: tuple[ModelAndOutputs, Plan] | None = None

    def has_features_of(self, recipe: Recipe) -> bool:
        """Whether it differs from the machine of a recipe in its loss at most."""
        own = self.candidate.recipe
        return (own.kernel, own.normalize) == (recipe.kernel, recipe.normalize)


@dataclass(frozen=True, eq=False)
class Rivals:
    """The rivals of the machine of a plan.

    Parameters
    ----------
    plan : Plan
        The plan.
    task, source, groups, learn
        The task, the rows, their groups, and what learns from them.
    candidates : sequence of sequences of Candidate
        The rivals by kind, the simpler ones first.
    contest : Contest or None, default=None
        The rows that are watched; None if there are no rivals, or they have still to learn.
    entries : sequence of Entry, default=()
        The rivals that have learned.
    began : float, default=now
        When the machine of the plan began to learn, by ``time.perf_counter``.
    """

    plan: Plan
    task: Task
    source: Source
    groups: np.ndarray | None
    learn: Learn
    candidates: Sequence[Sequence[Candidate]]
    contest: Contest | None = None
    entries: Sequence[Entry] = ()
    began: float = field(default_factory=time.perf_counter)

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
        """Return the rivals of the machine of a plan; those of one that keeps rows have learned already."""
        meets = plan.machine.meets_rivals(plan.recipe, plan.facts) and source.n_rows >= FEWEST_ROWS
        candidates = rivals_of(result, plan.asked) if meets else []
        rivals = cls(plan, task, source, groups, learn, candidates)
        if not plan.recipe.is_exact or not any(candidates):
            return rivals
        watched = watched_rows(source.n_rows, groups, plan.recipe.seed, source.hidden)
        return rivals.after(rivals.contest_on(watched), [], progress) if rivals.can_tell(watched) else rivals

    def can_tell(self, watched: np.ndarray) -> bool:
        """Whether rows tell machines apart: enough of each class, and enough groups, for an error of their scores."""
        y = self.source.labels()
        assert y is not None
        n_groups = watched.size if self.groups is None else np.unique(self.groups[watched]).size
        if n_groups < FEWEST_GROUPS or watched.size > self.plan.cost.n_rows // 3:
            return False
        if not self.plan.asked.is_classifier or y.ndim > 1:
            return True
        classes, counts = np.unique(y[watched], return_counts=True)
        return bool(classes.size == np.unique(y).size and counts.min() >= FEWEST_OF_A_CLASS)

    def contest_on(self, watched: np.ndarray) -> Contest:
        """Return the contest without rivals on the watched rows."""
        asked, y, source, groups = self.plan.asked, self.source.labels(), self.source, self.groups
        assert y is not None
        score = self.task.codec.score(y, scoring_of(asked.scoring, asked.is_classifier, y), source.weights)
        parts = parts_of_rows(watched.size, None if groups is None else groups[watched], self.plan.recipe.seed)
        columns = sweep_columns(self.plan.recipe, self.plan.facts)
        return Contest(watched, score, parts, (), lambda n: block_seconds(n, 0, columns))

    def after(self, contest: Contest, before: Sequence[Standing], progress: Progress) -> Rivals:
        """Return the rivals that have learned, and the contest of a sweep with them and the standings before them."""
        rivals = replace(self, contest=contest)
        entries = list(rivals.learned(before, progress))
        standings = [*before, *(entry.standing for entry in entries)]
        met = replace(contest, rivals=standings) if standings else None
        return replace(self, contest=met, entries=entries, began=time.perf_counter())

    def learned(self, before: Sequence[Standing], progress: Progress) -> Iterator[Entry]:
        """Yield the rivals that have learned, without those that memory does not hold, that take long, or are hopeless.

        Ridge comes first of each kind. Where it is clearly behind the standings before, or not ahead of ridge of the
        simpler kinds by more than an error, other losses are not tried.
        """
        simpler: list[Standing] = []
        for place, same in enumerate(self.candidates):
            ridge = self.own_ridge(same, before)
            for candidate in same:
                is_ridge, began = candidate.recipe.loss == Square.name, time.perf_counter()
                if not is_ridge and ridge is not None and not _deserves_other_losses(ridge, before, simpler):
                    break
                try:
                    standing = self.standing_of(candidate)
                except (MemoryBudgetError, DataError) as error:  # the machine of the plan may take what a rival refuses
                    progress.note(f"{candidate.name} was not tried: {error}")
                    break
                if standing is None:
                    break
                progress.note(f"{candidate.name}: {self._name} {standing.score:.4f} of rows left out")
                yield Entry(candidate, standing, time.perf_counter() - began, place)
                if is_ridge and (ridge is None or standing.score > ridge.score):
                    ridge = standing
            simpler += [] if ridge is None else [ridge]

    def own_ridge(self, same: Sequence[Candidate], before: Sequence[Standing]) -> Standing | None:
        """Return the standing of the machine of the plan, the one before, where it is ridge on the features of some."""
        settings = [(each.recipe.kernel, each.recipe.normalize) for each in same]
        if not before or self.plan.recipe.loss != Square.name:
            return None
        return before[0] if (self.plan.recipe.kernel, self.plan.recipe.normalize) in settings else None

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
        if plan.cost.seconds > _SHARE * self.plan.cost.seconds + MOST_SECONDS:
            return None
        with catch_warnings():
            simplefilter("ignore", ConvergenceWarning)  # the score shows how well a rival did
            model = self.learn(plan, rows, None if self.groups is None else self.groups[others]).model
        outputs = outputs_of_source(model, ChosenRows(self.source, watched, None))
        return self.contest.standing(outputs, rows.n_rows)

    def plan_of(self, candidate: Candidate, rows: Source, learned: Parameters | None = None) -> Plan:
        """Return the plan of a candidate for some of the rows; ``learned`` are the strength and gamma of its trial."""
        asked = self.plan.asked
        facts = Facts.of(rows, self.task, self.groups, self.plan.facts.request)
        recipe = for_all_rows(candidate.recipe, facts, asked, Winner(learned or {}, False, asked.scoring))
        return machine_for(recipe, facts, asked)

    def decided(
        self, first: ModelAndOutputs, result: RaceResult | None, progress: Progress
    ) -> tuple[ModelAndOutputs, Plan, RaceResult | None]:
        """Return the model of the plan, or that of the simplest rival that is as good, its plan, and the race it leads.

        A rival of one pass then learns from all rows.
        """
        seconds = time.perf_counter() - self.began
        rivals, own = self.with_own(first, progress)
        if own is None or result is None:
            return first, self.plan, result
        entries = [*rivals.entries, *rivals.challengers(result)]
        winner = self.winner(own, entries)
        if winner is None:
            return first, self.plan, result
        progress.note(rivals.told(winner, own, result, seconds))
        try:
            model, plan = winner.learned or self.learned_from_all(winner.candidate)
        except MemoryBudgetError:
            return first, self.plan, result
        return model, plan, rivals.led_by(winner, own, entries, result, seconds)

    def learned_from_all(self, candidate: Candidate) -> tuple[ModelAndOutputs, Plan]:
        """Return the model of a candidate that learns from all rows, and its plan."""
        plan = self.plan_of(candidate, self.source)
        return self.learn(plan, self.source, self.groups), plan

    def with_own(self, first: ModelAndOutputs, progress: Progress) -> tuple[Rivals, Standing | None]:
        """Return the rivals that have learned, and the standing of the machine of the plan; None without any.

        Where it does not keep rows, the rivals learn now, without the rows that it has left out in closed form.
        """
        held_out = first.held_out
        if self.plan.recipe.is_exact or not self.candidates or held_out is None or not held_out.rows.size:
            return self, None if self.contest is None else self.standing_of_left_out(first)
        some = choose_rows(held_out.rows.size, n_watched(self.source.n_rows), self.plan.recipe.seed + 2)
        some = some[np.argsort(held_out.rows[some])]
        if not self.can_tell(held_out.rows[some]):
            return self, None
        contest = self.contest_on(held_out.rows[some])
        own = contest.standing(held_out.outputs[some], first.model.learned.n_rows)
        return self.after(contest, [own], progress), own

    def standing_of_left_out(self, learned: ModelAndOutputs) -> Standing | None:
        """Return the standing of a machine that has left out the watched rows; None if it has left out others."""
        assert self.contest is not None
        found, watched = learned.findings.held_out, self.contest.places
        if found is None or np.isnan(found[watched]).any():
            return None
        return self.contest.standing(found[watched], learned.model.learned.n_rows)

    def challengers(self, result: RaceResult) -> Iterator[Entry]:
        """Yield the sweep of an exponential kernel, if the race has left that near a winner of one pass.

        It ends where it is behind.
        """
        trial = None if self.plan.recipe.is_exact else challenger_of(result)
        if trial is None:
            return
        plan, began = self.plan_of(trial.candidate, self.source, trial.learned), time.perf_counter()
        if "blocks" not in plan.machine.needs:
            return
        try:
            learned = self.learn(plan, self.source, self.groups, self.contest)
        except MemoryBudgetError:
            return
        standing = self.standing_of_left_out(learned)
        if standing is not None:
            yield Entry(trial.candidate, standing, time.perf_counter() - began, len(RIVALS), (learned, plan))

    def winner(self, own: Standing, entries: Sequence[Entry]) -> Entry | None:
        """Return the rival that becomes the model; None if the machine of the plan does.

        Machines that keep rows stay where they are ahead of the simplest by more than an error. Those of one pass stay
        where no rival is ahead of them by more than that; of losses on the same features, the better is taken.
        """
        best = max((entry.standing for entry in entries), key=lambda standing: standing.score, default=own)
        lead = best if best.score > own.score else own
        if not self.plan.recipe.is_exact and not is_behind(own, best, 1.0):
            ahead = (entry for entry in entries if entry.standing.score > own.score)
            return next((entry for entry in ahead if entry.has_features_of(self.plan.recipe)), None)
        firsts: dict[int, Entry] = {}
        for entry in sorted(entries, key=lambda entry: -entry.standing.score):
            firsts.setdefault(entry.place, entry)
        for _, entry in sorted(firsts.items()):
            if lead.score - entry.standing.score <= error_between(entry.standing, lead):
                return entry
        return None

    def told(self, winner: Entry, own: Standing, result: RaceResult, seconds: float) -> str:
        """Return the sentence that says what was chosen, and why."""
        standing, faster = winner.standing, seconds / winner.seconds
        is_better = standing.score - own.score > error_between(standing, own)
        return (
            f"{winner.candidate.name}: {self._name} {standing.score:.4f} of {self.source.n_rows - standing.n_rows:,} "
            f"rows left out, {'better than' if is_better else 'as good as'} {result.winner.name} ({own.score:.4f})"
            + (f", {faster:.0f} times faster" if faster >= 2 else "")
        )

    def led_by(
        self, winner: Entry, own: Standing, entries: Sequence[Entry], result: RaceResult, seconds: float
    ) -> RaceResult:
        """Return the result of the race with a last round, of the machines that were compared on the watched rows."""
        assert self.contest is not None
        place = max(trial.round for trial in result.trials) + 1

        def trial(candidate: Candidate, standing: Standing, seconds: float) -> Trial:
            deviations = tuple(standing.deviations.tolist())
            return Trial(candidate, place, standing.n_rows, standing.score, seconds, deviations=deviations)

        others = [trial(each.candidate, each.standing, each.seconds) for each in entries if each is not winner]
        others = sorted([trial(result.winner, own, seconds), *others], key=lambda each: -each.score)
        ran = [trial(winner.candidate, winner.standing, winner.seconds), *others]
        names = {each.candidate.name for each in ran}
        return replace(
            result,
            trials=[*ran, *(each for each in result.trials if each.candidate.name not in names)],
            history=[*result.history, *ran],
            n_held_out=self.contest.places.size,
            expected=None,
        )


def _deserves_other_losses(ridge: Standing, before: Sequence[Standing], simpler: Sequence[Standing]) -> bool:
    """Whether features are worth other losses, by ridge on them: the simplest within an error of the best wins."""
    is_hopeless = any(is_behind(ridge, each, ERRORS_TO_DROP) for each in before)
    return not is_hopeless and all(is_behind(each, ridge, 1.0) for each in simpler)


def n_watched(n_rows: int) -> int:
    """Return how many rows no rival learns from: a tenth, within bounds.

    >>> [n_watched(n) for n in (5000, 20_000, 10**6)]
    [1000, 2000, 6000]
    """
    return min(max(n_rows // _WATCHED_DIVISOR, FEWEST_WATCHED), MOST_WATCHED)


def watched_rows(n_rows: int, groups: np.ndarray | None, seed: int, hidden: np.ndarray | None = None) -> np.ndarray:
    """Return the ascending places of the rows that no rival learns from: the last of a sweep, of whole groups.

    hidden: the rows (n_rows,) whose labels weights of bins do not know, among which they are; None for all.
    """
    n, folds = n_watched(n_rows), DealtFolds(1, seed) if groups is None else GivenFolds(groups, int(groups.max()) + 1)
    order, _ = order_of(folds, n_rows, seed)
    order = order if hidden is None else order[hidden[order]]
    starts = np.flatnonzero(np.diff(order if groups is None else groups[order], prepend=-1))
    first = min(int(np.searchsorted(starts, order.size - n)), starts.size - 1)  # at least one group
    return np.sort(order[int(starts[first]) :])
