"""Weights of bins that a candidate of a race learns from its gradients, kept where rows held out say that they help."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from chimap.features.weighted import learn_weights
from chimap.selection.jackknife import standard_error
from chimap.selection.race_trials import SAME, Candidate, Outcome, Trial

_ERRORS = 2  # standard errors that a gain must be above to be one


class Weighing(Protocol):
    """Fits a candidate with weights of the bins, a row of them for each split of the rows."""

    def __call__(self, candidate: Candidate, weights: np.ndarray) -> tuple[Outcome, Callable[[], np.ndarray]]:
        """What comes of it, and what gives the next weights."""
        ...


@dataclass(frozen=True)
class LearnedBins:
    """The trial of the best round, its weights (bins,), of mean 1, None where equal ones are as good, and how much its
    score is above theirs. is_screened: whether they are those of the screening."""

    trial: Trial
    weights: np.ndarray | None
    gain: float
    is_screened: bool = False


def learn_bins(
    weigh: Weighing, candidate: Candidate, equal: np.ndarray, screened: np.ndarray | None, first: Trial
) -> LearnedBins:
    """Learn weights for a candidate: each split from its own rows, so that no score is of rows that were learned from.

    equal: ones (splits, bins). screened: weights of the same shape to begin with where they are better; see
    ``chimap.features.screened``. Gradients of a model that noise misleads say little of the bins.

    The weights of the best round are kept if its score is above that of equal weights by more than two standard errors
    of the difference, which the jackknife knows: both are scored on the same rows. One is not enough for the best of
    three rounds, each with a strength and a width of its own: by it weights came in that cost Fashion-MNIST .2 points.
    One is enough for the weights of a screening, of which there is one alone, and the share of bins that say nothing
    speaks for them too.

    A round that gains less than its error is the last. first: the last trial of the candidate, whose round and rows
    that of the weights has.
    """
    began, outcomes = time.perf_counter(), list[Outcome]()

    def fit_and_score(weights: np.ndarray) -> tuple[float, Callable[[], np.ndarray]]:
        outcome, following = weigh(candidate, weights)
        outcomes.append(outcome)
        return outcome.score, following

    def error_of_gain(later: int, before: int) -> float:
        error = _error_between(outcomes[later], outcomes[before])
        return 0.0 if np.isnan(error) else error

    rounds = learn_weights(fit_and_score, equal, least_gain=error_of_gain, other=screened)
    best = max(range(1, len(rounds)), key=lambda i: rounds[i].score)
    is_screened = screened is not None and best == 1
    unweighed, learned = outcomes[0], outcomes[best]
    weights = rounds[best].weights.mean(axis=0)
    trial = replace(
        first,
        candidate=Candidate(
            f"{candidate.name}, learned bins", candidate.settings | {"bin_weights": "learn"}
        ),
        score=learned.score, seconds=time.perf_counter() - began, learned=learned.learned,
        deviations=learned.deviations, predict_seconds=learned.predict_seconds,
    )  # fmt: skip
    kept = weights / weights.mean() if _is_better(learned, unweighed, 1 if is_screened else _ERRORS) else None
    return LearnedBins(trial, kept, learned.score - unweighed.score, is_screened)


def _is_better(outcome: Outcome, equal: Outcome, errors: float) -> bool:
    """Whether a score is above another by more than so many errors of the difference."""
    gain = outcome.score - equal.score
    if not gain > SAME:
        return False
    return not gain <= errors * _error_between(outcome, equal)  # where it is not known the score decides


def _error_between(one: Outcome, other: Outcome) -> float:
    """Standard error of the difference of two scores of the same rows; NaN where it is not known."""
    if len(one.deviations) != len(other.deviations):
        return float("nan")
    return standard_error(np.subtract(one.deviations, other.deviations))
