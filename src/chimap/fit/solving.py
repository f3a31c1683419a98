"""From what passes over the rows have given to the weights: by moments alone, by further passes, or by LIBLINEAR.

``strengths`` of the penalty are "auto", one number, or those to choose from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap.engines import Progress, Stopwatch
from chimap.engines.device import on_host
from chimap.engines.keeping import KeptFeatures
from chimap.engines.rows import FeatureRows
from chimap.fit.liblinear import HingeFitter
from chimap.fit.smooth import HeldOutLosses, SmoothFitter, fit_loss, named_loss, unshifted
from chimap.losses import Loss, Square
from chimap.moments import FoldMoments
from chimap.solvers import LinearSolution, StrengthScores, choose_strength, ridge
from chimap.solvers.principal import DECADES, PrincipalScores, leading, score_leading
from chimap.solvers.ridge import Factor


@dataclass(frozen=True)
class Learned:
    """Weights for the features and targets as they are, and how they were found.

    loss: None for the hinge. strength_scores, loss_scores: of the strengths that were compared, by folds of ridge or by
    the loss on the rows held out. n_passes: over the rows; LIBLINEAR's own are not counted. n_rows: learned from.
    """

    solution: LinearSolution
    loss: Loss | None
    strength_scores: StrengthScores | None
    loss_scores: HeldOutLosses | None
    n_passes: int
    n_rows: int


def by_moments(
    moments: FoldMoments, strengths: Any, device: str, clock: Stopwatch, progress: Progress
) -> Learned:
    """Ridge at a strength, or at the best of several by exact folds."""
    whole = moments.whole()
    factor = _factor(whole.n_features, device)
    scores = None
    if len(moments.folds) > 1:
        with clock("choose strength"):
            progress.stage("strength", 7, "strengths")
            scores = choose_strength(
                moments, whole, strengths, lambda strength, error: progress.advance(), factor
            )
        strength = scores.best
    else:
        one = _to_try(strengths)
        strength = one if isinstance(one, float) else float(whole.scatter_diagonal().mean() or 1.0)
    with clock("solve"):
        found = ridge(whole, strength, factor)
    return Learned(found, Square(), scores, None, 1, whole.count)


def by_components(
    moments: FoldMoments,
    borders: np.ndarray,
    numbers: Sequence[int],
    strengths: Any,
    clock: Stopwatch,
    progress: Progress,
) -> tuple[Learned, PrincipalScores]:
    """Ridge on the leading coordinates of each block, at the best number of them and strength by exact folds; weights
    of those that are left out are 0."""
    whole = moments.whole()
    given, scale = _to_try(strengths), float(whole.scatter_diagonal().mean() or 1.0)
    several = scale * DECADES if given is None else np.atleast_1d(np.asarray(given, dtype=np.float64))
    with clock("choose strength"):
        progress.stage("strength", len(numbers) * several.size, "pairs")
        scores = score_leading(moments, whole, borders, numbers, several, progress.advance)
    number, strength = scores.best
    kept = leading(borders, number)
    with clock("solve"):
        found = ridge(whole.of_features(kept), strength)
    coef = np.zeros((whole.n_features, whole.n_targets))
    coef[kept] = found.coef
    solution = LinearSolution(coef, found.intercept, strength)
    return Learned(solution, Square(), scores.of_strengths(number), None, 1, whole.count), scores


def by_passes(
    loss: str | Loss,
    moments: FoldMoments,
    rows: FeatureRows,
    strengths: Any,
    clock: Stopwatch,
    progress: Progress,
) -> Learned:
    """A smooth loss by L-BFGS from ridge on, at a strength, or at the best of several by the loss on one fold."""
    whole, n_folds, several = moments.whole(), len(moments.folds), _to_try(strengths)
    with clock("choose strength"):
        progress.stage("strength", 7, "strengths")
        first = float(whole.scatter_diagonal().mean() or 1.0)
        if several is None and n_folds > 1:
            first = choose_strength(moments, whole, on_score=lambda strength, error: progress.advance()).best
    with clock("passes"):
        progress.stage("passes", None, "passes")
        loss = named_loss(loss, whole) if isinstance(loss, str) else loss
        fitter = SmoothFitter(loss, rows, whole, progress.advance)
        fit = fit_loss(fitter, n_folds, several, first * loss.curvature)
    return Learned(unshifted(fit.solution, whole), loss, None, fit.scores, fit.passes, whole.count)


def by_liblinear(
    kept: KeptFeatures, strengths: Any, seed: int, clock: Stopwatch, progress: Progress
) -> Learned:
    """The hinge on features in memory, at a strength, or at the best of several by the loss on one fold."""
    with clock("solve"):
        progress.stage("solving", None, "classes")
        kept.stack()
        fitter = HingeFitter(kept, seed, progress.advance)
        fit = fit_loss(fitter, kept.n_folds, _to_try(strengths), fitter.usual_strength())
    return Learned(fit.solution, None, None, fit.scores, fit.passes, kept.Y.shape[0])


def _to_try(strengths: Any) -> float | Sequence[float] | None:
    """One number, several, or None for a search."""
    if isinstance(strengths, str):
        return None
    return float(strengths) if np.ndim(strengths) == 0 else strengths


def _factor(n_features: int, device: str) -> Factor:
    if on_host(device):
        return Factor(n_features)
    from chimap.solvers.device import DeviceFactor

    return DeviceFactor(n_features, device) if DeviceFactor.fits(n_features, device) else Factor(n_features)
