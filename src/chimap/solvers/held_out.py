"""Rows that are held out: their score, which helps choose the strength, and outputs of models that have not seen them.

``ScoredRows`` take part in the choice; the outputs of ``ValidationRows`` serve what follows a fit. A row whose group,
or fold of a splitter, must be left out with it is answered by a model of the other folds. A row that stands alone is
left out in closed form. With the leverage

    h_i = 1/n + (z_i - m)'(Hc + alpha I)^-1 (z_i - m),

ridge without row i outputs f + (f - y_i) h_i / (1 - h_i) there; other losses take one Newton step of that form. The
outputs of m rows cost D^3/3 operations for the factor and O(m D^2) for the leverages; memory is one (D, D) float64
factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from chimap.losses import Loss
from chimap.moments import Moments, of_entries
from chimap.solvers.ridge import Factor, LinearSolution

_MOST_LEVERAGE = 1 - 1e-6  # upper limit of leverages: beyond it, a row alone determines its output
_ROWS = 256  # rows that are converted to float64 together
_DIFFERENCE_STEP = 1e-3  # step of the difference that approximates a second derivative
SCORED_ROWS = 2000  # enough to know a score to a percent
_ROWS_AT_ONCE = 512  # rows that are in float64 at the same time


@dataclass(frozen=True)
class ScoredRows:
    """Features and targets of some rows, less the shifts of the moments, and the score of outputs for them.

    Parameters
    ----------
    Z : array of shape (h, D)
        Features less their shift.
    Y : array of shape (h, t)
        Targets less ``target_shift``.
    target_shift : array of shape (t,)
        Shift of the targets.
    score : callable
        Returns the score, greater is better, of outputs (h, t) for these rows.
    measure : str
        Name of the score.
    counted : array of shape (h,) or None, default=None
        Weights of the rows in the score.
    weights : array of shape (h,) or None, default=None
        Weights of the rows in the sums that they are part of.
    units : array of shape (t,) or None, default=None
        Units of the targets, which outputs are multiplied by before they are scored; None for 1.
    counts : array of shape (h,) or None, default=None
        Numbers of equal rows that the rows stand for; None for 1.
    """

    Z: np.ndarray
    Y: np.ndarray
    target_shift: np.ndarray
    score: Callable[[np.ndarray], float]
    measure: str
    counted: np.ndarray | None = None
    weights: np.ndarray | None = None
    units: np.ndarray | None = None
    counts: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.Z.shape[0])

    @property
    def weights_of_one(self) -> np.ndarray:
        """Weights (h,) of one of the equal rows that each row stands for."""
        weights = np.ones(len(self)) if self.weights is None else self.weights
        return np.asarray(weights if self.counts is None else weights / self.counts)

    def outputs(self, coef: np.ndarray, origin: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Return (z - origin)'coef + intercept, (h, t) float64, for the shifted targets."""
        outputs = np.empty((len(self), coef.shape[1]))
        for block in self.blocks():
            outputs[block] = (self.Z[block].astype(np.float64) - origin) @ coef
        return outputs + intercept

    def scored(self, outputs: np.ndarray) -> float:
        """Return the score of outputs for the shifted targets; -inf if it is not defined."""
        outputs = outputs + self.target_shift
        score = self.score(outputs if self.units is None else outputs * self.units)
        return score if np.isfinite(score) else -np.inf

    def projected(self, basis: np.ndarray) -> ScoredRows:
        """Return the rows in the coordinates of the columns of ``basis`` (D, p)."""
        return replace(self, Z=np.asarray(self.Z @ basis))

    def of_features(self, chosen: np.ndarray) -> ScoredRows:
        """Return the same rows with some of their features, given by index."""
        return replace(self, Z=self.Z[:, chosen])

    def blocks(self) -> Iterator[slice]:
        """Return slices that cover the rows."""
        return (slice(first, first + _ROWS_AT_ONCE) for first in range(0, len(self), _ROWS_AT_ONCE))


@dataclass(frozen=True)
class ValidationRows:
    """Rows of the source whose outputs are wanted from models that have not seen them.

    Parameters
    ----------
    rows : ndarray of shape (m,)
        Places in the source.
    Z : ndarray of shape (m, D)
        Features less the shift of the moments.
    Y : ndarray of shape (m, t)
        Targets less their shift.
    folds : ndarray of shape (m,)
        Fold of each row.
    weights : ndarray of shape (m,) or (m, t), or None, default=None
        Weights of the rows, or of the targets of each.
    shares : ndarray of shape (m,) or None, default=None
        How many rows of the source each row stands for, up to a factor; None if all stand for as many.
    leaves_folds : bool, default=False
        Whether a row is left out with its fold, as rows of a group must be.
    unseen : ndarray of bool of shape (m,) or None, default=None
        Rows that no landmark is made of, which are as far from the landmarks as rows to come: the models that leave
        them out are as uncertain of them. None if that holds for all.
    counts : ndarray of shape (m,) or None, default=None
        How many equal rows each row stands for; None for one.
    """

    rows: np.ndarray
    Z: np.ndarray
    Y: np.ndarray
    folds: np.ndarray
    weights: np.ndarray | None = None
    shares: np.ndarray | None = None
    leaves_folds: bool = False
    unseen: np.ndarray | None = None
    counts: np.ndarray | None = None

    def of(self, members: np.ndarray) -> ValidationRows:
        """Return the validation rows at the places ``members``."""

        def of(part: np.ndarray | None) -> np.ndarray | None:
            return None if part is None else part[members]

        return replace(
            self,
            rows=self.rows[members],
            Z=self.Z[members],
            Y=self.Y[members],
            folds=self.folds[members],
            weights=of(self.weights),
            shares=of(self.shares),
            unseen=of(self.unseen),
            counts=of(self.counts),
        )

    def of_fold(self, fold: int) -> ValidationRows:
        """Return the validation rows of a fold."""
        return self.of(np.flatnonzero(self.folds == fold))

    @property
    def counted(self) -> np.ndarray | None:
        """Weights of the rows in averages over the source, (m,) or (m, t); None if all count alike."""
        if self.shares is None or self.weights is None:
            return self.shares if self.weights is None else self.weights
        return (of_entries(self.weights) * self.shares[:, None]).reshape(self.weights.shape)


@dataclass(frozen=True)
class HeldOut:
    """Outputs of rows by models that have not seen them.

    Parameters
    ----------
    rows : ndarray of shape (m,)
        Places in the source.
    outputs : ndarray of shape (m, t)
        Outputs of the rows.
    noise : ndarray of shape (t,) or None, default=None
        Variance of the targets about the outputs of a model without uncertainty, if it is known.
    """

    rows: np.ndarray
    outputs: np.ndarray
    noise: np.ndarray | None = None


def leverages(
    moments: Moments, strengths: float | np.ndarray, Z: np.ndarray, factor: Factor | None = None
) -> np.ndarray:
    """Return h_i = 1/n + z_i'(Hc + strengths)^-1 z_i, shape (m,), where z_i is row i of Z less the mean.

    Z (m, D) is less the shift of the moments. ``strengths`` of the ridge are a number or (D,).
    """
    factor = factor or Factor(moments.n_features)
    factor.of(moments, strengths)
    return leverages_by(factor, Z, moments.feature_sum / moments.count, moments.count)


def leverages_by(factor: Factor, Z: np.ndarray, mean: np.ndarray, count: float) -> np.ndarray:
    """Return 1/count + (z_i - mean)'A^-1 (z_i - mean), shape (m,), with the matrix A that was factorised last.

    For rows that A does not contain it is the variance of their outputs over that of the noise, see ``posterior``.
    """
    h = np.empty(Z.shape[0])
    for first in range(0, Z.shape[0], _ROWS):
        rows = slice(first, first + _ROWS)
        centred = Z[rows].astype(np.float64) - mean
        h[rows] = np.square(factor.cholesky.whiten(centred.T)).sum(axis=0) + 1 / count
    return h


def by_folds(
    validation: ValidationRows, without: Callable[[int], LinearSolution], target_shift: np.ndarray, folds: Iterable[int]
) -> HeldOut:
    """Return outputs of the validation rows of some folds, each by the model of all folds but its own.

    ``without(fold)`` returns that model, for features and targets less their shifts.
    """
    rows, outputs = [np.empty(0, dtype=np.intp)], [np.empty((0, target_shift.size))]
    for fold in folds:
        held = validation.of_fold(fold)
        if held.rows.size:
            model = without(fold)
            rows.append(held.rows)
            outputs.append(held.Z @ model.coef + model.intercept + target_shift)
    return HeldOut(np.concatenate(rows), np.concatenate(outputs))


def left_out(loss: Loss, targets: np.ndarray, outputs: np.ndarray, h: np.ndarray, curvature: float = 1.0) -> np.ndarray:
    """Return the output (m, t) for each row of a model without it: f + l'(f) h / (c (1 - h)).

    This is exact for the square loss. h (m,) or (m, t) are leverages times the weights of the rows or of their targets,
    in the matrix of second derivatives where every row has the curvature c: 1 for the square loss, the mean of l'' for
    other losses. A row is taken from the matrix with the same c, so that h < 1 is the only condition: with its own l'',
    a row near the decision border would be taken out several times over.

    References
    ----------
    Allen, The relationship between variable selection and data augmentation (1974), for the square loss; Rad and
    Maleki, A scalable estimate of the out-of-sample prediction error via approximate leave-one-out (2020), for the
    step.
    """
    share = np.minimum(of_entries(h), _MOST_LEVERAGE)
    return np.asarray(outputs + loss.gradient(targets, outputs) * share / (curvature * (1 - share)))


def curvatures(loss: Loss, targets: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Return l'' at the outputs, by a central difference of l'."""
    above, below = (
        loss.gradient(targets, outputs + _DIFFERENCE_STEP),
        loss.gradient(targets, outputs - _DIFFERENCE_STEP),
    )
    return np.asarray((above - below) / (2 * _DIFFERENCE_STEP))


def noise_of(
    left_out: np.ndarray, factors: np.ndarray, weights: np.ndarray | None = None, counts: np.ndarray | None = None
) -> np.ndarray:
    """Return the variance of the noise (t,), from residuals (m, t) of rows that are left out.

    ``factors`` (m,) or (m, t) are 1 + w q of the models that have not seen them (see ``posterior``), with the weights w
    of the rows in the fit, by which the variances of these residuals exceed those of the noise. Leaving out row i alone
    multiplies its residual by that factor, 1 / (1 - h_i). A row that stands for c equal rows (``counts``, (m,)) has the
    noise of one of them, of weight w / c.
    """
    factors = of_entries(factors)
    factors = factors if counts is None else 1 + (factors - 1) / counts[:, None]
    return np.average(np.square(left_out) / factors, axis=0, weights=weights)
