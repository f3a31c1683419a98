"""Scores from which settings were chosen: over strengths of the penalty, and over numbers of components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._errors import InputError
from chimap._types import JSON
from chimap.report._plain import measure_in_words, plain
from chimap.selection import SelectionResult

_MEASURES = {"squared error": "mean held-out squared error", "gcv": "generalised cross-validation error"}
_OTHERS = {"n_components", "gamma", "n_rows"}  # settings that may be chosen together with the strength


@dataclass(frozen=True, eq=False)
class StrengthCurve:
    """Scores over the strength of the penalty.

    Parameters
    ----------
    alphas : array-like of shape (n,)
        The strengths that were tried, positive. The arrays are sorted by them.
    errors : array-like of shape (n,)
        The score at each strength, by default the mean held-out squared error.
    standard_errors : array-like of shape (n,)
        Standard errors of ``errors`` over the folds.
    chosen : float
        The strength that the model uses.
    measure : str, default="mean held-out squared error"
        Name of the score.
    method : str, default="cross-validated"
        How the scores were computed, in words.
    is_searched : bool, default=False
        Whether the strengths come from a search, which continues until it has seen both sides of the best one.

    Raises
    ------
    ValueError
        If the arrays differ in length, are empty, or if a strength is not positive.
    """

    alphas: np.ndarray
    errors: np.ndarray
    standard_errors: np.ndarray
    chosen: float
    measure: str = "mean held-out squared error"
    method: str = "cross-validated"
    is_searched: bool = False

    def __post_init__(self) -> None:
        arrays = [np.asarray(a, np.float64) for a in (self.alphas, self.errors, self.standard_errors)]
        if arrays[0].ndim != 1 or len({a.shape for a in arrays}) != 1 or arrays[0].size == 0:
            shapes = ", ".join(str(a.shape) for a in arrays)
            raise InputError(
                f"alphas, errors and standard_errors must have one shape (n,), n >= 1; got {shapes}."
            )
        if not (np.all(arrays[0] > 0) and self.chosen > 0):
            raise InputError("alphas and chosen must be positive: the curve is drawn over their logarithm.")
        order = np.argsort(arrays[0], kind="stable")
        for name, values in zip(("alphas", "errors", "standard_errors"), arrays, strict=True):
            object.__setattr__(self, name, values[order])

    @property
    def error_at_chosen(self) -> float:
        """Error at the chosen strength, interpolated over log(strength) if that strength was not tried."""
        return float(np.interp(np.log(self.chosen), np.log(self.alphas), self.errors))

    @property
    def at_border(self) -> bool:
        """Whether the chosen strength is the first or the last of at least three that were given, not searched."""
        ends = self.alphas[[0, -1]]
        return (
            not self.is_searched
            and self.alphas.size > 2
            and bool(np.any(np.isclose(self.chosen, ends, rtol=1e-6, atol=0)))
        )

    @classmethod
    def of(cls, result: SelectionResult | None, is_searched: bool = False) -> StrengthCurve | None:
        """Return the curve of a selection, with its other settings fixed at the chosen values.

        Parameters
        ----------
        result : SelectionResult or None
            The selection.
        is_searched : bool, default=False
            Whether the strengths come from a search.

        Returns
        -------
        StrengthCurve or None
            None if there is no selection, or if its measure is a loss other than squared error or the error of
            generalised cross-validation.
        """
        if result is None or (result.measure not in _MEASURES and not result.greater_is_better):
            return None
        for name in _OTHERS & result.settings.keys():
            values = result.settings[name]
            result = result.of(np.flatnonzero(values == values[result.chosen]))
        return cls(
            result.alphas, result.means, result.standard_errors, result.best["alpha"],
            _MEASURES.get(result.measure, f"{measure_in_words(result.measure)} on held-out rows"), _chosen_by(result),
            is_searched,
        )  # fmt: skip

    def as_dict(self) -> JSON:
        """Return strengths, scores and choice as JSON types."""
        names = ("alphas", "errors", "standard_errors", "chosen")
        return {name: plain(getattr(self, name)) for name in names}


def _chosen_by(result: SelectionResult) -> str:
    """Return how the strengths were scored, or the score that decided if it is another one."""
    scores = [name for name in result.settings if name not in {"alpha", "df", *_OTHERS}]
    if result.rule != "gcv" or not scores:
        return result.method
    return f"the strength was chosen by {scores[0].replace('_', ' ')} on held-out rows"


@dataclass(frozen=True, eq=False)
class ComponentScores:
    """Cross-validation scores over the number of principal components and the strength of the penalty.

    Parameters
    ----------
    n_components : ndarray of shape (P,)
        Numbers of components, ascending.
    alphas : ndarray of shape (S,)
        Strengths, ascending.
    r2 : ndarray of shape (P, S)
        Held-out R² of each pair.
    chosen : tuple of int and float
        The number of components and the strength that the model uses.

    Raises
    ------
    ValueError
        If ``r2`` has another shape.
    """

    n_components: np.ndarray
    alphas: np.ndarray
    r2: np.ndarray
    chosen: tuple[int, float]

    @classmethod
    def of(cls, result: SelectionResult | None) -> ComponentScores | None:
        """Return the scores of a selection of components and strength, or None for any other selection.

        Parameters
        ----------
        result : SelectionResult or None
            The selection.
        """
        if result is None or "n_components" not in result.settings:
            return None
        n_components, alphas, places = result.grid("n_components", "alpha")
        best = result.best
        return cls(n_components, alphas, result.r2[places], (best["n_components"], best["alpha"]))

    def __post_init__(self) -> None:
        expected = (np.size(self.n_components), np.size(self.alphas))
        if np.shape(self.r2) != expected:
            raise InputError(
                f"r2 must have shape {expected}, one row per number of components; got {np.shape(self.r2)}."
            )

    def as_dict(self) -> JSON:
        """Return the scores as JSON types."""
        return {name: plain(getattr(self, name)) for name in ("n_components", "alphas", "r2", "chosen")}
