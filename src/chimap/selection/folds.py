"""Exact K-fold cross-validation of the ridge strength, from fold moments of a single pass.

``Folds`` is the rule for ridge whose rows are in folds. The moments of a training set are those of all rows less those
of the held-out fold, so every strength is scored without another pass. ``score_path`` does the same along a path of
strengths, such as that of the LASSO; ``rough_alpha`` finds the starting point for searches of other losses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import DataError
from chimap.moments import FoldMoments, Moments
from chimap.moments.symmetric import PANEL
from chimap.selection.base import Compared, OpenSettings, Selection, SelectionResult
from chimap.selection.climb import Setting, climb
from chimap.solvers.fold import Fold, FoldWeights
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.ridge import Factor
from chimap.solvers.sparse import SparsePath, held_out_error

if TYPE_CHECKING:
    from chimap.solvers.groups import GroupProblem

# The factorisation of each fold costs D^3/3 operations, and iterating for t targets about 6 * 6 t D^2: from t = D/100
# on the factorisation is cheaper.
_FEATURES_PER_TARGET = 100
_MOST_DECADES = 9  # distance from the scale at which a search ends
_MOST_HALF_DECADES_UP = 9  # above the scale, at which the search of ``choose_alpha`` ends
_VECTORS_DIRECTLY = 2  # arrays (D, t) in memory together
_VECTORS_BY_ITERATION = 27  # arrays (D, t) for each fold: of the iteration, and weights of several strengths


def iterates(n_features: int, n_targets: int, fewest_rows: int | None) -> bool:
    """Whether held-out errors are computed by iteration rather than by a factorisation for each fold.

    ``fewest_rows`` is the smallest number of training rows of a fold; None if it is not known and taken to be enough.
    With fewer training rows than features, directions that only the held-out rows span are determined by the penalty
    alone. The matrix of the training rows is then far from that of all rows, and it would take many iterations.
    """
    return n_targets * _FEATURES_PER_TARGET <= n_features and (fewest_rows is None or n_features <= fewest_rows)


def working_bytes(n_features: int, n_targets: int, n_folds: int, fewest_rows: int | None) -> int:
    """Return the peak bytes of choosing a strength, besides the moments of folds and of all rows, and the factor."""
    vectors = _VECTORS_DIRECTLY
    if n_folds > 1 and iterates(n_features, n_targets, fewest_rows):
        vectors = _VECTORS_BY_ITERATION * n_folds
    return 8 * (n_features * (vectors * n_targets + PANEL) + min(PANEL, n_features) * n_targets)


def check_folds(folds: FoldMoments, whole: Moments) -> None:
    """Raise DataError if a fold has no rows, or leaves none to train on."""
    for k, fold in enumerate(folds.folds):
        if fold.n_rows in (0, whole.n_rows):
            raise DataError(
                Message(
                    "fold {} of {} holds {} of {} rows: too few rows to cross-validate. Use fewer folds, or give "
                    "{alpha} as one number.",
                    k,
                    len(folds.folds),
                    fold.n_rows,
                    whole.n_rows,
                )
            )


def choose_alpha(
    folds: FoldMoments,
    whole: Moments,
    alphas: np.ndarray | str = "auto",
    on_score: Callable[[float, float], None] | None = None,
    factor: Factor | None = None,
    scale: float | None = None,
    left_out: Sequence[int] | None = None,
) -> SelectionResult:
    """Score strengths by exact K-fold cross-validation and choose the best.

    Parameters
    ----------
    folds : FoldMoments
        Moments of each fold.
    whole : Moments
        Moments of all rows.
    alphas : array of shape (s,) or "auto", default="auto"
        Strengths to compare. "auto" searches: by decades down from a tenth of ``scale`` until the error rises again, up
        while the error falls that way, and then the half decades beside the best.
    on_score : callable or None, default=None
        Called as ``on_score(alpha, mean_error)`` after each strength.
    factor : Factor or None, default=None
        Buffer of the factorisation, as in ``ridge``; None allocates one.
    scale : float or None, default=None
        Where a search begins; None is the mean scatter of a feature. Give that of the features if the moments are of
        coordinates of the features.
    left_out : sequence of int or None, default=None
        Folds to hold out in turn; None for all of them.

    Returns
    -------
    SelectionResult
        Mean squared errors, summed over targets, of every strength on every fold.

    Raises
    ------
    DataError
        If a fold has no rows or leaves none to train on, or if every strength is too small.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z, noise = rng.normal(size=(200, 4)), rng.normal(size=200)
    >>> y = 3 * Z[:, 0] + noise
    >>> zero = np.zeros(4), np.zeros(1)  # what the moments are about
    >>> folds = FoldMoments.of([Moments(4, 1, *zero).update(Z[k::5], y[k::5]) for k in range(5)], Z.dtype)
    >>> whole = Moments(4, 1, *zero).update(Z, y)
    >>> result = choose_alpha(folds, whole, [0.1, 1.0, 1000.0])
    >>> result.best["alpha"] < 1000, bool(result.r2[result.chosen] > 0.8)
    (True, True)
    """
    check_folds(folds, whole)
    chosen = folds.folds if left_out is None else [folds.folds[k] for k in left_out]
    scorer = _Scorer(chosen, whole, on_score, factor or Factor(whole.n_features))
    if isinstance(alphas, str):
        scale = float(whole.scatter_diagonal().mean()) if scale is None else scale
        scale = max(scale, np.finfo(float).tiny)
        better = scorer.better(scale, lambda place: -2 * _MOST_DECADES <= place <= _MOST_HALF_DECADES_UP)
        best = climb(better, (-2, 0), [(-2, 0)])
        # A half decade up tells whether the error falls upwards: a decade is mostly far off, and takes the most steps.
        if climb(better, best, [(1, 0)]) == best:
            scorer.error(scale * 10 ** ((best[0] - 1) / 2))
    else:
        for alpha in sorted(np.asarray(alphas, float).reshape(-1), reverse=True):
            scorer.error(float(alpha))
    return scorer.result()


def rough_alpha(folds: FoldMoments, whole: Moments, left_out: Sequence[int]) -> float:
    """Return roughly the best strength by the error on the folds ``left_out``, to start the search of another loss.

    The search goes by decades from the mean scatter of a feature, down or up while the error falls, and then to the
    half decade nearest to the minimum of a parabola through the best and its two neighbours. It mostly takes three
    factorisations, where ``choose_alpha`` takes five. Raise DataError in the same cases as that.
    """
    check_folds(folds, whole)
    scorer = _Scorer([folds.folds[k] for k in left_out], whole, None, Factor(whole.n_features))
    scale = max(float(whole.scatter_diagonal().mean()), np.finfo(float).tiny)
    better = scorer.better(scale, lambda place: abs(place) <= 2 * _MOST_DECADES)
    best, _ = climb(better, (0, 0), [(-2, 0), (2, 0)])
    scorer.result()  # raises where no strength is large enough
    below, least, above = (scorer.error(scale * 10 ** (place / 2)) for place in (best - 2, best, best + 2))
    bend = below - 2 * least + above
    towards = (below - above) / (2 * bend) if np.isfinite(bend) and bend > 0 else 0.0
    return scale * 10 ** ((best + round(2 * towards)) / 2)


class _Scorer:
    """Scores one strength at a time. All strengths share the buffer of the factor and the sums of the folds."""

    def __init__(
        self, folds: Sequence[Moments], whole: Moments, on_score: Callable[[float, float], None] | None, factor: Factor
    ):
        self.whole = whole
        self.folds = [Fold(fold, whole) for fold in folds]
        self.factor = factor
        fewest = whole.n_rows - max(fold.n_rows for fold in folds)
        iterate = iterates(whole.n_features, whole.n_targets, fewest)
        self.weights = FoldWeights(self.folds, whole, self.factor) if iterate else None
        self.scores: dict[float, tuple[np.ndarray, int]] = {}
        self.on_score = on_score

    def error(self, alpha: float) -> float:
        """Return the mean error of a strength over all rows, of errors on all folds that are computed once."""
        if alpha in self.scores:
            return self._mean(alpha)
        try:
            errors = None if self.weights is None else self.weights.errors(alpha)
            errors = errors or (_errors_directly(self.folds, self.whole, alpha, self.factor), 0)
        except DataError:
            # The strength is too small for all rows or those of a fold. It is listed with infinite errors and cannot
            # win.
            self.scores[alpha] = (np.full(len(self.folds), np.inf), 0)
            return np.inf
        self.scores[alpha] = errors
        if self.on_score is not None:
            self.on_score(alpha, self._mean(alpha))
        return self._mean(alpha)

    def _mean(self, alpha: float) -> float:
        return float(np.average(self.scores[alpha][0], weights=[fold.count for fold in self.folds]))

    def better(self, scale: float, is_in_range: Callable[[int], bool]) -> Callable[[Setting, Setting], bool]:
        """Return what ``climb`` asks: whether a place, in half decades of ``scale``, is in range and has less error."""

        def better(setting: Setting, best: Setting) -> bool:
            least = self.error(scale * 10 ** (best[0] / 2))
            return is_in_range(setting[0]) and self.error(scale * 10 ** (setting[0] / 2)) < least

        return better

    def result(self) -> SelectionResult:
        """Return all scores; raise DataError if no strength is large enough."""
        alphas = np.array(sorted(self.scores))
        best = min(self.scores, key=self._mean)
        if not np.isfinite(self._mean(best)):
            raise DataError(
                Message(
                    "none of {alpha=!s} is large enough: the features are linearly dependent to rounding. Give larger "
                    "ones, or {alpha='auto'}.",
                    alphas,
                )
            )
        return SelectionResult(
            "folds",
            {"alpha": alphas},
            np.array([self.scores[s][0] for s in alphas]),
            np.array([fold.count for fold in self.folds]),
            int(np.searchsorted(alphas, best)),
            baseline=float(self.whole.target_scatter().sum()) / self.whole.count,
            iterations=np.array([self.scores[s][1] for s in alphas]),
        )


def _errors_directly(folds: list[Fold], whole: Moments, alpha: float, factor: Factor) -> np.ndarray:
    """Return the held-out errors of all folds at one strength, by a factorisation for each: for many targets."""
    errors = []
    for fold in folds:
        factor.of(whole, alpha, less=fold.take_from)
        W = factor.solve(fold.train_cross)
        errors.append(fold.error(W))
    return np.array(errors)


class Folds(Selection):
    """The rule of exact folds for ridge, from the moments of one pass."""

    rule: ClassVar[str] = "folds"
    usual_scores: ClassVar[int | None] = 7

    def choose(self, problem: RidgeProblem, open: OpenSettings) -> Compared:
        if open.near is not None:
            check_folds(problem.moments, problem.whole)
            near, least = open.near, open.least
            scorer = _Scorer(problem.moments.folds, problem.whole, None, problem.factor)
            climb(scorer.better(near, lambda place: near * 10 ** (place / 2) >= least), (0, 0), [(-1, 0), (1, 0)])
            return Compared(scorer.result(), problem)
        result = choose_alpha(
            problem.moments,
            problem.whole,
            "auto" if open.alpha is None else np.asarray(open.alpha),
            lambda alpha, error: self._on_score(),
            problem.factor,
            problem.scale,
        )
        return Compared(result, problem)


def score_path(
    folds: FoldMoments,
    whole: Moments,
    alphas: np.ndarray,
    solve: Callable[[Moments, np.ndarray], SparsePath],
    on_fold: Callable[[int], None] | None = None,
) -> SelectionResult:
    """Compute the exact held-out errors of the strengths of a path.

    The error of a fold is the mean of |f(z) - y|^2 over its rows.

    Parameters
    ----------
    folds : FoldMoments
        Moments of each fold.
    whole : Moments
        Moments of all rows.
    alphas : array of shape (s,)
        Strengths, descending.
    solve : callable
        Called as ``solve(moments, alphas)``; returns the ``SparsePath`` of their solutions, in the same order.
    on_fold : callable or None, default=None
        Called as ``on_fold(k)`` after each fold.

    Returns
    -------
    SelectionResult
        The errors of all strengths, of which the smallest mean is chosen.

    Raises
    ------
    ValueError
        If the strengths do not descend.
    DataError
        If a fold has no rows or leaves none to train on.

    Examples
    --------
    >>> from chimap.solvers.sparse import elastic_net
    >>> rng = np.random.default_rng(0)
    >>> Z, noise = rng.normal(size=(200, 4)), rng.normal(size=200)
    >>> y = 3 * Z[:, 0] + noise
    >>> zero = np.zeros(4), np.zeros(1)  # what the moments are about
    >>> folds = FoldMoments.of([Moments(4, 1, *zero).update(Z[k::5], y[k::5]) for k in range(5)], Z.dtype)
    >>> whole = Moments(4, 1, *zero).update(Z, y)
    >>> score_path(folds, whole, np.array([10.0, 0.01]), elastic_net).best["alpha"]
    0.01
    """
    check_folds(folds, whole)
    if (np.diff(alphas) > 0).any():  # solutions would be paired with the wrong strengths
        raise InputError(f"alphas must descend, as a path does: sort them; got {np.asarray(alphas).tolist()}.")
    errors = []
    for k, fold in enumerate(folds.folds):
        errors.append([held_out_error(fold, solution) for solution in solve(whole - fold, alphas).solutions])
        if on_fold is not None:
            on_fold(k)
    counts = np.array([fold.count for fold in folds.folds])
    chosen = int(np.argmin(np.average(errors, axis=0, weights=counts)))
    total = float(whole.target_scatter().sum()) / whole.count
    return SelectionResult("folds", {"alpha": alphas}, np.array(errors).T, counts, chosen, baseline=total)


class PathFolds(Selection):
    """The rule of exact folds along a path of strengths, from moments.

    With too few rows for folds, the middle of the path is taken.
    """

    rule: ClassVar[str] = "folds"
    compares_more: ClassVar[bool] = True

    def choose(self, problem: GroupProblem, open: OpenSettings) -> Compared:
        alphas = open.path_below(problem.largest, problem.smallest)
        problem.along(alphas)
        if open.is_fixed or problem.n_folds == 1:
            return Compared(None, problem, alpha=float(alphas[alphas.size // 2]))
        return Compared(score_path(problem.moments, problem.whole, alphas, problem.path_of), problem)
