"""Weights of bins that a candidate of a race learns, kept if held-out rows show that they help."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from chimap import _arrays
from chimap._memory import budget_for, whole_mebibytes
from chimap._messages import Message
from chimap._validation import DataError, MemoryBudgetError, check_blocks
from chimap.data import ArraySource, Source
from chimap.engines import Progress
from chimap.features.screened import screened_weights
from chimap.features.weighted import ROUNDS as WEIGHT_ROUNDS
from chimap.features.weighted import learn_weights, learned_weights
from chimap.models.race_result import SAME, Candidate, RaceResult, Trial
from chimap.normalizations import Roots
from chimap.race.candidates import named_candidate
from chimap.race.machines import Split
from chimap.race.rounds import ERRORS_TO_DROP
from chimap.race.rows import ROUNDS
from chimap.race.runner import FEWEST_SAMPLED, RACE_SHARE, Fit, Race, mean_of
from chimap.race.shared import SharedMachines
from chimap.race.trials import Outcome
from chimap.recipe import Recipe
from chimap.recipe.preparation import rows_in
from chimap.recipe.task import Task
from chimap.selection.jackknife import error_between, is_behind

_ERRORS = 2  # a gain must exceed this number of standard errors
_GRADIENTS = 1000  # number of rows whose gradients are averaged, if memory allows
# float64 arrays of a mapped row, and of its features, that gradients take
_MAPPED_COPIES, _VALUE_COPIES = 4, 3
_COPIES = 4  # of the sample: as taken, converted, scaled and weighted
_SCREENED_AGAIN = 2  # times the rows of the sample: with as many others, all of the sample may be learned from
_FEWER = 0.9  # largest factor on the rows of a sample whose machines do not fit in the memory budget


Weighing = Callable[[np.ndarray], tuple[Outcome, Callable[[], np.ndarray]]]
"""Fits with weights of the bins (splits, bins); returns the outcome, and a function that returns the next weights."""


@dataclass(frozen=True)
class LearnedBins:
    """The result of learning weights of bins.

    trial: that of the best round. weights: (bins,) with mean 1, or None if equal weights are as good. is_promising:
    whether the score exceeds that of equal weights by more than its error, so that more rows might show that weights
    help. is_screened: whether the weights are those of the screening. gain: what the best round scores above equal
    weights. places: of the rows whose labels the weights know.
    """

    trial: Trial
    weights: np.ndarray | None
    is_promising: bool
    is_screened: bool = False
    gain: float = 0.0
    places: np.ndarray | None = None

    def adopted_by(self, recipe: Recipe) -> Recipe:
        """Return a recipe with the weights, which says whose labels they know."""
        if self.weights is None:
            return recipe.with_raced(bin_weights=None)
        return recipe.with_raced(bin_weights=self.weights, weighed_rows=self.places)


def learn_bins(
    weigh: Weighing,
    equal: np.ndarray,
    screened: np.ndarray | None,
    first: Trial,
    most_rounds: int = WEIGHT_ROUNDS,
    is_few: bool = False,
) -> LearnedBins:
    """Learn weights for a candidate: each split from its own rows, so that no row is both learned from and scored.

    weigh: fits the candidate with weights. equal: ones (splits, bins). screened: weights of the same shape to begin
    with if they are better; see ``chimap.features.screened``. The gradients of a model that noise misleads say little
    about the bins. first: the last trial of the candidate; the trial of the weights has the same round and rows.
    most_rounds: of gradients; with 0, only the weights of a screening are tried.

    The weights of the best round are kept if its score exceeds that of equal weights by more than two standard errors
    of the difference. The jackknife gives this error, since both are scored on the same rows. One error is not enough
    for the best of three rounds, each with its own strength and width: it let in weights that cost Fashion-MNIST .2
    points. One error is enough for the weights of a screening, because there is only one of these, and the share of
    uninformative bins is evidence for them too; where rows are few (is_few), that share is uncertain itself.

    Rounds stop after one that gains less than its error.

    The weights that are kept are those of the first split: the rows that it has not learned from have to choose the
    strength of all rows, and to calibrate, and the mean over the splits would know the labels of all.
    """
    began, outcomes = time.perf_counter(), list[Outcome]()

    def fit_and_score(weights: np.ndarray) -> tuple[float, Callable[[], np.ndarray]]:
        outcome, following = weigh(weights)
        outcomes.append(outcome)
        return outcome.score, following

    def error_of_gain(later: int, before: int) -> float:
        error = error_between(outcomes[later], outcomes[before])
        return 0.0 if np.isnan(error) else error

    rounds = learn_weights(fit_and_score, equal, most_rounds, error_of_gain, screened)
    best = max(range(1, len(rounds)), key=lambda i: rounds[i].score)
    is_screened = screened is not None and best == 1
    unweighed, learned = outcomes[0], outcomes[best]
    weights = rounds[best].weights[0]
    recipe = first.candidate.recipe.with_raced(bin_weights="learn")
    candidate = Candidate(f"{first.candidate.name}, learned bins", recipe)
    trial = learned.trial(candidate, first.round, first.n_rows, time.perf_counter() - began)
    n_errors = 1 if is_screened and not is_few else _ERRORS
    kept_weights = weights / weights.mean() if _is_better(learned, unweighed, n_errors) else None
    is_promising = _is_better(learned, unweighed, 1)
    return LearnedBins(trial, kept_weights, is_promising, is_screened, learned.score - unweighed.score)


def _is_better(outcome: Outcome, equal: Outcome, n_errors: float) -> bool:
    """Return whether a score exceeds another by more than so many standard errors of the difference."""
    gain = outcome.score - equal.score
    if not gain > SAME:
        return False
    return not gain <= n_errors * error_between(outcome, equal)  # an unknown error (NaN) lets the score decide


@dataclass(frozen=True)
class WeighedBins:
    """Fits of a candidate of a race with weighted bins."""

    race: Race
    candidate: Candidate

    @property
    def recipe(self) -> Recipe:
        """The recipe of the candidate."""
        return self.candidate.recipe

    @property
    def footprint(self) -> int:
        """Bytes of learning weights besides the sample; 0 for fits, which plan for themselves."""
        if self._machines is None:
            return 0
        return self._machines.weighing_bytes(self.race.splits_at(max(self.race.splits_of)))

    @property
    def beside_sample(self) -> Recipe:
        """The recipe with the memory budget that the sample leaves to its fits."""
        budget = max(1, self.recipe.budget - _arrays.stored_bytes(self.race.rows))
        return replace(self.recipe, memory=budget)

    @property
    def _machines(self) -> SharedMachines | None:
        """The machines that share their products if they take the candidate, else None."""
        return self.race.machines_of(self.recipe)

    @property
    def _rounds(self) -> int:
        """The most rounds of gradients: none for machines that have no gradients."""
        return WEIGHT_ROUNDS if self._machines is None or self._machines.weighs(self.recipe) else 0

    def learn(self, first: Trial, progress: Progress) -> LearnedBins:
        """Learn weights of bins for the candidate of a trial, with the rows of the last round.

        If rows are many, weights are first learned with the rows of the round before: weights whose gain there is no
        larger than its standard error are not worth another round. On eight sets, with and without noise bins, this
        skips none that would have been kept. Weights of a screening that are kept are computed again from all rows of
        the sample, where others are left that may be scored.

        Weights of few rows are learned from parts of the rows and scored on the others, while the race has left out
        each row from all. Their trial has the score of the race plus the gain on the parts.
        """
        if self.recipe.normalizes_by_labels:
            raise DataError(
                Message(
                    "{bin_weights='learn'} and {normalize=} both weigh bins by their labels: leave one of them out.",
                    self.recipe.normalize,
                )
            )
        progress.stage("bins", None, "fits")
        race, rounds = self.race, sorted(self.race.splits_of)
        is_dear = race.shared is not None and len(rounds) > 1 and rounds[-1] > ROUNDS[1]
        for place in (len(rounds) - 2, len(rounds) - 1) if is_dear else (len(rounds) - 1,):
            n_rows = rounds[place]

            def weigh(weights: np.ndarray, n_rows: int = n_rows) -> tuple[Outcome, Callable[[], np.ndarray]]:
                progress.advance()
                return self.weigh(weights, n_rows)

            trial = replace(first, round=first.round - (len(rounds) - 1 - place), n_rows=n_rows)
            equal = np.ones((race.splits_of[n_rows], race.rows.shape[1]))
            learned = learn_bins(weigh, equal, self.screened(n_rows), trial, self._rounds, race.leaves_out)
            if not learned.is_promising:
                break
        if race.leaves_out:
            score = min(first.score + learned.gain, max(1.0, first.score))  # gains of parts can add up to too much
            learned = replace(learned, trial=replace(learned.trial, score=score, deviations=first.deviations))
        known = race.splits_at(n_rows)[0][0]
        if learned.weights is not None and learned.is_screened and race.n_rows >= _SCREENED_AGAIN * race.places.size:
            everything = self._screened(np.arange(race.places.size))
            if everything is not None:
                known, learned = np.arange(race.places.size), replace(learned, weights=everything)
        return replace(learned, places=np.sort(race.places[known]))

    def screened(self, n_rows: int) -> np.ndarray | None:
        """Return weights (splits, bins) from what each bin alone says about the labels of a split.

        None if nearly all bins are informative, and where the labels weigh them already.
        """
        if self.recipe.normalizes_by_labels:
            return None
        split_weights = [self._screened(train) for train, _ in self.race.splits_at(n_rows)]
        screenings = [weights for weights in split_weights if weights is not None]
        return np.vstack(screenings) if len(screenings) == len(split_weights) else None

    def _screened(self, chosen: np.ndarray) -> np.ndarray | None:
        """Return the weights of the screening on the rows ``chosen``, or None."""
        blocks, normalization = self._blocks, self.recipe.normalization
        columns = blocks or [np.arange(self.race.rows.shape[1])]
        rows = rows_in(_arrays.take_rows(self.race.rows, chosen), np.dtype(np.float32), chosen, "the sample")
        if normalization is not None:
            rows = normalization.fitted(ArraySource(rows))(rows, columns)
        targets = self.race.codec.encode(self.race.y)
        return screened_weights(Roots()(rows, columns), np.asarray(targets[chosen], dtype=np.float64), blocks)

    @property
    def _blocks(self) -> list[np.ndarray] | None:
        """Columns of each block, whose bins share a weight; None without blocks."""
        blocks = self.recipe.blocks_in(self.race.column_names)
        return None if blocks is None else check_blocks(blocks, self.race.rows.shape[1])[1]

    def weigh(self, weights: np.ndarray, n_rows: int) -> tuple[Outcome, Callable[[], np.ndarray]]:
        """Fit with the rows of a round, each split separately; see ``Weighing``."""
        weigh_split = self._weighed_fit if self._machines is None else self._weighed_trial
        fits = [
            weigh_split(bin_weights, split)
            for split, bin_weights in zip(self.race.splits_at(n_rows), weights, strict=True)
        ]
        return mean_of([outcome for outcome, _ in fits]), lambda: np.vstack([next() for _, next in fits])

    def _weighed_trial(self, weights: np.ndarray, split: Split) -> tuple[Outcome, Callable[[], np.ndarray]]:
        assert self._machines is not None
        race, leader = self.race, self.race.leaders.get(split[0].size)
        fitted = self._machines.best(
            self.recipe.with_raced(bin_weights=weights),
            [split],
            race.best.get(self.candidate.name),
            lambda score, outputs: len(race.splits) > 1 or leader is None or score > leader.score + SAME,
        )
        return race.outcome_of(fitted, [split]), lambda: fitted.learned_weights(weights, race.asked.seed)

    def _weighed_fit(self, weights: np.ndarray, split: Split) -> tuple[Outcome, Callable[[], np.ndarray]]:
        recipe = self.beside_sample
        fitted = self.race.fitted(recipe.with_raced(bin_weights=weights), split[0])

        def following() -> np.ndarray:
            model = fitted.mapped()
            if model is None:
                raise DataError(
                    Message(
                        "{bin_weights='learn'} needs gradients, and {} have none. Give weights, or name an exponential "
                        "kernel.",
                        fitted.features.describe(),
                    )
                )
            row_bytes = 8 * (_MAPPED_COPIES * model.bins.size + _VALUE_COPIES * fitted.coef.shape[0])
            n_rows = min(_GRADIENTS, max(1, recipe.room // row_bytes))
            rows = fitted.preparation(_arrays.take_rows(self.race.rows, split[0][:n_rows]), 0, "the sample")
            return learned_weights(model, rows, weights, self._blocks)

        return self.race.scored(fitted, split[1]), following


# --- which candidates go on to weights


def promoted(race: Race, result: RaceResult, n_bins: int) -> Iterator[Trial]:
    """Yield the trials whose candidates go on to weights of their bins, while there is time."""
    began = time.perf_counter()
    if not isinstance(race.asked.bin_weights, str) or n_bins < 2:
        return
    leader = _leader(race, result)
    choices: tuple[Callable[[], Trial | None], ...] = (
        lambda: leader,
        lambda: None if leader is None else _second(race, result, leader),
        lambda: _by_margins(race, result),
    )
    for choose in choices:
        if is_in_time(race.asked, result.seconds + time.perf_counter() - began):
            trial = choose()
            if trial is not None:
                yield trial


def is_in_time(asked: Recipe, seconds: float) -> bool:
    """Whether a race of so many seconds is within its share of the time limit."""
    return asked.time_limit is None or seconds < RACE_SHARE * asked.time_limit


def _leader(race: Race, result: RaceResult) -> Trial | None:
    """Return the best trial by ridge of the last round, or None if it is far behind the winner.

    Of few rows it is the winner or none: what weights gain there has to be more than their error to be believed, and
    does not make up for the winner's lead as well.
    """
    leader = next((t for t in _ridge_trials(result) if t.round == result.trials[0].round), None)
    if race.leaves_out and leader is not result.trials[0]:
        return None
    return None if leader is None or is_behind(leader, result.trials[0], ERRORS_TO_DROP) else leader


def _second(race: Race, result: RaceResult, leader: Trial) -> Trial | None:
    """Return the best exponential candidate as a trial with the rows of the leader, or None.

    It must differ from the leader, and some bins must be uninformative. Such bins harm exponential kernels most: a
    linear machine has a weight for every bin.
    """
    if race.shared is None or race.leaves_out or _has_gamma(leader):
        return None
    second = next((t for t in _ridge_trials(result) if _has_gamma(t)), None)
    if second is None or WeighedBins(race, second.candidate).screened(leader.n_rows) is None:
        return None
    return replace(second, round=leader.round, n_rows=leader.n_rows)


def _by_margins(race: Race, result: RaceResult) -> Trial | None:
    """Return the winner if it is a machine with margins and some bins are uninformative, or None.

    Margins have no gradients here: of their bins, the uninformative ones are left out.
    """
    winner = result.trials[0]
    recipe = winner.candidate.recipe
    if race.leaves_out or race.machines_of(recipe) is None or _minimises_squares(recipe):
        return None
    is_screened = WeighedBins(race, winner.candidate).screened(winner.n_rows) is not None
    return winner if is_screened else None


def _ridge_trials(result: RaceResult) -> list[Trial]:
    return [t for t in result.trials if not t.error and _minimises_squares(t.candidate.recipe)]


def _minimises_squares(recipe: Recipe) -> bool:
    """Whether a candidate minimises squares, with gradients."""
    has_gradients = not recipe.is_exact or recipe.exact_kernel.inner is not None
    return bool(recipe.loss == "square") and has_gradients


def _has_gamma(trial: Trial) -> bool:
    return "gamma" in trial.candidate.settings


# --- a race of weights alone


def weigh_bins(
    asked: Recipe, source: Source, task: Task, groups: np.ndarray | None, fit: Fit, progress: Progress
) -> tuple[Recipe, RaceResult | None]:
    """Race a recipe with a named kernel: with equal weights of the bins, and with learned ones.

    Return the recipe with the weights and the result; no result, and equal weights with a warning, if the memory budget
    does not hold a race. Raise DataError as ``choose.race`` does, and for kernels without weights.
    """
    try:
        bins = _bins_within(asked, source, task, groups, fit)
        with _fits_beside_sample(asked):
            return _bins_raced(bins, progress)
    except MemoryBudgetError as error:
        _warn_of_equal_bins(error)
        return asked.with_raced(bin_weights=None), None


def _bins_within(asked: Recipe, source: Source, task: Task, groups: np.ndarray | None, fit: Fit) -> WeighedBins:
    """Return the race of weights of bins on as many rows as fit in the memory budget, and what it fits.

    Raise MemoryBudgetError if not even a few rows fit.
    """
    race, normalization = Race.on(asked, source, task, groups, fit), asked.normalization
    while True:
        takes = None if race.shared is None else race.shared.weighs
        bins = WeighedBins(race, named_candidate(asked, None if normalization is None else normalization.name, takes))
        n_rows = race.rows.shape[0]
        needed = bins.footprint + _COPIES * n_rows * source.row_bytes
        if needed <= asked.room:
            return bins
        if n_rows <= FEWEST_SAMPLED:
            raise _too_small(asked, needed)
        fewer = int(n_rows * min(_FEWER, (asked.room / needed) ** 0.5))
        race = Race.on(asked, source, task, groups, fit, max(FEWEST_SAMPLED, fewer))


def _bins_raced(bins: WeighedBins, progress: Progress) -> tuple[Recipe, RaceResult]:
    race, candidate = bins.race, bins.candidate
    n_rows, began = max(race.splits_of), time.perf_counter()
    if race.machines_of(bins.recipe) is None:
        outcome = race.run_fits(bins.beside_sample, n_rows)
    else:
        outcome = race(candidate, n_rows)
    first = outcome.trial(candidate, 0, n_rows, time.perf_counter() - began)
    learned = bins.learn(first, progress)
    result = RaceResult([first], race.measure, race.n_held_out, first.seconds, [first])
    return learned.adopted_by(race.asked), with_bins(result, learned)


def with_bins(result: RaceResult, bins: LearnedBins) -> RaceResult:
    """Return the result with the trial of learned weights.

    It is the winner if weights were kept and their score is better; otherwise it follows the winner. If it was dropped
    with fewer rows, it is ranked among the trials of fewer rows.
    """
    first = result.trials[0]
    is_best = bins.weights is not None and bins.trial.round == first.round and bins.trial.score > first.score + SAME
    ahead = [(t.round, t.score) >= (bins.trial.round, bins.trial.score) for t in result.trials if not t.error]
    place = 0 if is_best else max(1, sum(ahead))
    trials = [*result.trials[:place], bins.trial, *result.trials[place:]]
    return replace(
        result, trials=trials, seconds=result.seconds + bins.trial.seconds, history=[*result.history, bins.trial]
    )


def bins_if_any(race: Race, leader: Trial, progress: Progress) -> LearnedBins | None:
    """Return learned weights; None if memory does not hold the machines, or if the features have no gradients.

    If the user asked for weights, a warning names the budget, and features without gradients are an error.
    """
    bins, asked = WeighedBins(race, leader.candidate), race.asked
    try:
        if bins.footprint > asked.room:
            raise _too_small(asked, bins.footprint)
        with _fits_beside_sample(asked):
            return bins.learn(leader, progress)
    except DataError:
        if not asked.leaves_open("bin_weights"):
            raise
    except MemoryBudgetError as error:
        if not asked.leaves_open("bin_weights"):
            _warn_of_equal_bins(error)
    return None


@contextmanager
def _fits_beside_sample(asked: Recipe) -> Iterator[None]:
    """Say of a fit that its budget does not hold that the sample has taken a share of the memory."""
    try:
        yield
    except MemoryBudgetError:
        raise MemoryBudgetError(
            Message("{memory=} does not hold a fit besides a sample of the rows. Give more.", asked.memory)
        ) from None


def _warn_of_equal_bins(error: MemoryBudgetError) -> None:
    warnings.warn(Message("all bins keep the same weight, as none could be learned: {}", error), stacklevel=3)


def _too_small(asked: Recipe, needed: float) -> MemoryBudgetError:
    least = whole_mebibytes(budget_for(needed))
    return MemoryBudgetError(
        Message("{memory=} holds too few rows to compare weights on. Give {memory=}.", asked.memory, least)
    )
