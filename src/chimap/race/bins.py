"""Weights of bins that a candidate of a race learns from its gradients, kept if held-out rows show that they help."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from chimap._types import ArrayLike
from chimap._validation import check_choice, checked_weights
from chimap.features.weighted import ROUNDS, learn_weights
from chimap.race.trials import SAME, Candidate, Outcome, Trial
from chimap.selection.jackknife import standard_error

_ERRORS = 2  # a gain must exceed this number of standard errors


class Weighing(Protocol):
    """Fits a candidate with weights of the bins, one row of weights for each split of the rows."""

    def __call__(self, candidate: Candidate, weights: np.ndarray) -> tuple[Outcome, Callable[[], np.ndarray]]:
        """Return the outcome, and a function that returns the next weights."""
        ...


def check_bin_weights(bin_weights: str | ArrayLike | None, n_bins: int) -> None:
    """Raise ValueError, or DataError for a wrong number, unless these are weights of bins or a word for them."""
    if isinstance(bin_weights, str):
        check_choice(bin_weights, "bin_weights", ("auto", "learn"))
    elif bin_weights is not None:
        checked_weights(bin_weights, n_bins, "bin", "bin_weights", "None, 'auto', 'learn' or numbers")


@dataclass(frozen=True)
class LearnedBins:
    """The result of learning weights of bins.

    trial: that of the best round. weights: (bins,) with mean 1, or None if equal weights are as good. is_promising:
    whether the score exceeds that of equal weights by more than its error, so that more rows might show that weights
    help. is_screened: whether the weights are those of the screening. gain: what the best round scores above equal
    weights.
    """

    trial: Trial
    weights: np.ndarray | None
    is_promising: bool
    is_screened: bool = False
    gain: float = 0.0


def learn_bins(
    weigh: Weighing,
    candidate: Candidate,
    equal: np.ndarray,
    screened: np.ndarray | None,
    first: Trial,
    most_rounds: int = ROUNDS,
    is_few: bool = False,
) -> LearnedBins:
    """Learn weights for a candidate: each split from its own rows, so that no row is both learned from and scored.

    equal: ones (splits, bins). screened: weights of the same shape to begin with if they are better; see
    ``chimap.features.screened``. The gradients of a model that noise misleads say little about the bins. first: the
    last trial of the candidate; the trial of the weights has the same round and rows. most_rounds: of gradients; with
    0, only the weights of a screening are tried.

    The weights of the best round are kept if its score exceeds that of equal weights by more than two standard errors
    of the difference. The jackknife gives this error, since both are scored on the same rows. One error is not enough
    for the best of three rounds, each with its own strength and width: it let in weights that cost Fashion-MNIST .2
    points. One error is enough for the weights of a screening, because there is only one of these, and the share of
    uninformative bins is evidence for them too; where rows are few (is_few), that share is uncertain itself.

    Rounds stop after one that gains less than its error.
    """
    began, outcomes = time.perf_counter(), list[Outcome]()

    def fit_and_score(weights: np.ndarray) -> tuple[float, Callable[[], np.ndarray]]:
        outcome, following = weigh(candidate, weights)
        outcomes.append(outcome)
        return outcome.score, following

    def error_of_gain(later: int, before: int) -> float:
        error = _error_between(outcomes[later], outcomes[before])
        return 0.0 if np.isnan(error) else error

    rounds = learn_weights(fit_and_score, equal, most_rounds, error_of_gain, screened)
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
    errors = 1 if is_screened and not is_few else _ERRORS
    kept_weights = weights / weights.mean() if _is_better(learned, unweighed, errors) else None
    is_promising = _is_better(learned, unweighed, 1)
    return LearnedBins(trial, kept_weights, is_promising, is_screened, learned.score - unweighed.score)


def _is_better(outcome: Outcome, equal: Outcome, errors: float) -> bool:
    """Return whether a score exceeds another by more than ``errors`` standard errors of the difference."""
    gain = outcome.score - equal.score
    if not gain > SAME:
        return False
    return not gain <= errors * _error_between(outcome, equal)  # an unknown error (NaN) lets the score decide


def _error_between(one: Outcome, other: Outcome) -> float:
    """Return the standard error of the difference of two scores on the same rows; NaN if it is unknown."""
    if len(one.deviations) != len(other.deviations):
        return float("nan")
    return standard_error(np.subtract(one.deviations, other.deviations))
