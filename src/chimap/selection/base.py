"""What a selection rule is, and the result that every rule returns.

The problem of a solver names its rule (``choose.RULES``), which scores candidates on the problem. Whatever the rule,
the outcome is a ``SelectionResult``: the candidates, their scores, and the chosen one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from chimap._formatting import is_share, measure_in_words, score_in_words
from chimap._messages import Message
from chimap._types import JSON
from chimap._validation import AUTO, ParameterError, check_choice, check_positive
from chimap.model_files import register

if TYPE_CHECKING:
    from chimap.solvers.base import Problem
    from chimap.solvers.ridge import LinearSolution

USUAL_FOLDS = 5
_METHODS = {
    "gcv": "generalised cross-validation",
    "holdout": "compared on rows held out",
    "leave-one-out": "each row left out in turn",
    "leave-group-out": "each group left out in turn",
    "leave-part-out": "parts of the rows left out in turn",
}


@dataclass(frozen=True)
class SelectionResult:
    """Scores of the candidates of a selection, and the one that was chosen.

    Parameters
    ----------
    rule : str
        How they were scored: "folds" (exact cross-validation), "holdout" (one fold held out), "gcv", ...
    settings : dict of arrays of shape (s,)
        The candidates, an entry for each setting: ``{"alpha": ...}``, or several settings that were chosen together.
    scores : array of shape (s, K)
        Score of each candidate on each fold; infinite if a candidate could not be fitted.
    weights : array of shape (K,)
        Weights of the folds in the mean: their numbers of rows.
    chosen : int
        Index of the chosen candidate.
    measure : str, default="squared error"
        What the scores are: "squared error" summed over targets, or "loss", for instance.
    greater_is_better : bool, default=False
        Whether larger scores are better.
    baseline : float, default=float("nan")
        The score of predicting the mean; NaN if it is not known.
    iterations : array of shape (s,) or None, default=None
        Steps that each candidate took, if it was solved by iteration.

    Examples
    --------
    >>> result = SelectionResult("folds", {"alpha": np.array([1.0, 10.0])}, np.array([[0.5, 0.7], [0.4, 0.4]]),
    ...                          np.array([10, 10]), 1)
    >>> result.best, result.table()[0]
    ({'alpha': 10.0}, {'alpha': 1.0, 'mean': 0.6, 'standard_error': 0.1, 'chosen': False})
    """

    rule: str
    settings: dict[str, np.ndarray]
    scores: np.ndarray
    weights: np.ndarray
    chosen: int
    measure: str = "squared error"
    greater_is_better: bool = False
    baseline: float = float("nan")
    iterations: np.ndarray | None = None

    @property
    def n_folds(self) -> int:
        """K."""
        return int(self.scores.shape[1])

    @property
    def best(self) -> JSON:
        """The chosen settings."""
        return {name: values[self.chosen].item() for name, values in self.settings.items()}

    @property
    def alphas(self) -> np.ndarray:
        """The strengths of the penalty that were compared, of shape (s,)."""
        return self.settings["alpha"]

    @property
    def means(self) -> np.ndarray:
        """Mean scores over all rows, of shape (s,)."""
        return np.asarray(np.average(self.scores, axis=1, weights=self.weights))

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the means over folds, of shape (s,); 0 if there is one fold."""
        if self.n_folds == 1:
            return np.zeros(self.scores.shape[0])
        return np.asarray(self.scores.std(axis=1, ddof=1) / np.sqrt(self.n_folds))

    @property
    def r2(self) -> np.ndarray:
        """Share of the targets' variance that is explained on held-out rows, of shape (s,); needs a baseline."""
        return 1 - self.means / self.baseline

    def grid(self, rows: str, columns: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Arrange the candidates by two of their settings.

        Parameters
        ----------
        rows : str
            Setting that varies from row to row.
        columns : str
            Setting that varies from column to column.

        Returns
        -------
        row_values : ndarray of shape (rows,)
            Values of the first setting, ascending.
        column_values : ndarray of shape (columns,)
            Values of the second setting, ascending.
        places : ndarray of int of shape (rows, columns)
            Index of each pair among the candidates.
        """
        first, second = np.unique(self.settings[rows]), np.unique(self.settings[columns])
        order = np.lexsort([self.settings[columns], self.settings[rows]])
        return first, second, order.reshape(first.size, second.size)

    def table(self) -> list[JSON]:
        """Return a dict for each candidate: its settings, mean score, standard error, and whether it was chosen."""
        scored = zip(self.means.tolist(), self.standard_errors.tolist(), strict=True)
        return [
            {name: values[i].item() for name, values in self.settings.items()}
            | {"mean": round(mean, 12), "standard_error": round(error, 12), "chosen": i == self.chosen}
            for i, (mean, error) in enumerate(scored)
        ]

    @property
    def method(self) -> str:
        """How candidates were scored, in words: 'cross-validated over 5 folds'."""
        words = {"folds": f"cross-validated over {self.n_folds} folds"} | _METHODS
        return words.get(self.rule, self.rule)

    def describe(self) -> str:
        """Return the method and the score of the choice: 'cross-validated over 5 folds: R² 0.881'."""
        if self.baseline > 0:
            return f"{self.method}: R² {self.r2[self.chosen]:.3f}"
        score = self.means[self.chosen]
        shown = score_in_words(score, self.measure) if is_share(self.measure) else f"{score:.3g}"
        return f"{self.method}: {measure_in_words(self.measure)} {shown}"

    def of(self, candidates: np.ndarray) -> SelectionResult:
        """Keep some of the candidates and choose the best of these; ties go to the former choice.

        Parameters
        ----------
        candidates : array of int
            Indices of the candidates to keep.

        Returns
        -------
        SelectionResult
            The result of the kept candidates.
        """
        subset = replace(
            self,
            settings={name: values[candidates] for name, values in self.settings.items()},
            scores=self.scores[candidates],
            iterations=None if self.iterations is None else self.iterations[candidates],
            chosen=0,
        )
        means = -subset.means if self.greater_is_better else subset.means
        best = np.flatnonzero(means == means.min())
        kept = best[np.asarray(candidates)[best] == self.chosen]
        return replace(subset, chosen=int(kept[0] if kept.size else best[0]))


@dataclass(frozen=True)
class OpenSettings:
    """What a fit leaves open for a rule to choose.

    Parameters
    ----------
    alpha : float, tuple of float or None
        One strength, several to choose from, or None for a search.
    gamma : bool, default=False
        Whether the gamma of a kernel machine is chosen too; otherwise it stays as the features have it.
    from_race : collection of str, default=()
        Which of "alpha" and "gamma" a race has chosen on fewer rows. Their kernel matrix is farther from singular: such
        an alpha is raised by decades until the machine can be solved.
    n_alphas : int, default=30
        Strengths of a path where they are searched for along one.
    near : float or None, default=None
        Strength that a search by folds climbs from in half decades, such as the best one of like features; None where
        it begins by itself.
    least : float, default=0.0
        Strength below which such a search does not go.
    """

    alpha: float | Sequence[float] | None
    gamma: bool = False
    from_race: Collection[str] = ()
    n_alphas: int = 30
    near: float | None = None
    least: float = 0.0

    @property
    def is_fixed(self) -> bool:
        """Whether one strength is given."""
        return isinstance(self.alpha, float)

    @property
    def names(self) -> tuple[str, ...]:
        """Which of "alpha" and "gamma" the user has left open."""
        is_open = {"alpha": self.alpha is None, "gamma": self.gamma}
        return tuple(name for name in is_open if is_open[name] or name in self.from_race)

    def path_below(self, largest: float, share: float) -> np.ndarray:
        """Return descending strengths: those given, or a path from the largest, at which weights are 0, to a share."""
        if self.alpha is None:
            return np.geomspace(largest or 1.0, share * (largest or 1.0), self.n_alphas)
        return np.sort(np.atleast_1d(np.asarray(self.alpha, dtype=np.float64)))[::-1]


@dataclass(frozen=True)
class Compared:
    """What a rule found.

    Parameters
    ----------
    result : SelectionResult or None
        The candidates that were compared, and the best; None if there are too few rows to compare by.
    problem : Problem
        The problem that is solved at the best strength: the one that the rule was given, or a part of it.
    solution : LinearSolution or None, default=None
        The solution at the best strength, if the comparison computes it anyway.
    alpha : float or None, default=None
        The strength to take where nothing was compared; None for the best of the result.
    """

    result: SelectionResult | None
    problem: Problem
    solution: LinearSolution | None = None
    alpha: float | None = None


class Selection(ABC):
    """A rule that chooses settings; an entry of the catalogue.

    Attributes
    ----------
    rule : str
        Name of the rule in results.
    usual_scores : int or None
        Number of strengths that a search usually tries; None if it varies too much.
    compares_more : bool
        Whether it is asked even if the strength is given: other settings are open, or rows are left out on the way.

    Parameters
    ----------
    on_score : callable, default=lambda n=1: None
        Called after each score, or with the number of those that are over, by rules whose solver does not report steps.
    """

    rule: ClassVar[str]
    usual_scores: ClassVar[int | None] = None
    compares_more: ClassVar[bool] = False

    def __init__(self, on_score: Callable[..., None] = lambda n=1: None):
        self._on_score = on_score

    @abstractmethod
    def choose(self, problem: Any, open: OpenSettings) -> Compared:
        """Score the strengths that are open, or (None) those of a search, on a problem that names the rule."""


def checked_alpha(alpha: Any) -> float | tuple[float, ...] | None:
    """Return one strength, several to choose from, or None for "auto". Raise ValueError for anything else."""
    if isinstance(alpha, str):
        check_choice(alpha, "alpha", (AUTO,))
        return None
    if np.ndim(alpha) == 0:
        check_positive(alpha, "alpha")
        return float(alpha)
    if not len(alpha):
        raise ParameterError("alpha", alpha, "'auto', a number or several numbers")
    for strength in alpha:
        check_positive(strength, Message("each of {alpha}"))
    return tuple(float(strength) for strength in alpha)


def fold_count(selection: str | int, least: int = 2) -> int:
    """Return the number of folds that a selection uses.

    Parameters
    ----------
    selection : "auto" or int
        The selection.
    least : int, default=2
        The fewest folds that serve; one where nothing is chosen.

    Returns
    -------
    int
        Five for "auto", else the number itself.

    Raises
    ------
    ValueError
        If it is anything else.

    Examples
    --------
    >>> fold_count("auto"), fold_count(10)
    (5, 10)
    """
    if isinstance(selection, str) and selection == "auto":
        return USUAL_FOLDS
    if isinstance(selection, str) or hasattr(selection, "split"):
        raise ParameterError("selection", selection, f"'auto' or at least {least} folds")
    check_positive(selection, Message("{selection} (folds)"), integer=True)
    if selection < least:
        raise ParameterError("selection", selection, f"'auto' or at least {least} folds")
    return int(selection)


register(SelectionResult)
