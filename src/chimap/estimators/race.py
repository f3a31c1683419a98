"""The race of an estimator with kernel="auto": its candidates are the estimator itself with other settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from chimap import _arrays
from chimap._memory import parse_memory, room_in
from chimap._types import Parameters, Rows, Scoring
from chimap._validation import check_histograms
from chimap.data import ArraySource, Source
from chimap.data.source import choose_rows
from chimap.engines import Progress
from chimap.estimators.internals import codec_for, codec_of, seed_of, without_posterior
from chimap.estimators.race_candidates import Look, is_free
from chimap.fit.automatic import is_automatic
from chimap.fit.recipe import checked_alpha, given_weights
from chimap.fit.targets import Codec
from chimap.fit.trials import Trials
from chimap.moments import of_rows
from chimap.race.machines import Split
from chimap.race.rounds import BELIEVED, CLOSE, HOPELESS, expected_score, preferred, race
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
    score_name,
    scoring_of,
    shared_tasks,
)
from chimap.race.search import BestSetting
from chimap.race.trials import Candidate, Outcome, RaceResult, Trial, is_behind, trial_of
from chimap.race.work import work_of_fit
from chimap.selection.climb import Setting
from chimap.selection.jackknife import deviations_of, parts_of_rows
from chimap.selection.scoring import OutputScore

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


FEWEST_SAMPLED = 200  # rows of a sample, if there are as many
_SHARE = 8  # the sample may take an eighth of the memory budget
RACE_SHARE = 1 / 3  # of the time limit of a fit: the machine of all rows needs the rest
MOST_SECONDS = 20.0  # seconds of counted work that a race may do


@dataclass(frozen=True)
class Race:
    """A race on a sample of a source.

    rows, y, groups, weights: the sample. codec: how its labels become numbers. splits: pairs (rows to learn from, rows
    to score); there are several if rows are few. splits_of: number of splits that a round takes, by its number of rows.
    trials: machines that share their products; None if the estimator has settings that these do not support.
    leaves_out: whether these learn from all rows, and are scored by the outputs of left-out ones. left_out: adjacent
    rows that are left out together; None for single rows.

    Few rows have one round: every machine of ``trials`` learns from all of them, and its outputs for the rows that are
    left out, in closed form, are scored. Rounds on parts of them would choose by some dozen rows.
    """

    model: BaseEstimator
    rows: Rows
    y: np.ndarray
    codec: Codec
    groups: np.ndarray | None
    splits: list[tuple[np.ndarray, np.ndarray]]
    splits_of: dict[int, int]
    scoring: Scoring
    column_names: Sequence[str] | None
    seed: int
    weights: np.ndarray | None
    trials: Trials | None
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
        model: BaseEstimator,
        source: Source,
        groups: np.ndarray | None,
        most_rows: int | None = None,
        keeps_rows: bool = True,
    ) -> Race:
        """Return the race of an estimator on a sample of a source. Raise DataError as ``race_of`` does.

        most_rows: largest sample, if memory allows fewer rows than its share of it holds. keeps_rows: whether the fit
        may keep all rows in memory; else it is not the machine that a race on few rows leaves rows out of.
        """
        labels = source.labels()
        assert labels is not None
        seed = seed_of(model)
        room = room_in(parse_memory(model.memory)) // _SHARE
        held = max(FEWEST_SAMPLED, int(room / max(1.0, source.row_bytes)))
        n_sampled = min(ROUNDS[-1] + most_held_out(labels), held, most_rows or source.n_rows)
        places = choose_rows(source.n_rows, n_sampled, seed)
        rows, y = source.take(places), labels[places]
        check_histograms(
            rows,
            name=source.name,
            signed=True,
            first_row=places,
            columns=source.column_names,
            ids=source.row_ids,
        )
        sampled = None if groups is None else np.asarray(groups)[places]
        weights = None if source.weights is None else of_rows(source.weights[places])
        shares_products = is_free(model, or_named=True)
        is_few = source.n_rows < FEW and places.size == source.n_rows and keeps_rows and shares_products
        if is_few:  # rows that are left out together have to be adjacent
            order = in_groups(sampled, places.size, seed)
            rows, y, places = _arrays.take_rows(rows, order), y[order], places[order]
            sampled = None if sampled is None else sampled[order]
            weights = None if weights is None else weights[order]
        scoring = scoring_of(model, labels, is_few)
        splits = held_out_rows(y, sampled, is_classifier(model), seed)
        rounds = {places.size: len(splits)} if is_few else rounds_of(splits)
        y = shared_tasks(y, splits, min(rounds), is_classifier(model))
        codec = codec_for(model, y)
        trials = Trials(
            rows, y, codec, codec.score(y, scoring, weights), weights,
            np.dtype("float64" if model.precision == "float64" else "float32"),
            _alphas(model.alpha), model.n_terms, seed, places,
        )  # fmt: skip
        return cls(
            model, rows, y, codec, sampled, splits, rounds, scoring, source.column_names, seed, weights,
            trials if shares_products else None,
            is_few, left_out_together(sampled, trials.Y) if is_few else None,
        )  # fmt: skip

    @property
    def look(self) -> Look:
        """Properties of the sample on which settings depend."""
        n_classes = 0
        if is_classifier(self.model):
            n_classes = np.unique(self.y).size if self.y.ndim == 1 else self.y.shape[1] + 1
        return Look.at(self.rows, n_classes, self.leaves_out)

    @property
    def by_error(self) -> bool:
        """Whether strength and gamma are those of the least squared error: for left-out rows of two classes.

        Scores of few rows of two classes move by steps, and the best of a dozen settings by luck. Squared errors are
        smooth, and count every row. More classes, each against all others, have squared errors mostly of the others.
        """
        return (
            self.leaves_out
            and is_classifier(self.model)
            and self.trials is not None
            and (self.y.ndim == 2 or self.trials.Y.shape[1] == 1)
        )

    @property
    def n_held_out(self) -> int:
        """Number of rows that the last round is scored on."""
        return sum(test.size for _, test in self.splits)

    @property
    def footprint(self) -> int:
        """Bytes of the largest machines that share their products: those of the last round."""
        if self.trials is None:
            return 0
        everything = np.arange(self.rows.shape[0])
        return self.trials.footprint(
            [(everything, everything[:0])] if self.leaves_out else self.splits_at(max(self.splits_of))
        )

    @property
    def work(self) -> float:
        """Estimated seconds of all trials so far, counted in operations."""
        return sum(self.separate) + (0.0 if self.trials is None else self.trials.work)

    def splits_at(self, n_rows: int) -> list[Split]:
        """Return the splits of the round that learns from ``n_rows`` rows."""
        return rows_of_round(self.splits, self.splits_of, n_rows)

    def run(
        self,
        entered: Sequence[Candidate],
        progress: Progress,
        on_trial: Callable[[Trial], None] | None = None,
    ) -> RaceResult:
        """Race some candidates."""
        progress.stage("race", None, "fits")

        def tell(trial: Trial) -> None:
            progress.advance()
            if on_trial is not None:
                on_trial(trial)

        return race(
            entered, self, sorted(self.splits_of), measure=score_name(self.scoring, self.model, self.y),
            n_held_out=self.n_held_out, families_to_the_end=len(self.splits) > 1, on_trial=tell,
            work_of_round=lambda n_rows: self.splits_of[n_rows] * float(n_rows) ** 2, **self._end(),
        )  # fmt: skip

    def _end(self) -> Parameters:
        """Return when to stop starting trials: after a share of the user's seconds, or after a fixed amount of work."""
        seconds = getattr(self.model, "time_limit", None)
        if seconds is not None:
            return {"seconds": RACE_SHARE * seconds}
        return {"seconds": MOST_SECONDS, "clock": lambda: self.work}

    def __call__(self, candidate: Candidate, n_rows: int) -> Outcome:
        """Return the mean outcome over the splits; see ``Runner``."""
        if self.trials is not None and self.trials.takes(candidate.settings):
            return self._run_trials(self.trials, candidate, n_rows)
        if self.trials is not None:
            self.trials.let_go()  # a separate fit needs the whole budget
        chosen = self.splits_at(n_rows)
        scores, deviations, seconds, learned = [], [], [], {}
        for train, test in chosen:
            with catch_warnings():
                simplefilter("ignore", ConvergenceWarning)  # the score shows how well a trial did
                fitted = self.fitted(candidate, train)
            self.separate.append(work_of_fit(fitted, _arrays.take_rows(self.rows, train)))
            score, deviation, taken = self.scored(fitted, test)
            scores.append(score)
            deviations.append(deviation / len(chosen))  # of the mean of scores on disjoint rows
            seconds.append(taken)
            gamma = getattr(fitted.kernel_, "gamma", None)
            learned = {"alpha": fitted.alpha_} | ({} if gamma is None else {"gamma": float(gamma)})
        all_deviations = tuple(np.concatenate(deviations).tolist())
        return Outcome(float(np.mean(scores)), learned, all_deviations, float(np.median(seconds)))

    def _run_trials(self, trials: Trials, candidate: Candidate, n_rows: int) -> Outcome:
        """Run a candidate by machines that share their products.

        The first round searches for the best setting, starting from that of the first candidate of the family. Later
        rounds keep it, because strength and gamma depend little on the number of rows. If few rows are held out in
        turn, the last round, which covers all of them, searches beyond it.
        """
        leaves_out = self.leaves_out and trials.leaves_out(candidate.settings)
        everything = np.arange(self.rows.shape[0])
        splits = [(everything, everything)] if leaves_out else self.splits_at(n_rows)
        last_setting = self.best.get(candidate.name)
        start = self._starts.get(candidate.family) if last_setting is None else last_setting
        settings = {"bin_weights": given_weights(self.model.get_params(deep=False))} | candidate.settings

        def looks_on(score: float, outputs: Sequence[np.ndarray]) -> bool:
            if last_setting is not None and (n_rows < max(self.splits_of) or len(splits) == 1):
                return False
            leader = self.leaders.get(n_rows)
            if leader is None:
                return True
            deviations = self._all_deviations(trials, splits, outputs)
            errors = HOPELESS if last_setting is None else CLOSE
            return not is_behind(Outcome(score, deviations=tuple(deviations)), leader, errors)

        if leaves_out:
            fitted = trials.best_left_out(settings, self.left_out, start, looks_on, self.by_error)
        else:
            fitted = trials.best(settings, splits, start, looks_on)
        self.best[candidate.name] = fitted.setting
        self._starts.setdefault(candidate.family or candidate.name, fitted.setting)
        outcome = self.outcome_of(trials, fitted, splits)
        self.compared.setdefault(n_rows, {})[candidate.name] = self._tried(trials, fitted, splits)
        if n_rows not in self.leaders or outcome.score > self.leaders[n_rows].score:
            self.leaders[n_rows] = outcome
        return outcome

    def _tried(self, trials: Trials, fitted: BestSetting, splits: list[Split]) -> list[Outcome]:
        """Return the outcomes of the settings among which the score chose: one if the squared error did."""
        among = [(fitted.score, fitted.outputs)] if self.by_error else [(s, o) for s, _, o in fitted.tried]
        return [
            Outcome(score, deviations=tuple(self._all_deviations(trials, splits, outputs).tolist()))
            for score, outputs in among
        ]

    @property
    def errors(self) -> float:
        """Standard errors by which the best must beat the candidates listed before it; see ``preferred``.

        Many rows tell candidates apart, and need no preference; those that a user lists have no order.
        """
        if not self.leaves_out or not is_automatic(self.model.kernel):
            return 0.0
        return BELIEVED if self.by_error else CLOSE

    def judged(self, result: RaceResult, names: Sequence[str]) -> RaceResult:
        """Return the result led by the preferred candidate, with the score to expect of it on unseen rows.

        names: of the candidates, those that are preferred first. Where only some rounds were run, it is among those of
        the last.
        """
        n_rows = result.trials[0].n_rows
        compared = [tried for name in names if (tried := self.compared.get(n_rows, {}).get(name))]
        trials = {
            trial.candidate.name: trial
            for trial in result.trials
            if trial.n_rows == n_rows and not trial.error
        }
        raced = [name for name in names if name in trials]
        leader = preferred([trials[name] for name in raced], self.errors)
        return replace(
            result.led_by(trials[raced[leader]]), expected=expected_score(compared, self.errors),
            n_repeated=n_repeated(self.rows, self.groups), n_sampled=self.rows.shape[0],
        )  # fmt: skip

    def improved(self, result: RaceResult) -> RaceResult:
        """Return the result after searching the settings of the winner again with the rows of its round."""
        first = result.trials[0]
        if self.trials is None or not self.trials.takes(first.candidate.settings) or len(self.splits) > 1:
            return result

        def run(candidate: Candidate, n_rows: int) -> Outcome:
            assert self.trials is not None
            splits = self.splits_at(n_rows)
            settings = {"bin_weights": given_weights(self.model.get_params(deep=False))} | candidate.settings
            fitted = self.trials.best(settings, splits, self.best.get(candidate.name))
            self.best[candidate.name] = fitted.setting
            return self.outcome_of(self.trials, fitted, splits)

        return result.in_place_of(first, trial_of(first.candidate, run, first.round, first.n_rows))

    def outcome_of(self, trials: Trials, fitted: BestSetting, splits: list[Split]) -> Outcome:
        """Return the outcome of machines that share their products, on these splits."""
        learned = {"alpha": fitted.alpha} | ({} if fitted.gamma is None else {"gamma": fitted.gamma})
        deviations = self._all_deviations(trials, splits, fitted.outputs)
        return Outcome(fitted.score, learned, tuple(deviations.tolist()), fitted.seconds)

    def _all_deviations(
        self, trials: Trials, splits: list[Split], outputs: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Return the jackknife deviations of the mean score over the splits."""
        return np.concatenate(
            [
                self._deviations(trials.score, test, split_outputs) / len(splits)
                for (_, test), split_outputs in zip(splits, outputs, strict=True)
            ]
        )

    def _deviations(self, score: OutputScore, test: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Return the jackknife deviations of the score of ``outputs``, the outputs for the rows ``test``."""
        groups = None if self.groups is None else self.groups[test]
        parts = parts_of_rows(test.size, groups, self.seed)
        return deviations_of(score.without_each(outputs, test, parts))

    def fitted(self, candidate: Candidate, chosen: np.ndarray) -> BaseEstimator:
        """Return the estimator with the settings of a candidate, fitted on the rows ``chosen`` of the sample."""
        weights = given_weights(self.model.get_params(deep=False))
        settings = {"bin_weights": weights} | candidate.settings | {"scoring": self.scoring, "verbose": False}
        # Row weights include class weights already, and a candidate needs no threshold.
        model = without_posterior(self.model).set_params(
            **settings, class_weight=None, threshold=None, weights="importance"
        )
        keeps = candidate.settings.get("features") == "exact"
        if not keeps:
            model.set_params(scoring=None)
        groups = None if self.groups is None else self.groups[chosen]
        source = ArraySource(
            _arrays.take_rows(self.rows, chosen), self.y[chosen], column_names=self.column_names
        )
        source.weights = None if self.weights is None else self.weights[chosen]
        if groups is None or np.unique(groups).size < 2:
            return model.fit_source(source)
        return model.fit_source(source, groups=groups)

    def scored(self, fitted: BaseEstimator, test: np.ndarray) -> tuple[float, np.ndarray, float]:
        """Return the score on the rows ``test``, its deviations, and the seconds of one prediction."""
        rows = _arrays.take_rows(self.rows, test)
        began = time.perf_counter()
        outputs = fitted.predict_source(ArraySource(rows, column_names=self.column_names))
        seconds = (time.perf_counter() - began) / max(1, test.size)
        score = codec_of(fitted).score(self.y, self.scoring, self.weights)
        return score(outputs, test), self._deviations(score, test, outputs), seconds


def _alphas(alpha: Any) -> list[float] | None:
    """Return the strengths to choose from; None for "auto"."""
    alphas = checked_alpha(alpha)
    return None if alphas is None else sorted(float(strength) for strength in np.atleast_1d(alphas))
