"""From what passes over the rows have given to the weights: by moments alone, by further passes, or by LIBLINEAR.

``alpha``, the strength of the penalty, is "auto", one number, or those to choose from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import qr

from chimap.engines import Progress, Stopwatch
from chimap.engines.device import on_host
from chimap.engines.keeping import KeptFeatures
from chimap.engines.rows import FeatureRows
from chimap.fit.liblinear import HingeFitter
from chimap.fit.smooth import SmoothFitter, fit_loss, named_loss, unshifted
from chimap.losses import Loss, Square
from chimap.moments import FoldMoments, Moments
from chimap.selection import SelectionResult, choose_alpha, score_leading
from chimap.selection.components import DECADES
from chimap.selection.gcv import FEWEST_ROWS, choose_by_gcv
from chimap.solvers import LinearSolution, ridge
from chimap.solvers.principal import leading
from chimap.solvers.ridge import Factor

_FEW = 4  # features a row, from which on the coordinates of the rows' span are solved for
_SPARE = 8  # random products more than there are rows, so that they span them


@dataclass(frozen=True)
class Learned:
    """Weights for the features and targets as they are, and how they were found.

    loss: None for the hinge. selection: what was compared, by folds of ridge or by the loss on the rows held out, or
    None. n_passes: over the rows; LIBLINEAR's own are not counted. n_rows: learned from.
    """

    solution: LinearSolution
    loss: Loss | None
    selection: SelectionResult | None
    n_passes: int
    n_rows: int


def by_moments(
    moments: FoldMoments, alphas: Any, device: str, clock: Stopwatch, progress: Progress
) -> Learned:
    """Ridge at a strength, or at the best of several by exact folds."""
    whole = moments.whole()
    scale = float(whole.scatter_diagonal().mean())
    span = _span(whole) if _FEW * whole.count <= whole.n_features else None
    if span is not None:  # the weights lie in the span of the rows: in its coordinates all is of their number
        origin = np.zeros(whole.n_features)
        folds = [fold.projected(span, origin) for fold in moments.folds]
        moments, device = FoldMoments.of(folds, moments.dtype), "cpu"
        whole = moments.whole()
    factor = _factor(whole.n_features, device)
    scores = None
    if len(moments.folds) > 1:
        with clock("choose alpha"):
            progress.stage("alpha", 7, "values")
            scores = choose_alpha(
                moments, whole, alphas, lambda alpha, error: progress.advance(), factor, scale
            )
        alpha = scores.best["alpha"]
    else:
        one = _to_try(alphas)
        if (
            not isinstance(one, float) and whole.count >= FEWEST_ROWS
        ):  # no folds: generalised cross-validation
            del factor  # it has its own
            return _by_gcv(whole, alphas, scale, span, clock, progress)
        alpha = one if isinstance(one, float) else (scale or 1.0)
    with clock("solve"):
        found = ridge(whole, alpha, factor)
        if span is not None:
            found = replace(found, coef=span @ found.coef)
    return Learned(found, Square(), scores, 1, whole.count)


def _by_gcv(
    whole: Moments,
    alphas: Any,
    scale: float | None,
    span: np.ndarray | None,
    clock: Stopwatch,
    progress: Progress,
) -> Learned:
    """Ridge at the strength of least generalised cross-validation; the weights come with it."""
    with clock("choose alpha"):
        progress.stage("alpha", 4, "values")
        found, scores = choose_by_gcv(whole, alphas, lambda alpha, score: progress.advance(), scale)
    if span is not None:
        found = replace(found, coef=span @ found.coef)
    return Learned(found, Square(), scores, 1, whole.count)


def _span(whole: Moments) -> np.ndarray:
    """Orthonormal columns (D, p) that span the rows, of which there are fewer than p: from random products."""
    probes = np.random.default_rng(0).standard_normal((whole.n_features, whole.count + _SPARE))
    return np.asarray(qr(whole.features @ probes, mode="economic", check_finite=False)[0])


def by_components(
    moments: FoldMoments,
    borders: np.ndarray,
    numbers: Sequence[int],
    alphas: Any,
    clock: Stopwatch,
    progress: Progress,
) -> Learned:
    """Ridge on the leading coordinates of each block, at the best number of them and strength by exact folds; weights
    of those that are left out are 0."""
    whole = moments.whole()
    given, scale = _to_try(alphas), float(whole.scatter_diagonal().mean() or 1.0)
    several = scale * DECADES if given is None else np.atleast_1d(np.asarray(given, dtype=np.float64))
    with clock("choose alpha"):
        progress.stage("alpha", len(numbers) * several.size, "pairs")
        scores = score_leading(moments, whole, borders, numbers, several, progress.advance)
    number, alpha = scores.best["n_components"], scores.best["alpha"]
    kept = leading(borders, number)
    with clock("solve"):
        found = ridge(whole.of_features(kept), alpha)
    coef = np.zeros((whole.n_features, whole.n_targets))
    coef[kept] = found.coef
    solution = LinearSolution(coef, found.intercept, alpha)
    return Learned(solution, Square(), scores, 1, whole.count)


def by_passes(
    loss: str | Loss,
    moments: FoldMoments,
    rows: FeatureRows,
    alphas: Any,
    clock: Stopwatch,
    progress: Progress,
) -> Learned:
    """A smooth loss by L-BFGS from ridge on, at a strength, or at the best of several by the loss on one fold."""
    whole, n_folds, several = moments.whole(), len(moments.folds), _to_try(alphas)
    with clock("choose alpha"):
        progress.stage("alpha", 7, "values")
        first = float(whole.scatter_diagonal().mean() or 1.0)
        if several is None and n_folds > 1:
            first = choose_alpha(moments, whole, on_score=lambda alpha, error: progress.advance()).best[
                "alpha"
            ]
    with clock("passes"):
        progress.stage("passes", None, "passes")
        loss = named_loss(loss, whole) if isinstance(loss, str) else loss
        fitter = SmoothFitter(loss, rows, whole, progress.advance)
        fit = fit_loss(fitter, n_folds, several, first * loss.curvature)
    return Learned(unshifted(fit.solution, whole), loss, fit.scores, fit.passes, whole.count)


def by_liblinear(kept: KeptFeatures, alphas: Any, seed: int, clock: Stopwatch, progress: Progress) -> Learned:
    """The hinge on features in memory, at a strength, or at the best of several by the loss on one fold."""
    with clock("solve"):
        progress.stage("solving", None, "classes")
        kept.stack()
        fitter = HingeFitter(kept, seed, progress.advance)
        fit = fit_loss(fitter, kept.n_folds, _to_try(alphas), fitter.usual_alpha())
    return Learned(fit.solution, None, fit.scores, fit.passes, kept.Y.shape[0])


def _to_try(alphas: Any) -> float | Sequence[float] | None:
    """One number, several, or None for a search."""
    if isinstance(alphas, str):
        return None
    return float(alphas) if np.ndim(alphas) == 0 else alphas


def _factor(n_features: int, device: str) -> Factor:
    if on_host(device):
        return Factor(n_features)
    from chimap.solvers.device import DeviceFactor

    return DeviceFactor(n_features, device) if DeviceFactor.fits(n_features, device) else Factor(n_features)
