"""What choosing a setting comes to: one shape of result for every rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from chimap._types import JSON
from chimap._validation import check_choice, check_positive
from chimap.model_files import register
from chimap.solvers.base import Asked, Needs
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
    settings : dict of arrays (s,)
        The candidates, one entry each: ``{"alpha": ...}``, or several settings that were chosen together.
    scores : array (s, K)
        Of each candidate on each fold; infinite where a candidate could not be fitted.
    weights : array (K,)
        Of the folds in the mean: their numbers of rows.
    chosen : int
        Index of the candidate that was taken.
    measure : str
        What the scores are: "squared error" summed over targets, or "loss".
    greater_is_better : bool
        Which way is better.
    baseline : float
        The score of predicting the mean; NaN where it is not known.
    iterations : array (s,), or None
        Steps that each candidate took, where an iteration solved for it.

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
        """The settings that were chosen."""
        return {name: values[self.chosen].item() for name, values in self.settings.items()}

    @property
    def alphas(self) -> np.ndarray:
        """The strengths of the penalty that were compared, (s,)."""
        return self.settings["alpha"]

    @property
    def means(self) -> np.ndarray:
        """Mean scores over all rows, (s,)."""
        return np.asarray(np.average(self.scores, axis=1, weights=self.weights))

    @property
    def standard_errors(self) -> np.ndarray:
        """Of the mean over folds, (s,); 0 where there is one fold."""
        if self.n_folds == 1:
            return np.zeros(self.scores.shape[0])
        return np.asarray(self.scores.std(axis=1, ddof=1) / np.sqrt(self.n_folds))

    @property
    def r2(self) -> np.ndarray:
        """Share of the targets' variance that is explained on held-out rows, (s,), for errors with a baseline."""
        return 1 - self.means / self.baseline

    def grid(self, rows: str, columns: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of two settings, ascending, and the places (rows, columns) of the candidates in ``scores``."""
        first, second = np.unique(self.settings[rows]), np.unique(self.settings[columns])
        order = np.lexsort([self.settings[columns], self.settings[rows]])
        return first, second, order.reshape(first.size, second.size)

    def table(self) -> list[JSON]:
        """One row a candidate: its settings, mean score, standard error, and whether it was chosen."""
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
        """The method and the score of the choice: 'cross-validated over 5 folds: R² 0.881'."""
        if self.baseline > 0:
            return f"{self.method}: R² {self.r2[self.chosen]:.3f}"
        return f"{self.method}: {self.measure} {self.means[self.chosen]:.3g}"

    def of(self, candidates: np.ndarray) -> SelectionResult:
        """Some of the candidates, of which the best is chosen: of equals the one that was chosen before."""
        some = replace(
            self,
            settings={name: values[candidates] for name, values in self.settings.items()},
            scores=self.scores[candidates],
            iterations=None if self.iterations is None else self.iterations[candidates],
            chosen=0,
        )
        means = -some.means if self.greater_is_better else some.means
        best = np.flatnonzero(means == means.min())
        kept = best[np.asarray(candidates)[best] == self.chosen]
        return replace(some, chosen=int(kept[0] if kept.size else best[0]))


Problem = TypeVar("Problem", contravariant=True)
Choice = tuple[SelectionResult, LinearSolution | None]
"""What was compared, and the solution at the best where that comes with the comparison."""


class Selection(Protocol[Problem]):
    """A rule by which settings are chosen; a line of the catalogue.

    usual_scores: how many strengths a search tries as a rule; None where nobody can say.
    """

    rule: ClassVar[str]
    usual_scores: ClassVar[int | None]

    @classmethod
    def serves(cls, needs: Needs, n_folds: int, n_rows: int, asked: Asked) -> bool:
        """Whether it chooses for a solver with these needs, from rows in so many folds (1: none are held out)."""
        ...

    def choose(self, problem: Problem, alphas: Sequence[float] | None) -> Choice:
        """Score strengths, or (None) those that a search comes to, on a problem of a solver that the rule serves."""
        ...


def fold_count(selection: str | int) -> int:
    """Folds that a selection takes: its number, five for "auto", one for "gcv". ValueError for anything else.

    Examples
    --------
    >>> fold_count("auto"), fold_count("gcv"), fold_count(10)
    (5, 1, 10)
    """
    if isinstance(selection, str):
        check_choice(selection, "selection", ("auto", "gcv"))
        return USUAL_FOLDS if selection == "auto" else 1
    check_positive(selection, "selection (folds)", integer=True)
    return int(selection)


register(SelectionResult)
