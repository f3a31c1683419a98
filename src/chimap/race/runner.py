"""A race on a sample: candidates learn from some of its rows, and are scored on others.

``Race`` runs a candidate in a round (``rounds.successive_halving`` decides which): by machines that share their
products where they take it, and else by a fit of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _arrays
from chimap._progress import Ahead
from chimap._types import Parameters, Rows, Scoring
from chimap._validation import check_histograms
from chimap.data import ArraySource, Source
from chimap.data.source import choose_rows
from chimap.data.table import declared_blocks
from chimap.engines import Progress
from chimap.engines.rates import RATES
from chimap.machines.base import HoldOut
from chimap.models.model import Model
from chimap.models.predict import outputs_of_source
from chimap.models.race_result import Candidate, RaceResult, Trial
from chimap.moments import of_rows
from chimap.race.candidates import is_free
from chimap.race.machines import Split
from chimap.race.rounds import (
    ERRORS_TO_DROP,
    ERRORS_TO_DROP_BEFORE_LAST_ROUND,
    ERRORS_TO_OVERRULE_ORDER,
    expected_score,
    preferred,
    successive_halving,
)
from chimap.race.rows import (
    FEW,
    ROUNDS,
    held_out_rows,
    in_groups,
    left_out_together,
    most_held_out,
    n_repeated,
    rounds_of,
    rows_of_round,
    shared_tasks,
)
from chimap.race.shared import BestSetting, SharedMachines
from chimap.race.traits import SampleTraits
from chimap.race.trials import Outcome, trial_of
from chimap.recipe import Recipe
from chimap.recipe.codecs import Codec
from chimap.recipe.task import Task, scoring_of
from chimap.selection.climb import Setting
from chimap.selection.jackknife import deviations_of, independent_rows, is_behind, parts_of_rows
from chimap.selection.scoring import OutputScore

FEWEST_SAMPLED = 200  # rows of a sample, if there are as many
SAMPLE_SHARE = 8  # the sample may take an eighth of the memory budget
RACE_SHARE = 1 / 3  # of the time limit of a fit: the machine of all rows needs the rest
MOST_SECONDS = 20.0  # seconds of counted work that a race may do

# How a race usually goes, which tells how far it is: shares of the candidates that run in its first round, as families
# do not run on behind their first one, and in each later one; machines of the first round, and of the search again of
# the winner, for one of a later round, whose setting is known.
_RUN_FIRST, _RUN_LATER = 0.7, 0.2
_SEARCH_MACHINES, _MACHINES_AGAIN = 5.0, 3.0

UNCOUNTED_SECONDS = 0.07  # seconds of a fit that are not counted as operations

# Passes of LIBLINEAR for a target at a strength: on features of landmarks and frequencies it converges more slowly.
_DENSE_PASSES, _SPARSE_PASSES = 19, 10
_READING = 3e-3  # seconds by which a pass over features in memory exceeds its products

# Entries of dense rows that take as long as an entry of sparse ones: in a kernel matrix, and in products with features
_SPARSE_IN_KERNEL, _SPARSE_IN_FEATURES = 20, 50


Fit = Callable[[Recipe, Source, np.ndarray | None], Model]
"""Fits a recipe to the rows of a source, in groups if these are given."""


@dataclass
class Race:
    """A race on a sample of a source.

    asked: the recipe whose open settings are raced. fit: fits what has no machine among ``shared``. rows, y, groups,
    weights: the sample, at ``places`` of the ``n_rows`` of the source. codec: how its labels become numbers. splits:
    pairs (rows to learn from, rows to score); there are several if rows are few. splits_of: number of splits that a
    round takes, by its number of rows. shared: machines that share their products; None if the recipe has settings that
    these do not support.
    leaves_out: whether these learn from all rows, and are scored by the outputs of left-out ones. left_out: adjacent
    rows that are left out together; None for single rows.

    Few rows have one round: every machine of ``shared`` learns from all of them, and its outputs for the rows that are
    left out, in closed form, are scored. Rounds on parts of them would choose by some dozen rows.
    """

    asked: Recipe
    fit: Fit
    rows: Rows
    y: np.ndarray
    codec: Codec
    groups: np.ndarray | None
    splits: list[tuple[np.ndarray, np.ndarray]]
    splits_of: dict[int, int]
    scoring: Scoring
    column_names: Sequence[str] | None
    weights: np.ndarray | None
    places: np.ndarray
    n_rows: int
    shared: SharedMachines | None
    leaves_out: bool = False
    left_out: Sequence[np.ndarray] | None = None
    best: dict[str, Setting] = field(default_factory=dict)  # setting of each candidate in its last round
    _starts: dict[str, Setting] = field(default_factory=dict)  # setting of the first candidate of each family
    leaders: dict[int, Outcome] = field(default_factory=dict)  # best outcome so far, by the rows of the round
    separate: list[float] = field(default_factory=list)  # work of each fit that shares nothing with others
    # Outcomes of the settings among which a candidate's was chosen, by the rows of the round and its name
    compared: dict[int, dict[str, list[Outcome]]] = field(default_factory=dict)

    @classmethod
    def on(
        cls,
        asked: Recipe,
        source: Source,
        task: Task,
        groups: np.ndarray | None,
        fit: Fit,
        most_rows: int | None = None,
        leaves_out: bool = True,
        holds_out: HoldOut = held_out_rows,
    ) -> Race:
        """Return the race for a recipe on a sample of a source. Raise DataError as ``choose.race`` does.

        most_rows: largest sample, if memory allows fewer rows than its share of it holds. leaves_out: whether few
        rows may be left out of a machine of all others, as where the fit keeps all rows. holds_out: which rows are
        scored else.
        """
        labels = source.labels()
        assert labels is not None
        held = max(FEWEST_SAMPLED, int(asked.room // SAMPLE_SHARE / max(1.0, source.row_bytes)))
        n_sampled = min(ROUNDS[-1] + most_held_out(labels), held, most_rows or source.n_rows)
        places = choose_rows(source.n_rows, n_sampled, asked.seed)
        rows, y = source.take(places), labels[places]
        check_histograms(
            rows, name=source.name, signed=True, first_row=places, columns=source.column_names, ids=source.row_ids
        )
        sampled = None if groups is None else np.asarray(groups)[places]
        weights = None if source.weights is None else of_rows(source.weights[places])
        shares_products = is_free(asked, or_named=True)
        is_few = source.n_rows < FEW and places.size == source.n_rows and leaves_out and shares_products
        if is_few:  # rows that are left out together have to be adjacent
            order = in_groups(sampled, places.size, asked.seed)
            rows, y, places = _arrays.take_rows(rows, order), y[order], places[order]
            sampled = None if sampled is None else sampled[order]
            weights = None if weights is None else weights[order]
        scoring = scoring_of(asked.scoring, asked.is_classifier, labels, is_few)
        splits = holds_out(places, y, sampled, asked.is_classifier, asked.seed)
        rounds = {places.size: len(splits)} if is_few else rounds_of(splits)
        y = shared_tasks(y, splits, min(rounds), asked.is_classifier)
        codec = task.codec_of(y)
        score = codec.score(y, scoring, weights)
        shared = SharedMachines(rows, y, codec, score, weights, asked, places)
        return cls(
            asked,
            fit,
            rows,
            y,
            codec,
            sampled,
            splits,
            rounds,
            scoring,
            source.column_names,
            weights,
            places,
            source.n_rows,
            shared if shares_products else None,
            is_few,
            left_out_together(sampled, shared.Y) if is_few else None,
        )

    @property
    def traits(self) -> SampleTraits:
        """Properties of the sample on which settings depend."""
        n_classes = 0
        if self.asked.is_classifier:
            n_classes = np.unique(self.y).size if self.y.ndim == 1 else self.y.shape[1] + 1
        names = self.column_names
        blocks = declared_blocks(names) if self.asked.blocks is None else self.asked.blocks_in(names)
        return SampleTraits.of(self.rows, n_classes, self.leaves_out, blocks)

    @property
    def by_error(self) -> bool:
        """Whether strength and gamma are those of the least squared error: for left-out rows of classes.

        Scores of few rows move by steps, and the best of a dozen settings by luck. Squared errors are smooth, and count
        every row. For more than two classes they are those of probabilities, see ``Search``. A score of many classes
        that was asked for decides itself: errors may have another optimum, as for rare classes.
        """
        if not self.leaves_out or not self.asked.is_classifier or self.shared is None:
            return False
        return self.asked.scoring is None or not self.shared.has_many_classes

    @property
    def n_held_out(self) -> int:
        """Number of rows that the last round is scored on."""
        return sum(test.size for _, test in self.splits)

    @property
    def measure(self) -> str:
        """Name of the score."""
        name = self.codec.score(self.y, self.scoring).name
        return name.replace("r2", "R2") if self.scoring is None else name

    @property
    def footprint(self) -> int:
        """Bytes of the largest machines that share their products: those of the last round."""
        if self.shared is None:
            return 0
        everything = np.arange(self.rows.shape[0])
        return self.shared.footprint(
            [(everything, everything[:0])] if self.leaves_out else self.splits_at(max(self.splits_of))
        )

    @property
    def work(self) -> float:
        """Estimated seconds of all trials so far, counted in operations."""
        return sum(self.separate) + (0.0 if self.shared is None else self.shared.work)

    def splits_at(self, n_rows: int) -> list[Split]:
        """Return the splits of the round that learns from ``n_rows`` rows."""
        return rows_of_round(self.splits, self.splits_of, n_rows)

    def run(self, entered: Sequence[Candidate], progress: Progress) -> RaceResult:
        """Race some candidates until a share of the user's seconds is over, or a fixed amount of work is done."""
        ahead, starts = self.ahead(len(entered))
        progress.step("choosing a machine", [ahead])
        progress.stage("race", None, "fits")
        limit, best, done = self.asked.time_limit, -np.inf, 0

        def told(trial: Trial) -> None:
            nonlocal best, done
            reached = min(max(done, starts[trial.round]) + 1, starts[trial.round + 1])
            progress.advance(reached - done)
            done = reached
            if trial.score > best:
                best = trial.score
                progress.scored(self.measure, best)

        result = successive_halving(
            entered,
            self,
            sorted(self.splits_of),
            measure=self.measure,
            n_held_out=self.n_held_out,
            families_to_the_end=len(self.splits) > 1,
            seconds=MOST_SECONDS if limit is None else RACE_SHARE * limit,
            clock=(lambda: self.work) if limit is None else None,
            work_of_round=lambda n_rows: self.splits_of[n_rows] * float(n_rows) ** 2,
            on_trial=told,
        )
        progress.planned(self.work)
        return result

    def ahead(self, n_candidates: int) -> tuple[Ahead, list[int]]:
        """Return what is ahead of the trials, by the squares of their rows, and the trial with which each round begins.

        The trials of a round are as many as usual: the last entry is their number.
        """
        rounds = sorted(self.splits_of)
        n_first = n_candidates if len(rounds) == 1 else max(1, round(_RUN_FIRST * n_candidates))
        n_trials = [n_first, *[max(1, round(_RUN_LATER * n_candidates))] * (len(rounds) - 1)]
        squares = [self.splits_of[n] * (n / rounds[0]) ** 2 for n in rounds]
        each = [_SEARCH_MACHINES * squares[0], *squares[1:]]
        costs = np.repeat(each, n_trials).tolist()
        if self.shared is not None and len(self.splits) == 1:
            costs.append(_MACHINES_AGAIN * squares[-1])  # ``improved``
        done, starts = np.concatenate([[0.0], np.cumsum(costs)]), np.concatenate([[0], np.cumsum(n_trials)])
        known = Ahead("race", len(costs), lambda n: float(np.interp(n, np.arange(done.size), done)), is_relative=True)
        return known, starts.tolist()

    def machines_of(self, recipe: Recipe) -> SharedMachines | None:
        """Return the machines that share their products if they take the recipe of a candidate, else None."""
        return self.shared if self.shared is not None and self.shared.takes(recipe) else None

    def __call__(self, candidate: Candidate, n_rows: int) -> Outcome:
        """Return the mean outcome over the splits; see ``Runner``."""
        recipe = candidate.recipe
        if (machines := self.machines_of(recipe)) is not None:
            return self._run_shared(machines, candidate, recipe, n_rows)
        return self.run_fits(recipe, n_rows)

    def run_fits(self, recipe: Recipe, n_rows: int) -> Outcome:
        """Return the mean outcome of separate fits over the splits of a round."""
        if self.shared is not None:
            self.shared.let_go()  # a separate fit needs the whole budget
        outcomes = []
        for train, test in self.splits_at(n_rows):
            with catch_warnings():
                simplefilter("ignore", ConvergenceWarning)  # the score shows how well a trial did
                fitted = self.fitted(recipe, train)
            self.separate.append(work_of_fit(fitted, _arrays.take_rows(self.rows, train)))
            outcomes.append(self.scored(fitted, test))
        return mean_of(outcomes)

    def _run_shared(self, machines: SharedMachines, candidate: Candidate, recipe: Recipe, n_rows: int) -> Outcome:
        """Run a candidate by machines that share their products.

        The first round searches for the best setting, starting from that of the first candidate of the family. Later
        rounds keep it, because strength and gamma depend little on the number of rows. If few rows are held out in
        turn, the last round, which covers all of them, searches beyond it.
        """
        leaves_out = self.leaves_out and recipe.is_exact and not recipe.normalizes_by_labels
        everything = np.arange(self.rows.shape[0])
        splits = [(everything, everything)] if leaves_out else self.splits_at(n_rows)
        last_setting = self.best.get(candidate.name)
        start = self._starts.get(candidate.family) if last_setting is None else last_setting

        def searches_on(score: float, outputs: Sequence[np.ndarray]) -> bool:
            if last_setting is not None and (n_rows < max(self.splits_of) or len(splits) == 1):
                return False
            leader = self.leaders.get(n_rows)
            if leader is None:
                return True
            n_errors = ERRORS_TO_DROP if last_setting is None else ERRORS_TO_DROP_BEFORE_LAST_ROUND
            return not is_behind(self._outcome(score, outputs, splits), leader, n_errors)

        if leaves_out:
            fitted = machines.best_left_out(recipe, self.left_out, start, searches_on, self.by_error)
        else:
            fitted = machines.best(recipe, splits, start, searches_on)
        self.best[candidate.name] = fitted.setting
        self._starts.setdefault(candidate.family or candidate.name, fitted.setting)
        outcome = self.outcome_of(fitted, splits)
        # the settings among which the score chose: one if the squared error did
        tried = [trial for trial in fitted.tried if not self.by_error or trial.outputs is fitted.outputs]
        self.compared.setdefault(n_rows, {})[candidate.name] = [
            self._outcome(trial.score, trial.outputs, splits) for trial in tried
        ]
        if n_rows not in self.leaders or outcome.score > self.leaders[n_rows].score:
            self.leaders[n_rows] = outcome
        return outcome

    @property
    def n_errors(self) -> float:
        """Standard errors by which the best must beat the candidates listed before it; see ``preferred``.

        Many rows rank candidates by themselves, and need no preference; those that a user lists have no order. Of many
        classes the best is better than the first of any order, see ``benchmarks/accuracy/many_classes.py``.
        """
        has_many_classes = self.shared is not None and self.shared.has_many_classes
        if not self.leaves_out or has_many_classes or not self.asked.leaves_open("kernel"):
            return 0.0
        return ERRORS_TO_OVERRULE_ORDER

    def judged(self, result: RaceResult, names: Sequence[str]) -> RaceResult:
        """Return the result led by the preferred candidate, with the score to expect of it on unseen rows.

        names: of the candidates, those that are preferred first. Where only some rounds were run, it is among those of
        the last.
        """
        n_rows = result.trials[0].n_rows
        compared = [tried for name in names if (tried := self.compared.get(n_rows, {}).get(name))]
        trials = {trial.candidate.name: trial for trial in result.trials if trial.n_rows == n_rows and not trial.error}
        raced = [name for name in names if name in trials]
        leader = preferred([trials[name] for name in raced], self.n_errors)
        return replace(
            result.led_by(trials[raced[leader]]),
            expected=expected_score(compared, self.n_errors),
            n_repeated=n_repeated(self.rows, self.groups),
            n_sampled=self.rows.shape[0],
            n_independent=self._n_independent(result.n_held_out),
        )

    def _n_independent(self, n_held_out: int) -> float | None:
        """Return how many independent rows those scored are worth; None without groups."""
        if self.groups is None:
            return None
        return n_held_out * independent_rows(self.groups, self.groups.size) / self.groups.size

    def improved(self, result: RaceResult) -> RaceResult:
        """Return the result after searching the settings of the winner again with the rows of its round."""
        first = result.trials[0]
        machines = self.machines_of(first.candidate.recipe)
        if machines is None or len(self.splits) > 1:
            return result

        def run(candidate: Candidate, n_rows: int) -> Outcome:
            splits = self.splits_at(n_rows)
            fitted = machines.best(candidate.recipe, splits, self.best.get(candidate.name))
            self.best[candidate.name] = fitted.setting
            return self.outcome_of(fitted, splits)

        return result.in_place_of(first, trial_of(first.candidate, run, first.round, first.n_rows))

    def outcome_of(self, fitted: BestSetting, splits: list[Split]) -> Outcome:
        """Return the outcome of machines that share their products, on these splits."""
        outcome = self._outcome(fitted.score, fitted.outputs, splits)
        return replace(outcome, learned=learned_by(fitted.alpha, fitted.gamma), predict_seconds=fitted.seconds)

    def _outcome(self, score: float, outputs: Sequence[np.ndarray], splits: list[Split]) -> Outcome:
        """Return the outcome of a setting, with the jackknife deviations of its mean score over the splits."""
        assert self.shared is not None
        deviations = tuple(
            deviation / len(splits)
            for (_, test), split_outputs in zip(splits, outputs, strict=True)
            for deviation in self._deviations(self.shared.score, test, split_outputs)
        )
        return Outcome(score, deviations=deviations)

    def _deviations(self, score: OutputScore, test: np.ndarray, outputs: np.ndarray) -> list[float]:
        """Return the jackknife deviations of the score of ``outputs``, the outputs for the rows ``test``."""
        groups = None if self.groups is None else self.groups[test]
        parts = parts_of_rows(test.size, groups, self.asked.seed)
        deviations: list[float] = deviations_of(score.without_each(outputs, test, parts)).tolist()
        return deviations

    def fitted(self, recipe: Recipe, chosen: np.ndarray) -> Model:
        """Return the model of a candidate's recipe, fitted on the rows ``chosen`` of the sample."""
        recipe = replace(
            recipe,
            bin_weights=recipe.given_bin_weights,
            verbose=False,
            keeps_posterior=False,
            threshold=None,
            scoring=self.scoring if recipe.is_exact and self.asked.leaves_open("features") else None,
            class_weight=None,
            weights="importance",  # the weights of the rows include those of classes already
        )
        groups = None if self.groups is None else self.groups[chosen]
        source = ArraySource(_arrays.take_rows(self.rows, chosen), self.y[chosen], column_names=self.column_names)
        source.weights = None if self.weights is None else self.weights[chosen]
        is_grouped = groups is not None and np.unique(groups).size > 1
        return self.fit(recipe, source, groups if is_grouped else None)

    def scored(self, fitted: Model, test: np.ndarray) -> Outcome:
        """Return the outcome of a model, by its score on the rows ``test``."""
        rows = _arrays.take_rows(self.rows, test)
        began = time.perf_counter()
        outputs = outputs_of_source(fitted, ArraySource(rows, column_names=self.column_names))
        seconds = (time.perf_counter() - began) / max(1, test.size)
        score = fitted.task.codec.score(self.y, self.scoring, self.weights)
        deviations = tuple(self._deviations(score, test, outputs))
        return Outcome(score(outputs, test), learned_by(fitted.learned.alpha, fitted.gamma), deviations, seconds)


def learned_by(alpha: float, gamma: float | None) -> Parameters:
    """Return what a fit chose by itself, by name."""
    return {"alpha": alpha} | ({} if gamma is None else {"gamma": gamma})


def mean_of(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the mean outcome over disjoint rows, with what the last fit learned."""
    return Outcome(
        float(np.mean([outcome.score for outcome in outcomes])),
        outcomes[-1].learned,
        tuple(deviation / len(outcomes) for outcome in outcomes for deviation in outcome.deviations),
        float(np.median([outcome.predict_seconds for outcome in outcomes])),
    )


# --- how much work a separate fit was, by the operations that it took


def work_of_fit(fitted: Model, rows: Rows) -> float:
    """Return the estimated seconds of a fit of n rows on two cores: the same number on every machine.

    An exact machine with p bins, s strengths and g gammas takes 2 g n^2 p operations for kernel values and s n^3/3 for
    factors. Other machines with D features take 2 n p D for the features, n D^2 for their sums, and s D^3/3 for factors
    or 4 n D t for a pass over t targets. LIBLINEAR visits the entries of the features that are not zero.

    With the strength chosen by the default rule, the estimate is within a factor of about two of the time.

    Parameters
    ----------
    fitted : Model
        The model.
    rows : array or sparse matrix of shape (n, bins)
        The rows that it was fitted on.
    """
    # Folds share the strengths, but each takes a factor.
    n_scored = 1 if fitted.learned.selection is None else max(np.shape(fitted.learned.selection.scores))
    if fitted.recipe.is_exact:
        return UNCOUNTED_SECONDS + _of_kernel_matrix(fitted, rows, n_scored) / RATES.kernels
    n, n_features = float(rows.shape[0]), float(fitted.features._n_features_out)
    # A map that keeps zeros works bin by bin, which takes no time besides what follows.
    is_sparse = fitted.features.keeps_zeros
    mapped = 0.0 if is_sparse else 2 * n * _bins(rows, _SPARSE_IN_FEATURES) * n_features
    outputs = n * n_features * fitted.n_outputs
    if fitted.learned.n_passes == 0:  # LIBLINEAR counts none
        entries = _SPARSE_PASSES * _density(rows) if is_sparse else _DENSE_PASSES
        return UNCOUNTED_SECONDS + mapped / RATES.features + (n_scored + 1) * entries * outputs / RATES.visits
    sums = n * n_features**2 + n_scored * n_features**3 / 3
    passes = fitted.learned.n_passes
    return UNCOUNTED_SECONDS + (mapped + sums + 4 * passes * outputs) / RATES.features + _READING * passes


def _of_kernel_matrix(fitted: Model, rows: Rows, n_scored: int) -> float:
    """Return the operations of an exact machine."""
    n, selection = float(rows.shape[0]), fitted.learned.selection
    settings = {} if selection is None else selection.settings
    n_gammas = max(1, np.unique(settings.get("gamma", [])).size)
    return 2 * n_gammas * n**2 * _bins(rows, _SPARSE_IN_KERNEL) + n_scored * n**3 / 3


def _bins(rows: Rows, sparse_entry: float) -> float:
    """Return how many bins of dense rows take as long as those of ``rows``."""
    if not _arrays.is_sparse(rows):
        return float(rows.shape[1])
    return min(float(rows.shape[1]), sparse_entry * rows.nnz / rows.shape[0])


def _density(rows: Rows) -> float:
    """Return the share of bins that are not 0."""
    return float(np.count_nonzero(_arrays.stored_values(rows)) / (rows.shape[0] * rows.shape[1]))
