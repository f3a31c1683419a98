"""Scores from which settings were chosen: over strengths of the penalty, and over numbers of components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._types import JSON
from chimap.report._plain import measure_in_words, plain
from chimap.selection import SelectionResult

_MEASURES = {"squared error": "mean held-out squared error", "gcv": "generalised cross-validation error"}
_OTHERS = {"n_components", "gamma", "n_rows"}  # settings that are chosen together with the strength


@dataclass(frozen=True, eq=False)
class StrengthCurve:
    """Scores over the strength of the penalty.

    alphas: positive, increasing, (n,).
    errors: mean held-out squared error at each strength, or what ``measure`` names, (n,).
    standard_errors: of ``errors`` over the folds, (n,).
    chosen: the strength that the model uses.
    method: how the scores came about, in words.
    is_searched: whether the strengths are those of a search, which goes on until it has seen both sides of the best.

    Raises ValueError for unequal lengths, no alphas, or alphas that are not positive.
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
            raise ValueError(
                f"alphas, errors and standard_errors must have one shape (n,), n >= 1; got {shapes}."
            )
        if not (np.all(arrays[0] > 0) and self.chosen > 0):
            raise ValueError("alphas and chosen must be positive: the curve is drawn over their logarithm.")
        order = np.argsort(arrays[0], kind="stable")
        for name, values in zip(("alphas", "errors", "standard_errors"), arrays, strict=True):
            object.__setattr__(self, name, values[order])

    @property
    def error_at_chosen(self) -> float:
        """Error at the chosen strength, interpolated over log(strength) where it is not among those tried."""
        return float(np.interp(np.log(self.chosen), np.log(self.alphas), self.errors))

    @property
    def at_border(self) -> bool:
        """Whether the chosen strength is the first or the last of three or more that were given."""
        ends = self.alphas[[0, -1]]
        return (
            not self.is_searched
            and self.alphas.size > 2
            and bool(np.any(np.isclose(self.chosen, ends, rtol=1e-6, atol=0)))
        )

    @classmethod
    def of(cls, result: SelectionResult | None, is_searched: bool = False) -> StrengthCurve | None:
        """That of a selection, its other settings being those that it chose; None where there is none."""
        if result is None or (result.measure not in _MEASURES and not result.greater_is_better):
            return None
        for name in _OTHERS & result.settings.keys():
            values = result.settings[name]
            result = result.of(np.flatnonzero(values == values[result.chosen]))
        return cls(
            result.alphas, result.means, result.standard_errors, result.best["alpha"],
            _MEASURES.get(result.measure, f"{measure_in_words(result.measure)} of rows left out"), _chosen_by(result),
            is_searched,
        )  # fmt: skip

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        names = ("alphas", "errors", "standard_errors", "chosen")
        return {name: plain(getattr(self, name)) for name in names}


def _chosen_by(result: SelectionResult) -> str:
    """How strengths were scored, and by which score one was taken where that is another."""
    scores = [name for name in result.settings if name not in {"alpha", "df", *_OTHERS}]
    if result.rule != "gcv" or not scores:
        return result.method
    return f"the strength was chosen by {scores[0].replace('_', ' ')} of rows left out"


@dataclass(frozen=True, eq=False)
class ComponentScores:
    """Cross-validation over the number of principal components and the strength of the penalty.

    n_components: increasing, (P,). alphas: increasing, (S,). r2: held-out R² of each pair, (P, S). chosen: the pair
    that the model uses. Raises ValueError for another shape of r2.
    """

    n_components: np.ndarray
    alphas: np.ndarray
    r2: np.ndarray
    chosen: tuple[int, float]

    @classmethod
    def of(cls, result: SelectionResult | None) -> ComponentScores | None:
        """Those of a selection of components and strength; None for any other."""
        if result is None or "n_components" not in result.settings:
            return None
        n_components, alphas, places = result.grid("n_components", "alpha")
        best = result.best
        return cls(n_components, alphas, result.r2[places], (best["n_components"], best["alpha"]))

    def __post_init__(self) -> None:
        expected = (np.size(self.n_components), np.size(self.alphas))
        if np.shape(self.r2) != expected:
            raise ValueError(
                f"r2 must be of shape {expected}, a row a number of components; got {np.shape(self.r2)}."
            )

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        return {name: plain(getattr(self, name)) for name in ("n_components", "alphas", "r2", "chosen")}
