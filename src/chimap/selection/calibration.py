"""From outputs to probabilities: a temperature of the softmax with an offset a class, or Platt's sigmoid, fitted on
held-out outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, softmax

from chimap.model_files import register
from chimap.moments import as_counts

_PRIOR = 3.0  # precision of the offsets, as if so many rows spoke for none
_MOST_SCALE = 1e6  # of the scale, over that of the outputs: rows that are told apart without error have none
_TINY = 1e-12
_CLOSE = 1e-9  # by which the predicted class is ahead of one that is as probable

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""Value and gradient at (log scale, offsets)."""


@dataclass(frozen=True)
class Calibration:
    """P(class | outputs f): softmax(scale f + offsets), or of two classes 1 / (1 + exp(-scale f - offset)).

    The class of the largest output, which is the one predicted, is never less probable than another: where the offsets
    would have it so, they take the mean of the two.

    Parameters
    ----------
    scale : float
        One over the temperature.
    offsets : array (t,)
        Of the classes, or of the second of two.

    References
    ----------
    Platt, Probabilistic outputs for support vector machines (1999); Guo, Pleiss, Sun and Weinberger, On calibration of
    modern neural networks (2017); Alexandari, Kundaje and Shrikumar, Maximum likelihood with bias-corrected calibration
    is hard to beat at label shift adaptation (2020), for the offsets.

    Examples
    --------
    >>> f = np.array([[-2.0], [-1.0], [1.0], [-0.5], [2.0], [0.5]])
    >>> calibration = Calibration.of(f, np.array([0, 0, 1, 1, 1, 0]))
    >>> calibration(f)[[0, 4], 1].round(2).tolist()
    [0.22, 0.78]
    """

    scale: float
    offsets: np.ndarray

    @classmethod
    def of(cls, outputs: np.ndarray, place: np.ndarray, weights: np.ndarray | None = None) -> Calibration:
        """The calibration of least log-loss of outputs (m, t) of rows whose classes are at these places (m,).

        weights (m,): how often each row counts; those that average less than one say it beside each other alone.

        The offsets have a normal prior; of two classes the targets are those of Platt, (m + 1) / (m + 2) of a class of
        m rows.
        """
        t = outputs.shape[1]
        if not outputs.shape[0]:
            return cls(1.0, np.zeros(t))
        w = np.ones(outputs.shape[0]) if weights is None else as_counts(weights)
        size = float(np.sqrt(np.average(np.square(outputs - outputs.mean(axis=0)).mean(axis=1), weights=w)))
        unit = 1 / max(size, _TINY)
        loss = _platt(outputs[:, 0] * unit, place, w) if t == 1 else _softmax(outputs * unit, place, w)
        bounds = [(-np.log(_MOST_SCALE), np.log(_MOST_SCALE)), *[(None, None)] * t]
        found = minimize(loss, np.zeros(1 + t), jac=True, method="L-BFGS-B", bounds=bounds)
        return cls(float(np.exp(found.x[0])) * unit, found.x[1:])

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Probabilities (n, classes) of outputs (n, t); each row sums to one."""
        return np.exp(self.log(outputs))

    def log(self, outputs: np.ndarray) -> np.ndarray:
        """Their logarithms, without underflow."""
        scores = self.scale * outputs + self.offsets
        if outputs.shape[1] == 1:
            # strictly increasing, and of the sign of the output
            edge = _CLOSE * self.scale * outputs
            scores = np.where(outputs > 0, np.maximum(scores, edge), np.minimum(scores, edge))
            return np.hstack([log_expit(-scores), log_expit(scores)])
        return _agreeing(np.asarray(log_softmax(scores, axis=1)), np.argmax(outputs, axis=1))


@dataclass(frozen=True)
class TaskCalibration:
    """P(1 | output f) of several tasks of two classes: 1 / (1 + exp(-scale f - offset)), a scale and an offset each.

    Parameters
    ----------
    scales, offsets : arrays (t,)

    Examples
    --------
    >>> f = np.array([[-2.0, 1.0], [-1.0, -1.0], [1.0, 2.0], [2.0, -2.0]])
    >>> calibration = TaskCalibration.of(f, np.array([[0, np.nan], [0, 0], [1, 1], [1, 0]]))
    >>> (calibration(f) > 0.5).tolist()
    [[False, True], [False, False], [True, True], [True, False]]
    """

    scales: np.ndarray
    offsets: np.ndarray

    @classmethod
    def unknown(cls, n_tasks: int) -> TaskCalibration:
        """Where no rows were held out."""
        return cls(np.ones(n_tasks), np.zeros(n_tasks))

    @classmethod
    def of(cls, outputs: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None) -> TaskCalibration:
        """Of outputs (m, t) of rows with labels Y (m, t) of 0, 1 and NaN, each task by the rows that it is seen in."""
        each = []
        for f, y in zip(outputs.T, Y.T, strict=True):
            seen = np.flatnonzero(np.isfinite(f) & ~np.isnan(y))
            own = None if weights is None else weights[seen]
            each.append(Calibration.of(f[seen, None], y[seen].astype(np.intp), own))
        return cls(np.array([c.scale for c in each]), np.array([c.offsets[0] for c in each]))

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Probabilities (n, t) of label 1."""
        return np.exp(self.log(outputs))

    def log(self, outputs: np.ndarray) -> np.ndarray:
        """Their logarithms, without underflow."""
        return self.logs(outputs)[:, :, 1]

    def logs(self, outputs: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities of labels 0 and 1, (n, t, 2)."""
        each = zip(outputs.T, self.scales, self.offsets, strict=True)
        return np.stack(
            [Calibration(scale, np.array([offset])).log(f[:, None]) for f, scale, offset in each], axis=1
        )


def _agreeing(logs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Logarithms of the nearest probabilities of which that of the chosen class is the largest, changed in place.

    Where others are above it they and it take their mean: the projection onto an order, by pooling.
    """
    rows = np.flatnonzero(np.argmax(logs, axis=1) != chosen)
    if not rows.size:
        return logs
    p, k = np.exp(logs[rows]), chosen[rows]
    ranks = np.arange(rows.size)
    own = p[ranks, k]
    p[ranks, k] = -1.0
    order = np.argsort(-p, axis=1)[:, :-1]
    above = np.take_along_axis(p, order, axis=1)
    means = (own[:, None] + above.cumsum(axis=1)) / np.arange(2, logs.shape[1] + 1)
    before = np.hstack([own[:, None], means[:, :-1]])
    pooled = np.logical_and.accumulate(above > before, axis=1)
    mean = means[ranks, pooled.sum(axis=1) - 1]
    row, place = np.nonzero(pooled)
    logs[rows[row], order[row, place]] = np.log(mean[row])
    logs[rows, k] = np.log(mean * (1 + _CLOSE))
    return logs


def _platt(f: np.ndarray, place: np.ndarray, w: np.ndarray) -> Objective:
    second = float(w[place == 1].sum())
    first = float(w.sum()) - second
    wanted = np.where(place == 1, (second + 1) / (second + 2), 1 / (first + 2))

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        scale = np.exp(x[0])
        scores = scale * f + x[1]
        value = -(w * (wanted * log_expit(scores) + (1 - wanted) * log_expit(-scores))).sum()
        slopes = w * (expit(scores) - wanted)
        return float(value) / w.sum(), np.array([scale * (slopes @ f), slopes.sum()]) / w.sum()

    return loss


def _softmax(F: np.ndarray, place: np.ndarray, w: np.ndarray) -> Objective:
    rows = np.arange(place.size)

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        scale, offsets = np.exp(x[0]), x[1:]
        scores = scale * F + offsets
        value = -(w * log_softmax(scores, axis=1)[rows, place]).sum() + 0.5 * _PRIOR * offsets @ offsets
        slopes = softmax(scores, axis=1)
        slopes[rows, place] -= 1
        slopes *= w[:, None]
        gradient = np.concatenate([[scale * np.vdot(slopes, F)], slopes.sum(axis=0) + _PRIOR * offsets])
        return float(value) / w.sum(), gradient / w.sum()

    return loss


register(Calibration, TaskCalibration)
