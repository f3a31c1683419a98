"""What a model keeps of the race that chose its settings: candidates, their trials, and the table of all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from chimap._formatting import is_error, is_proportion, measure_in_words, score_in_words, with_interval
from chimap._messages import Message
from chimap._types import JSON, Parameters
from chimap.kernels import Kernel, as_kernel
from chimap.model_files import register
from chimap.recipe import Recipe
from chimap.selection.jackknife import error_between, score_interval, standard_error

if TYPE_CHECKING:
    import pandas as pd

MANY_REPEATED = 0.1  # share of rows with a copy above which scores of held-out rows are said to be too high
_SHOWN = 10  # candidates that are printed
SAME = 1e-9  # scores closer than this are equal, and the candidate that was listed first wins


class Candidate:
    """One way to fit: a recipe with a name.

    Files and pickles keep ``settings`` and not the recipe: all candidates share the rest of it.

    Parameters
    ----------
    name : str
        Name for tables, such as "exp-chi2, l1 rows".
    recipe : Recipe
        The settings of its fits.
    is_baseline : bool, default=False
        Whether it runs to the last round whatever its score, for comparison.
    shares : str, default=""
        Candidates with the same key share work and run one after the other; empty if there is none to share.
    family : str, default=""
        Candidates with the same key are similar: the others run only if the first of them is not far behind, and the
        best of them enters the next round as long as it is not. Empty for a candidate without similar ones.

    Attributes
    ----------
    settings : dict
        What the recipe sets of those settings that the race leaves open (``Recipe.raced_settings``).
    """

    name: str
    settings: Parameters
    is_baseline: bool
    shares: str
    family: str

    def __init__(self, name: str, recipe: Recipe, is_baseline: bool = False, shares: str = "", family: str = ""):
        self.name, self.recipe, self.settings = name, recipe, recipe.raced_settings
        self.is_baseline, self.shares, self.family = is_baseline, shares, family

    @property
    def runs_to_the_end(self) -> bool:
        """Whether it runs in every round: a baseline, or a kernel on rows that labels weigh, as few tell little."""
        return self.is_baseline or (self.recipe.is_exact and self.recipe.normalizes_by_labels)

    @property
    def linear_name(self) -> str | None:
        """What it is called as a linear machine, such as "linear SVM on tf-idf rows"; None for others."""
        words = linear_in_words(**{name: self.settings.get(name) for name in ("kernel", "normalize", "loss")})
        return None if words is None else words + (", learned bins" if "bin_weights" in self.settings else "")

    def __repr__(self) -> str:
        return f"Candidate({self.name!r}, {self.settings})"

    def __getstate__(self) -> JSON:
        return {name: value for name, value in vars(self).items() if name != "recipe"}


_LINEAR_MACHINES = {"squared_hinge": "linear SVM", "logistic": "logistic regression"}  # by loss; others are "linear"


def linear_in_words(kernel: object, normalize: object = None, loss: object = None) -> str | None:
    """Return what the field calls a machine that is linear in normalised rows; None if it is not linear.

    >>> linear_in_words("linear", "log-cp10k"), linear_in_words("hellinger", None, "squared_hinge")
    ('linear on log-cp10k rows', 'linear SVM on square roots of raw rows')
    >>> linear_in_words("exp-chi2", "l1") is None
    True
    """
    linear_in = as_kernel(kernel).linear_in if isinstance(kernel, str | Kernel) else None
    if linear_in is None:
        return None
    machine = _LINEAR_MACHINES.get(loss, "linear") if isinstance(loss, str) else "linear"
    rows = f"{normalize or 'raw'} rows"
    return f"{machine} on {linear_in.replace('rows', rows)}"


def linear_line(name: str, score: float, measure: str, is_own: bool, ties: bool) -> str:
    """Return what headlines say of the best linear model: 'linear on log-cp10k rows 85.4 %'.

    >>> linear_line("linear on raw rows", 0.5, "r2", False, True)
    'linear on raw rows 0.500; a tie within the error'
    """
    if is_own:
        return f"{name}, which is the model itself"
    of = "" if measure in ("accuracy", "r2") else f"{measure_in_words(measure)} "
    return f"{name} {of}{score_in_words(score, measure)}" + ("; a tie within the error" if ties else "")


@dataclass(frozen=True)
class Trial:
    """The score of a candidate in a round.

    Parameters
    ----------
    candidate : Candidate
        The candidate.
    round : int
        Number of the round, from 0; later rounds have more rows.
    n_rows : int
        Rows that it learned from.
    score : float
        Score on the held-out rows; greater is better. -inf if it failed.
    seconds : float
        Seconds of the fit and the predictions.
    learned : dict, default={}
        What the fit chose by itself, such as ``{"gamma": ...}``.
    error : str, default=""
        Why it failed; empty if it did not.
    deviations : tuple of float, default=()
        Jackknife deviations of the score, from the same rows in all trials of a round; empty if they are not known.
    predict_seconds : float, default=np.nan
        Seconds to predict one row.
    """

    candidate: Candidate
    round: int
    n_rows: int
    score: float
    seconds: float
    learned: Parameters = field(default_factory=dict)
    error: str = ""
    deviations: tuple[float, ...] = ()
    predict_seconds: float = np.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the score; NaN if it is not known."""
        return standard_error(self.deviations)


@dataclass(frozen=True, repr=False)
class RaceResult:
    """The last trial of every candidate, the best first.

    Parameters
    ----------
    trials : list of Trial
        Trials of the last round first, each round sorted by score.
    measure : str
        Name of the score; greater is better.
    n_held_out : int
        Number of rows that were scored.
    seconds : float
        Seconds of the race.
    history : list of Trial, default=[]
        All trials in the order in which they ran; they give the curve of each candidate over the rounds.
    expected : tuple of float, or None, default=None
        Score to expect of the winner on unseen rows, and its standard error: its own score less the luck of the best
        of many. None if it is not known.
    n_repeated : int, default=0
        Rows of the sample that have an identical copy which is not held out with them.
    n_sampled : int, default=0
        Rows of the sample.
    n_independent : float or None, default=None
        How many independent rows the scored ones are worth, if they are in groups; None for all.

    Examples
    --------
    >>> from chimap.race.rounds import successive_halving
    >>> from chimap.race.trials import Outcome
    >>> def run(candidate, n_rows):
    ...     return Outcome(0.5 + (candidate.name == "b") / n_rows)
    >>> asked = Recipe("HistogramClassifier", is_classifier=True)
    >>> both = [Candidate("a", asked), Candidate("b", asked)]
    >>> result = successive_halving(both, run, [10, 20], measure="accuracy", n_held_out=100)
    >>> result.winner.name, result.rows()[0]["score"]
    ('b', 0.55)
    """

    trials: list[Trial]
    measure: str
    n_held_out: int
    seconds: float
    history: list[Trial] = field(default_factory=list)
    expected: tuple[float, float] | None = None
    n_repeated: int = 0
    n_sampled: int = 0
    n_independent: float | None = None

    @property
    def promise(self) -> tuple[float, tuple[float, float]]:
        """The score of the winner on unseen rows, as far as is known, and its 95 % confidence interval."""
        first = self.trials[0]
        score, error = self.expected or (first.score, first.standard_error)
        return score, self.interval(score, error)

    def interval(self, score: float, error: float) -> tuple[float, float]:
        """Return the 95 % confidence interval of a score with a standard error.

        Of scores from 0 to 1 it is Wilson's, of as many rows as have the standard error and no more than were left out;
        of other scores it is the score +- 1.96 standard errors, NaN where these are 0 or not known.

        Parameters
        ----------
        score : float
            The score.
        error : float
            Its standard error; NaN where it is not known.
        """
        most, best = self.n_independent or self.n_held_out, 0.0 if is_error(self.measure) else 1.0
        return score_interval(score, error, most, is_proportion(self.measure), best)

    @property
    def promise_in_words(self) -> str:
        """The promise: '79.9 % (75.7 to 83.5 %)'."""
        return with_interval(*self.promise, self.measure)

    @property
    def winner(self) -> Candidate:
        """The best candidate of the last round."""
        return self.trials[0].candidate

    @property
    def linear(self) -> Trial | None:
        """The best trial of a linear machine in the last round that had one; None if none could be fitted."""
        linear = [t for t in self.trials if t.candidate.linear_name is not None and not t.error]
        return max(linear, key=lambda t: (t.round, t.score)) if linear else None

    @property
    def linear_ties(self) -> bool:
        """Whether the best linear machine is another one than the winner, and as good within the error of the lead."""
        first, linear = self.trials[0], self.linear
        return linear not in (None, first) and bool(abs(first.score - linear.score) <= error_between(first, linear))

    @property
    def luck(self) -> float:
        """Factor, at least 1, by which residuals of unseen rows exceed those that the winner was chosen by.

        sqrt((1 - R2 to expect) / (1 - its own R2)); 1 for other scores, and where the luck is not known.
        """
        if self.expected is None or self.measure != "R2" or not self.trials[0].score < 1:
            return 1.0
        return float(np.sqrt(max(1.0, (1 - self.expected[0]) / (1 - self.trials[0].score))))

    @property
    def failures(self) -> str:
        """A message about candidates that failed; empty if none did."""
        failed = [t for t in self.trials if t.error]
        if not failed:
            return ""
        return Message(
            "{} of the {} candidates of the race could not be fitted and left it. The first, {!r}: {}",
            len(failed),
            len(self.trials),
            failed[0].candidate.name,
            failed[0].error,
        )

    @property
    def repeats(self) -> str:
        """A message about repeated rows, whose scores are those of rows seen before; empty if they are few."""
        n_rows = self.n_sampled
        if self.n_repeated <= MANY_REPEATED * n_rows:
            return ""
        return Message(
            "{:,} of {:,} rows have an identical copy among the others, so that held-out rows are not unseen ones and "
            "their scores are too high. Leave copies out, or give {groups} that hold them out together.",
            self.n_repeated,
            n_rows,
        )

    def in_place_of(self, old: Trial, new: Trial) -> RaceResult:
        """Return the result with ``new`` in place of ``old``, ranked by its score."""
        trials = [new if trial is old else trial for trial in self.trials]
        ranked = replace(self, trials=trials).ranked
        return replace(self, trials=ranked, seconds=self.seconds + new.seconds, history=[*self.history, new])

    def led_by(self, trial: Trial) -> RaceResult:
        """Return the result with one of its trials first."""
        return replace(self, trials=[trial, *(follower for follower in self.trials if follower is not trial)])

    @property
    def ranked(self) -> list[Trial]:
        """The trials by round and score: the winner may stand below others that it is as good as, and preferred to."""
        return sorted(self.trials, key=lambda t: (bool(t.error), -t.round, rank_key(t)))

    def rows(self) -> list[JSON]:
        """Return a dict for each of ``ranked``: name, score, its standard error, rows, seconds, round, and so on."""
        return [
            {
                "name": t.candidate.name,
                "score": t.score,
                "standard_error": None if np.isnan(t.standard_error) else t.standard_error,
                "n_rows": t.n_rows,
                "seconds": t.seconds,
                "round": t.round,
                "is_winner": t is self.trials[0],
                "is_baseline": t.candidate.is_baseline,
                "linear": t.candidate.linear_name,
                "error": t.error,
            }
            for t in self.ranked
        ]

    def table(self) -> pd.DataFrame | list[JSON]:
        """Return ``rows`` as a pandas data frame, or as they are where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError:
            return self.rows()
        return pd.DataFrame(self.rows())

    @property
    def sentence(self) -> str:
        """What won, by how much over the best linear machine, and how many were tried."""
        first, measure = self.trials[0], measure_in_words(self.measure)
        told = f"{first.candidate.name}: {measure} {self.with_interval(first)} on {self.n_held_out:,} left-out rows"
        best = "best" if first is self.ranked[0] else "preferred, as none is better beyond chance,"
        return f"{told}{self.against_linear}; {best} of {len(self.trials)} candidates in {self.seconds:.2g} s"

    @property
    def linear_line(self) -> str | None:
        """What headlines say of the best linear machine; None if none could be fitted."""
        best = self.linear
        if best is None:
            return None
        name = str(best.candidate.linear_name)
        return linear_line(name, best.score, self.measure, best is self.trials[0], self.linear_ties)

    @property
    def against_linear(self) -> str:
        """The best linear machine and its score, after a semicolon; empty if it won, or if there is none."""
        linear = self.linear
        if linear is None or linear is self.trials[0]:
            return ""
        tie = "a tie with " if self.linear_ties else ""
        return f"; {tie}{linear.candidate.linear_name} {score_in_words(linear.score, self.measure)}"

    def with_interval(self, trial: Trial) -> str:
        """Return the score of a trial with its 95 % confidence interval, or that it failed.

        Parameters
        ----------
        trial : Trial
            The trial.
        """
        if trial.error:
            return "failed"
        return with_interval(trial.score, self.interval(trial.score, trial.standard_error), self.measure)

    def __repr__(self) -> str:
        """Return the sentence and the first ten of ``ranked``, the winner marked; below them where it is no such."""
        ranked = self.ranked[:_SHOWN]
        ranked += [] if self.trials[0] in ranked else self.trials[:1]
        cells = [(self.with_interval(t), f"{t.n_rows:,}", f"{t.seconds:.1f}", t.candidate.name) for t in ranked]
        cells.insert(0, (measure_in_words(self.measure), "rows", "seconds", "candidate"))
        widths = [max(len(line[i]) for line in cells) for i in range(3)]
        marks = [" ", *(">" if t is self.trials[0] else " " for t in ranked)]
        shown = [
            f"{mark} {'  '.join(f'{cell:>{width}}' for cell, width in zip(line, widths, strict=False))}  {line[-1]}"
            for mark, line in zip(marks, cells, strict=True)
        ]
        if (more := len(self.trials) - len(ranked)) > 0:
            shown.append(f"  and {more} more: table()")
        return "\n".join([self.sentence, *shown])


def rank_key(trial: Trial) -> float:
    """Return a number that is smaller for better trials and equal for scores that differ only by rounding."""
    return -round(trial.score / SAME) if np.isfinite(trial.score) else np.inf


register(Candidate, Trial, RaceResult)
