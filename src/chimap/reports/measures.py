"""What all measures share: checked labels and numbers, confidence intervals, and baselines to compare them with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit
from scipy.stats import binomtest

from chimap._errors import InputError
from chimap._formatting import (
    NARROW_SPACE,
    interval_in_words,
    measure_in_words,
    number,
    on_page,
    percent,
    plain,
    score_in_words,
    with_interval,
)
from chimap._types import JSON, ArrayLike, Scoring
from chimap._validation import DataError
from chimap.selection.jackknife import error_of_mean, independent_rows, wilson

if TYPE_CHECKING:
    from chimap.reports.ranking import RankingMetrics


def checked_labels(y: ArrayLike, name: str) -> np.ndarray:
    """Return labels or numbers of shape (n,), n >= 1; a single column is flattened. Raises DataError for others."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(f"{name} must have one label or number per row, shape (n,); got shape {labels.shape}.")
    if labels.size == 0:
        raise DataError(f"{name} has 0 rows, so there is nothing to measure; hold out more rows.")
    return labels


def checked_pair(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return true and predicted labels or numbers, (n,) each. Raises DataError if their lengths differ."""
    y_true, y_pred = checked_labels(y_true, "y_true"), checked_labels(y_pred, "y_pred")
    if y_true.size != y_pred.size:
        raise DataError(
            f"y_true has {y_true.size} rows and y_pred {y_pred.size}; pass the labels and the predictions "
            "of the same rows."
        )
    return y_true, y_pred


def checked_numbers(y: np.ndarray, name: str) -> np.ndarray:
    """Convert to float64. Raises DataError for text, and for NaN or infinity, naming the row."""
    try:
        values = y.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must hold numbers for a regression; got {y.dtype}.") from None
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(f"{name}, row {bad[0]}: {values[bad[0]]}, but targets and predictions must be finite numbers.")
    return values


Interval = tuple[float, float]
_LONGEST_NAME = 17  # letters of the name of a score in a margin


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return Wilson's confidence interval of a proportion p, after ``successes`` in ``n`` trials.

    With p_hat = successes / n and z the normal quantile at (1 + confidence) / 2, it holds all p with

        |p_hat - p| <= z sqrt(p (1 - p) / n).

    It stays within [0, 1] and keeps its confidence near 0 and 1, where p_hat +- z s does not.

    Parameters
    ----------
    successes : int
        Number of successes.
    n : int
        Number of trials, at least 1.
    confidence : float, default=0.95
        Probability that the interval contains p, between 0 and 1.

    Returns
    -------
    tuple of float
        The lower and the upper end.

    Raises
    ------
    ValueError
        Unless 0 <= successes <= n, n >= 1 and 0 < confidence < 1.

    References
    ----------
    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).

    Examples
    --------
    >>> tuple(round(end, 4) for end in wilson_interval(9, 10))
    (0.5958, 0.9821)
    """
    if not (n >= 1 and 0 <= successes <= n):
        raise InputError(f"successes and n must satisfy 0 <= successes <= n, n >= 1; got {successes} and {n}.")
    check_confidence(confidence)
    lower, upper = binomtest(successes, n).proportion_ci(confidence, method="wilson")
    return float(lower), float(upper)


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, such as 0.95; got {confidence!r}.")


def mean_interval(values: np.ndarray, confidence: float, groups: np.ndarray | None = None) -> Interval:
    """Return Student's confidence interval of a mean, mean +- t s; NaN for fewer than two values, or groups of them.

    s is the standard error of the mean, of values that vary together in a group, and t the quantile of Student's
    distribution with one degree of freedom less than there are groups, or values without groups.
    """
    n = values.size if groups is None else np.unique(groups).size
    if n < 2:
        return float("nan"), float("nan")
    half = stdtrit(n - 1, (1 + confidence) / 2) * error_of_mean(values, groups)
    return float(values.mean() - half), float(values.mean() + half)


def share_interval(is_so: np.ndarray, confidence: float, groups: np.ndarray | None = None) -> Interval:
    """Return Wilson's confidence interval of the share of rows where something is so; (0, 1) for one group.

    Rows of k groups, which vary together in a group, are worth fewer rows: n = p (1 - p) / s^2 with the standard error
    s of the share p, and the quantile is Student's, with k - 1 degrees of freedom. A share of 0 or 1 has no s, and n is
    (sum of sizes)^2 / (sum of squared sizes) of the groups.

    >>> right = np.repeat([True, True, True, False], 25)
    >>> tuple(round(end, 2) for end in share_interval(right, 0.95))
    (0.66, 0.82)
    >>> tuple(round(end, 2) for end in share_interval(right, 0.95, np.repeat(np.arange(20), 5)))
    (0.51, 0.9)
    """
    if groups is None:
        return wilson_interval(int(is_so.sum()), is_so.size, confidence)
    n_groups = np.unique(groups).size
    if n_groups < 2:
        return 0.0, 1.0
    share, error = float(is_so.mean()), error_of_mean(is_so.astype(float), groups)
    most = is_so.size if error > 0 else independent_rows(groups, is_so.size)
    return wilson(share, error, most, float(stdtrit(n_groups - 1, (1 + confidence) / 2)))


def mean_share_interval(shares: np.ndarray, intervals: Sequence[Interval]) -> Interval:
    """Return the interval of the mean of independent shares (k,), such as recalls, by those of the shares.

    Its ends are the mean less sqrt(sum_i (p_i - low_i)^2) / k and plus sqrt(sum_i (high_i - p_i)^2) / k; with Wilson's
    intervals it never has width 0.

    References
    ----------
    Zou and Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27 (2008).

    Examples
    --------
    >>> mean_share_interval(np.array([1.0, 1.0]), [(0.8, 1.0), (0.4, 1.0)])
    (0.683772233983162, 1.0)
    """
    low, high = np.transpose(intervals)
    k, mean = len(shares), shares.mean()
    ends = mean - np.linalg.norm(shares - low) / k, mean + np.linalg.norm(high - shares) / k
    return max(0.0, float(ends[0])), min(1.0, float(ends[1]))


def auc_interval(auc: float, n_first: int, n_second: int, confidence: float = 0.95) -> Interval:
    """Return the confidence interval of the area A under a ROC curve of two classes with so many rows.

    It holds all A with |auc - A| <= z sqrt(V(A)), where, with N the mean of the two numbers of rows,

        V(A) = A (1 - A) (1 + (N - 1) ((1 - A) / (2 - A) + A / (1 + A))) / (n_first n_second).

    Like Wilson's interval of a share, it stays within [0, 1] and never has width 0.

    References
    ----------
    Newcombe, Confidence intervals for an effect size measure based on the Mann-Whitney statistic, part 2, Statistics
    in Medicine 25 (2006), method 5; V after Hanley and McNeil, Radiology 143 (1982).

    Examples
    --------
    >>> tuple(round(end, 3) for end in auc_interval(0.9, 50, 50))
    (0.816, 0.946)
    """
    z, mean = ndtri((1 + confidence) / 2), (n_first + n_second) / 2

    def beyond(area: float) -> float:
        variance = area * (1 - area) * (1 + (mean - 1) * ((1 - area) / (2 - area) + area / (1 + area)))
        return (auc - area) ** 2 - z**2 * variance / (n_first * n_second)

    tiny = 1e-9  # an area of 0 or 1 has no variance
    low = 0.0 if auc <= 0 else float(brentq(beyond, 0.0, min(auc, 1 - tiny)))
    high = 1.0 if auc >= 1 else float(brentq(beyond, max(auc, tiny), 1.0))
    return low, high


@dataclass(frozen=True)
class Baseline:
    """The result of a prediction that does not use the histograms.

    Parameters
    ----------
    name : str
        What it predicts, such as "always answering “cat”".
    value : float
        Its accuracy (classification) or its root mean squared error (regression), on the same rows as the model.
    """

    name: str
    value: float

    def as_dict(self) -> JSON:
        """Return name and value as JSON types."""
        return {"name": self.name, "value": plain(float(self.value))}


class LeadingScore(NamedTuple):
    """The score that headlines lead with, its 95 % confidence interval, and that of guesses.

    Attributes
    ----------
    measure : str
        Its name, as scikit-learn has it, such as "f1 of ill".
    value : float
        The score, greater is better.
    interval : tuple of float
        Its interval; NaN where it is not known.
    guess : float or None
        The score of guesses that look at no column; None if it is not known.
    """

    measure: str
    value: float
    interval: Interval
    guess: float | None

    @property
    def in_words(self) -> str:
        """Score and interval: '81.7 % (72.7 to 88.3 %)'."""
        return with_interval(self.value, self.interval, self.measure)

    def named(self, told: str) -> dict[str, str | None]:
        """Return a line about it by its name, or by "score" where the name is too long for a margin.

        Parameters
        ----------
        told : str
            What is told of it.
        """
        name = measure_in_words(self.measure)
        return {name: told} if len(name) <= _LONGEST_NAME else {"score": f"{name} {told}"}

    @property
    def guess_in_words(self) -> str:
        """The score of guesses, such as '; guessing 38.0 %'; empty where it is not known."""
        return "" if self.guess is None else f"; guessing {score_in_words(self.guess, self.measure)}"

    def keys(self, confidence: float) -> list[str]:
        """Return the interval for a page, if it is known: '95 % confidence interval: 0.615 to 0.972'.

        Parameters
        ----------
        confidence : float
            Its confidence.
        """
        if np.isnan(self.interval[0]):
            return []
        told = interval_in_words(self.interval, self.measure)
        return [f"{number(100 * confidence)} % confidence interval: {on_page(told)}"]

    def baseline_line(self, name: str) -> str:
        """Return the score of guesses for a page; empty where it is not known.

        Parameters
        ----------
        name : str
            What guesses.
        """
        return "" if self.guess is None else f"Baseline, {name}: {on_page(score_in_words(self.guess, self.measure))}"

    def as_dict(self) -> JSON:
        """Return it as JSON types."""
        return {name: plain(value) for name, value in self._asdict().items()}


class Metrics(ABC):
    """Measures of the predictions of some rows."""

    listed: ClassVar[str]  # the name under which ``contents.CONTENTS`` lists the sections of their page
    n_groups: int | None = None  # of the rows, where intervals count groups
    asked: LeadingScore | None = None  # the score that the fit was asked for, which then leads

    if TYPE_CHECKING:  # a field of some, which a property of the base would stand in the way of

        @property
        def n_rows(self) -> int:
            """Number of predicted rows."""

    @property
    def rows_in_words(self) -> str:
        """Rows, and the groups whose number errors count: '29 rows', '29 rows of 12 groups'."""
        return f"{self.n_rows:,} rows" + ("" if self.n_groups is None else f" of {self.n_groups:,} groups")

    @abstractmethod
    def as_dict(self) -> JSON:
        """Return all measures as JSON types, with None for those that are not defined."""

    def leading(self, baseline: Baseline | None) -> LeadingScore | None:
        """Return the score that headlines lead with; None if none does.

        Parameters
        ----------
        baseline : Baseline or None
            The score of a prediction that does not use the histograms.
        """
        return self.asked

    def known(self, scoring: Scoring, baseline: Baseline | None) -> LeadingScore | None:
        """Return a score that is among these measures; None for others.

        Parameters
        ----------
        scoring : str, callable or None
            Its name, as scikit-learn has it.
        baseline : Baseline or None
            The score of a prediction that does not use the histograms.
        """
        return None

    @property
    def asked_line(self) -> dict[str, str | None]:
        """The score that was asked for, in a line by name, where it is none of ``lines``."""
        asked = self.asked
        is_told = asked is None or self.known(asked.measure, None) is not None
        return {} if asked is None or is_told else asked.named(asked.in_words)

    @property
    def asked_first(self) -> str:
        """The same at the beginning of a line: 'F1 of ill 0.812, '."""
        return "".join(f"{name} {told}, ".removeprefix("score ") for name, told in self.asked_line.items())

    @abstractmethod
    def lines(self, ranking: RankingMetrics | None = None) -> dict[str, str | None]:
        """Return the measures in lines of text by name, the most telling first; None for those that are not defined.

        Parameters
        ----------
        ranking : RankingMetrics or None, default=None
            The ranking of the same rows by the scores of each class, for classes.
        """

    @abstractmethod
    def line(self, baseline: Baseline) -> str:
        """Return the leading measures on one line.

        Parameters
        ----------
        baseline : Baseline
            The score to compare them with.
        """

    @abstractmethod
    def in_words(self, value: float) -> str:
        """Return a value of the leading measure, such as the baseline's, as text.

        Parameters
        ----------
        value : float
            The value.
        """


def majority_baseline(y_train: ArrayLike, y_true: ArrayLike) -> Baseline:
    """Return the accuracy of always predicting the most frequent training label.

    Parameters
    ----------
    y_train : array-like of shape (m,)
        Labels of the training rows.
    y_true : array-like of shape (n,)
        Labels of the rows to predict.

    Returns
    -------
    Baseline
        The label and its accuracy on ``y_true``.

    Raises
    ------
    DataError
        If one of the arrays is empty or has more than one label per row.

    Examples
    --------
    >>> majority_baseline(["cat", "cat", "dog"], ["cat", "dog"])
    Baseline(name='always answering “cat”', value=0.5)
    """
    classes, counts = np.unique(checked_labels(y_train, "y_train"), return_counts=True)
    answer = classes[np.argmax(counts)]
    return Baseline(f"always answering “{answer}”", float(np.mean(checked_labels(y_true, "y_true") == answer)))


def mean_baseline(y_train: ArrayLike, y_true: ArrayLike) -> Baseline:
    """Return the root mean squared error of always predicting the mean of the training targets.

    Parameters
    ----------
    y_train : array-like of shape (m,)
        Targets of the training rows.
    y_true : array-like of shape (n,)
        Targets of the rows to predict.

    Returns
    -------
    Baseline
        The mean and its root mean squared error on ``y_true``.

    Raises
    ------
    DataError
        If one of the arrays is empty, is not one-dimensional, or holds text, NaN or infinity.

    Examples
    --------
    >>> mean_baseline([1.0, 3.0], [1.0, 3.0])
    Baseline(name='always answering the mean, 2', value=1.0)
    """
    answer = checked_numbers(checked_labels(y_train, "y_train"), "y_train").mean()
    error = checked_numbers(checked_labels(y_true, "y_true"), "y_true") - answer
    return Baseline(f"always answering the mean, {answer:.4g}", float(np.sqrt(np.mean(error**2))))


def share_in_words(share: float) -> str:
    """Return a share as terminals show it: '93.1 %'."""
    return percent(share).replace(NARROW_SPACE, " ")
