"""What a model says of rows that it has not seen: each left out alone by the factor, or held out in a fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap.losses import Loss
from chimap.moments import Moments, of_entries
from chimap.solvers.ridge import Factor

_LARGEST = 1 - 1e-6  # of leverages: beyond, a row alone holds its output
_ROWS = 256  # that are in float64 together
_STEP = 1e-3  # of the difference that a second derivative is taken as


@dataclass(frozen=True)
class Witnesses:
    """Some rows of the source, of which outputs are wanted that have not seen them.

    rows (m,): places in the source. Z (m, D): features less the shift of the moments. Y (m, t): targets less theirs.
    folds (m,). weights (m,), or (m, t) of the targets, or None.
    """

    rows: np.ndarray
    Z: np.ndarray
    Y: np.ndarray
    folds: np.ndarray
    weights: np.ndarray | None = None

    def of(self, members: np.ndarray) -> Witnesses:
        """Some of them."""
        weights = None if self.weights is None else self.weights[members]
        return Witnesses(self.rows[members], self.Z[members], self.Y[members], self.folds[members], weights)


@dataclass(frozen=True)
class HeldOut:
    """Outputs (m, t) of rows by machines that have not seen them. rows (m,): places in the source. noise (t,): variance
    of the targets about the outputs of a machine that is sure, where it is known."""

    rows: np.ndarray
    outputs: np.ndarray
    noise: np.ndarray | None = None


def leverages(
    moments: Moments, strengths: float | np.ndarray, Z: np.ndarray, factor: Factor | None = None
) -> np.ndarray:
    """h_i = 1/n + z_i'(Hc + strengths)^-1 z_i, (m,), of rows Z (m, D) less the shift of the moments, z_i less the mean.

    strengths: of the ridge, one or (D,).
    """
    factor = factor or Factor(moments.n_features)
    factor.of(moments, strengths)
    h, mean = np.empty(Z.shape[0]), moments.feature_sum / moments.count
    for first in range(0, Z.shape[0], _ROWS):
        rows = slice(first, first + _ROWS)
        centred = Z[rows].astype(np.float64) - mean
        h[rows] = np.square(factor.cholesky.whiten(centred.T)).sum(axis=0) + 1 / moments.count
    return h


def left_out(
    loss: Loss, targets: np.ndarray, outputs: np.ndarray, h: np.ndarray, curvature: float = 1.0
) -> np.ndarray:
    """Outputs (m, t) for each row of a machine without it: f + l'(f) h / (c (1 - h)), exact for the square loss.

    h (m,) or (m, t): leverages, times the weights of the rows or of their targets, of the matrix of second derivatives
    in which every row has the curvature c: 1 of the square, and of other losses the mean of l''. A row is taken from
    the matrix with that same c, so that h < 1 is all there is to it: with its own l'' a row near the border would be
    taken out several times over.

    References
    ----------
    Allen, The relationship between variable selection and data augmentation (1974), for the square; Rad and Maleki, A
    scalable estimate of the out-of-sample prediction error via approximate leave-one-out (2020), for the step.
    """
    share = np.minimum(of_entries(h), _LARGEST)
    return np.asarray(outputs + loss.gradient(targets, outputs) * share / (curvature * (1 - share)))


def curvatures(loss: Loss, targets: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """l'' at the outputs, by a central difference of l'."""
    above, below = loss.gradient(targets, outputs + _STEP), loss.gradient(targets, outputs - _STEP)
    return np.asarray((above - below) / (2 * _STEP))


def noise_of(residuals: np.ndarray, left_out: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The variance of the noise (t,), from residuals (m, t) of rows by the machine of all, and by those without each.

    Leaving a row out scales its residual by 1 + q of the machine without it (see ``posterior``), which is how much
    larger its variance is than that of the noise: their product has the noise's on the mean.
    """
    return np.average(residuals * left_out, axis=0, weights=weights)


def kernel_left_out(
    inverse_diagonal: np.ndarray,
    duals: np.ndarray,
    Y: np.ndarray,
    alpha: float,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Outputs (n, t) of kernel ridge with a free intercept for each row left out.

    inverse_diagonal (n,): of (K + alpha diag(1/w))^-1, K centred by the weights w (n,) of the rows (None: 1), whose
    product with Y less its mean is duals (n, t).
    """
    w = np.ones(len(Y)) if weights is None else weights
    left = np.maximum(alpha * inverse_diagonal / w - w / w.sum(), 1 - _LARGEST)
    return np.asarray(Y - alpha * duals / (w * left)[:, None])
