"""From outputs to probabilities, and to the second of two classes, fitted on held-out outputs.

Two classes get Platt's sigmoid; more classes get a softmax of the outputs and of a sigmoid of each class. The threshold
on the output above which a row is assigned to the second of two classes may be chosen by what errors cost. Classifiers
do both after a fit, on the held-out outputs that come with it.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_expit, log_softmax

from chimap._messages import Message
from chimap._onnx import Value
from chimap._types import Shape
from chimap._validation import DataError, ParameterError
from chimap.model_files import register
from chimap.moments import of_entries

_PRIOR = 3.0  # precision of the Gaussian prior of a class's parameters: about the weight of three rows
_MOST_SCALE = 1e6  # bound on the scale over that of the outputs: separable classes have no optimum
_TINY = 1e-12
_GRADIENT, _DECREASE, _MOST_STEPS = 1e-6, 1e-12, 1000  # at which a descent stops, per row of the smallest class
_CLOSE = 1e-9  # relative amount by which the predicted class leads one of equal probability

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""Returns value and gradient at the parameters."""


@dataclass(frozen=True)
class Calibration:
    """P(class | outputs f): softmax(scale f + power ln s(f) + offsets), or 1 / (1 + exp(-scale f - offset)) of two.

    s_k(f_k) = 1 / (1 + exp(-a_k f_k - b_k)) is the sigmoid of class k against all others. An output states how certain
    one class is against the rest, and all outputs are low for a row that belongs to none: the sigmoid levels off where
    the class is certain, whereas the exponent of a softmax keeps growing. The likelihood weights both; neither weight
    is negative.

    The class of the largest output, which is the one predicted, is never less probable than another: where it would be,
    it and the classes above it get their mean probability.

    Parameters
    ----------
    scale : float
        Factor of the outputs, one over the temperature.
    offsets : array of shape (t,)
        Offsets of the classes, or of the second of two.
    sigmoids : array of shape (2, t) or None, default=None
        Slopes a and offsets b of the sigmoids; None for two classes, and if the power is 0.
    power : float, default=0.0
        Exponent of the sigmoids.

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
    offsets: Annotated[np.ndarray, Shape("t")]
    sigmoids: Annotated[np.ndarray | None, Shape(2, "t")] = None
    power: float = 0.0

    @classmethod
    def of(cls, outputs: np.ndarray, place: np.ndarray, weights: np.ndarray | None = None) -> Calibration:
        """Return the calibration of least log-loss.

        The parameters of a single class have a normal prior: offsets about 0, sigmoids about the one that is common to
        all. Targets of sigmoids are those of Platt, (m + 1) / (m + 2) for a class of m rows.

        Parameters
        ----------
        outputs : array of shape (m, t)
            Held-out outputs.
        place : array of int of shape (m,)
            Index of the class of each row.
        weights : array of shape (m,) or None, default=None
            How often each row counts, as ``moments.as_counts`` gives it.
        """
        t = outputs.shape[1]
        if not outputs.shape[0]:
            return cls(1.0, np.zeros(t))
        w = np.ones(outputs.shape[0]) if weights is None else weights
        size = float(np.sqrt(np.average(np.square(outputs - outputs.mean(axis=0)).mean(axis=1), weights=w)))
        unit = 1 / max(size, _TINY)
        F = outputs * unit
        if t == 1:
            slope, offset = _sigmoids(F, place[:, None] == 1, w)[:, 0]
            return cls(float(slope) * unit, np.array([offset]))
        is_class = place[:, None] == np.arange(t)
        common = _sigmoids(F.reshape(-1, 1), is_class.reshape(-1, 1), np.repeat(w, t))
        sigmoids = _sigmoids(F, is_class, w, common)
        loss = _softmax(F, _log_sigmoids(F, sigmoids), place, w)
        bounds = [(0, _MOST_SCALE)] * 2 + [(None, None)] * t
        start = np.concatenate([[0.5, 0.5], np.zeros(t)])
        end = _least(loss, start, bounds)
        power, class_sigmoids = float(end[1]), sigmoids * np.array([[unit], [1.0]])
        return cls(float(end[0]) * unit, end[2:], class_sigmoids if power else None, power)

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Return probabilities (n, classes) of outputs (n, t); each row sums to one."""
        return np.exp(self.log(outputs))

    def log(self, outputs: np.ndarray) -> np.ndarray:
        """Return the logarithms of the probabilities, without underflow."""
        scores = self.scale * outputs + self.offsets
        if outputs.shape[1] == 1:
            # strictly increasing, and of the sign of the output
            edge = _CLOSE * self.scale * outputs
            scores = np.where(outputs > 0, np.maximum(scores, edge), np.minimum(scores, edge))
            return np.hstack([log_expit(-scores), log_expit(scores)])
        if self.sigmoids is not None:
            scores += self.power * _log_sigmoids(outputs, self.sigmoids)
        return _agreeing(np.asarray(log_softmax(scores, axis=1)), np.argmax(outputs, axis=1))

    def onnx(self, outputs: Value) -> Value:
        """Return the probabilities (n, classes) of outputs (n, t), in float64, as a value of an ONNX graph."""
        outputs = outputs.cast(np.float64)
        scores = outputs * self.scale + self.offsets
        if self.offsets.size == 1:
            edge = outputs * (_CLOSE * self.scale)
            scores = (outputs > 0.0).where(scores.at_least(edge), scores.at_most(edge))
            both = [(scores * -1.0).apply("Sigmoid"), scores.apply("Sigmoid")]
            return outputs.graph.concatenated(both, 1)
        if self.sigmoids is not None:
            of_classes = outputs * self.sigmoids[0] + self.sigmoids[1]
            tail = ((of_classes.apply("Abs") * -1.0).apply("Exp") + 1.0).apply("Log")
            scores = scores + (of_classes.at_most(0.0) - tail) * self.power
        return _onnx_agreeing(outputs.graph.node("Softmax", scores, axis=1), outputs, self.offsets.size)


@dataclass(frozen=True)
class TaskCalibration:
    """P(1 | output f) of several tasks of two classes: 1 / (1 + exp(-scale f - offset)).

    Parameters
    ----------
    scales : array of shape (t,)
        Scale of each task.
    offsets : array of shape (t,)
        Offset of each task.

    Examples
    --------
    >>> f = np.array([[-2.0, 1.0], [-1.0, -1.0], [1.0, 2.0], [2.0, -2.0]])
    >>> calibration = TaskCalibration.of(f, np.array([[0, np.nan], [0, 0], [1, 1], [1, 0]]))
    >>> (calibration(f) > 0.5).tolist()
    [[False, True], [False, False], [True, True], [True, False]]
    """

    scales: Annotated[np.ndarray, Shape("t")]
    offsets: Annotated[np.ndarray, Shape("t")]

    @classmethod
    def unknown(cls, n_tasks: int) -> TaskCalibration:
        """Return the calibration if no rows were held out: scales 1 and offsets 0."""
        return cls(np.ones(n_tasks), np.zeros(n_tasks))

    @classmethod
    def of(cls, outputs: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None) -> TaskCalibration:
        """Return the calibration of each task, from the rows whose label is known.

        ``outputs`` (m, t) have the labels ``Y`` (m, t) of 0, 1 and NaN; ``weights`` are (m,) of rows or (m, t) of
        labels.
        """
        calibrations = []
        columns = None if weights is None else np.broadcast_to(of_entries(weights), Y.shape)
        for task, (f, y) in enumerate(zip(outputs.T, Y.T, strict=True)):
            labelled = np.flatnonzero(np.isfinite(f) & ~np.isnan(y))
            task_weights = None if columns is None else columns[labelled, task]
            calibrations.append(Calibration.of(f[labelled, None], y[labelled].astype(np.intp), task_weights))
        return cls(np.array([c.scale for c in calibrations]), np.array([c.offsets[0] for c in calibrations]))

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """Return probabilities (n, t) of label 1."""
        return np.exp(self.log(outputs))

    def log(self, outputs: np.ndarray) -> np.ndarray:
        """Return their logarithms, without underflow."""
        return self.logs(outputs)[:, :, 1]

    def onnx(self, outputs: Value) -> Value:
        """Return the probabilities (n, t) of label 1, in float64, as a value of an ONNX graph."""
        outputs = outputs.cast(np.float64)
        scores, edge = outputs * self.scales + self.offsets, outputs * (_CLOSE * self.scales)
        return (outputs > 0.0).where(scores.at_least(edge), scores.at_most(edge)).apply("Sigmoid")

    def logs(self, outputs: np.ndarray) -> np.ndarray:
        """Return logarithms of the probabilities of labels 0 and 1, (n, t, 2)."""
        tasks = zip(outputs.T, self.scales, self.offsets, strict=True)
        return np.stack([Calibration(scale, np.array([offset])).log(f[:, None]) for f, scale, offset in tasks], axis=1)


def _agreeing(logs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Change log probabilities in place, as little as possible, so that the chosen class has the largest one.

    If other classes exceed it, they and the chosen class all get their mean. This pooling is the projection onto the
    probabilities of which the chosen one is the largest.
    """
    rows = np.flatnonzero(np.argmax(logs, axis=1) != chosen)
    if not rows.size:
        return logs
    p, k = np.exp(logs[rows]), chosen[rows]
    ranks = np.arange(rows.size)
    p_chosen = p[ranks, k]
    p[ranks, k] = -1.0
    others = -np.sort(-p, axis=1)[:, :-1]
    means = (p_chosen[:, None] + others.cumsum(axis=1)) / np.arange(2, logs.shape[1] + 1)
    mean = np.maximum(p_chosen, means.max(axis=1))  # it grows as long as the next class exceeds it
    logs[rows] = np.minimum(logs[rows], np.log(mean)[:, None])
    logs[rows, k] = np.log(mean * (1 + _CLOSE))
    return logs


def _onnx_agreeing(p: Value, outputs: Value, n_classes: int) -> Value:
    """Return probabilities (n, classes) of which that of the largest output is the largest; see ``_agreeing``."""
    is_chosen = outputs.place_of_largest().expanded(1).equals(np.arange(n_classes))
    p_chosen = is_chosen.where(p, 0.0).sum(1, keep=True)
    others = is_chosen.where(p.graph.constant(-1.0), p).descending(n_classes - 1)
    means = (others.cumulated() + p_chosen) / np.arange(2, n_classes + 1)
    mean = p_chosen.at_least(means.largest())
    is_behind = p.place_of_largest().equals(outputs.place_of_largest()).apply("Not").expanded(1)
    leading = is_behind.where(mean + mean * _CLOSE, mean)  # a product with 1 + 1e-9 is optimised away
    return is_chosen.where(leading, p.at_most(mean))


def _log_sigmoids(outputs: np.ndarray, sigmoids: np.ndarray) -> np.ndarray:
    """Return ln s of the outputs, (n, t)."""
    return _sigmoid(sigmoids[0] * outputs + sigmoids[1])[1]


def _sigmoid(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return 1 / (1 + exp(-score)) and its logarithm, without overflow, from one exponential."""
    small = np.exp(-np.abs(scores))
    return np.where(scores >= 0, 1.0, small) / (1 + small), np.minimum(scores, 0) - np.log1p(small)


def _sigmoids(F: np.ndarray, is_second: np.ndarray, w: np.ndarray, about: np.ndarray | None = None) -> np.ndarray:
    """Return slopes and offsets (2, k) of the sigmoids that predict from outputs (m, k) the rows of the second class.

    Targets are those of Platt, (m + 1) / (m + 2) for a class of m rows. Logarithms of slopes, and offsets, have a prior
    about the sigmoid ``about`` (2, 1); None for no prior.
    """
    k = F.shape[1]
    second = w @ is_second
    targets = np.where(is_second, (second + 1) / (second + 2), 1 / (w.sum() - second + 2))
    # Slope and offset are nearly collinear where the outputs lie to one side of 0, as those of a rare class do: the
    # descent takes the offset at the mean output. Per row of the smaller class, the gradient says how far it has come.
    centre = (w @ F) / w.sum()
    centred, unit = F - centre, _fewest(second, w)
    origin = np.zeros(2 * k) if about is None else np.repeat([np.log(about[0, 0]), about[1, 0]], k)
    prior = 0.0 if about is None else _PRIOR

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        slopes = np.exp(x[:k])
        scores = slopes * centred + x[k:]
        p, logs = _sigmoid(scores)
        # ln(1 - sigmoid) is ln sigmoid less the score. Sums are not products of BLAS, whose threads would cost more.
        fits = (w[:, None] * (logs - (1 - targets) * scores)).sum()
        errors = w[:, None] * (p - targets)
        from_origin = x - origin
        from_origin[k:] -= slopes * centre  # the prior is of the offset at 0
        value = 0.5 * prior * np.square(from_origin).sum() - fits
        of_slopes = slopes * ((errors * centred).sum(axis=0) - prior * centre * from_origin[k:])
        gradient = np.concatenate([of_slopes, errors.sum(axis=0)]) + prior * from_origin
        return float(value) / unit, gradient / unit

    bounds = [(-np.log(_MOST_SCALE), np.log(_MOST_SCALE))] * k + [(None, None)] * k
    start = origin.copy()
    start[k:] += np.exp(origin[:k]) * centre
    end = _least(loss, start, bounds)
    slopes = np.exp(end[:k])
    return np.array([slopes, end[k:] - slopes * centre])


def _fewest(of_classes: np.ndarray, w: np.ndarray) -> float:
    """Return the weight of the smallest class, of those of these weights and their complements."""
    sizes = np.minimum(of_classes, w.sum() - of_classes)
    return float(sizes[sizes > 0].min(initial=w.sum()))


def _least(loss: Objective, start: np.ndarray, bounds: Sequence[tuple[float | None, float | None]]) -> np.ndarray:
    """Return the parameters of least loss."""
    options = {"gtol": _GRADIENT, "ftol": _DECREASE, "maxiter": _MOST_STEPS}
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x)


def _softmax(F: np.ndarray, S: np.ndarray, place: np.ndarray, w: np.ndarray) -> Objective:
    """Return the loss and its gradient as a function of (scale, power, offsets)."""
    rows = np.arange(place.size)
    unit = _fewest(np.bincount(place, weights=w), w)

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        scale, power, offsets = x[0], x[1], x[2:]
        logs = log_softmax(scale * F + power * S + offsets, axis=1)
        value = -(w * logs[rows, place]).sum() + 0.5 * _PRIOR * offsets @ offsets
        slopes = np.exp(logs)
        slopes[rows, place] -= 1
        slopes *= w[:, None]
        of_offsets = slopes.sum(axis=0) + _PRIOR * offsets
        gradient = np.concatenate([[(slopes * F).sum(), (slopes * S).sum()], of_offsets])
        return float(value) / unit, gradient / unit

    return loss


THRESHOLDS = ("f1", "balanced")
"""Words for a threshold that is chosen on held-out rows."""


def checked_threshold(threshold: str | float | None) -> None:
    """Raise ValueError unless the threshold is None, one of ``THRESHOLDS``, or a cost above 0."""
    if threshold is None or (isinstance(threshold, str) and threshold in THRESHOLDS):
        return
    is_number = isinstance(threshold, numbers.Real) and not isinstance(threshold, bool)
    if not (is_number and 0 < float(threshold) < np.inf):
        raise ParameterError(
            "threshold",
            threshold,
            "None, 'f1', 'balanced', or a cost above 0 (of missing a row of the second class, in units of a false "
            "alarm)",
        )


def best_threshold(
    outputs: np.ndarray, is_second: np.ndarray, wanted: str | float, weights: np.ndarray | None = None
) -> float:
    """Return the threshold c for which "f > c is the second class" is best on held-out rows.

        "f1":        2 TP / (2 TP + FP + FN) is largest
        "balanced":  (TP / P + TN / N) / 2 is largest
        a cost:      cost FN + FP is least

    These are sums of weights of rows, and the second class is the positive one. The threshold lies between two
    outputs; among equally good ones it is 0, or the nearest to 0.

    Parameters
    ----------
    outputs : array of shape (m,)
        Outputs of held-out rows.
    is_second : array of bool of shape (m,)
        Whether each row is of the second class.
    wanted : "f1", "balanced" or float
        What is optimised; a number is the cost of missing a row of the second class, in units of a false alarm.
    weights : array of shape (m,) or None, default=None
        Weights of the rows.

    Returns
    -------
    float
        The threshold.

    Raises
    ------
    DataError
        If the rows are of one class.

    Examples
    --------
    >>> f, y = np.array([-2.0, -1.0, -0.5, -0.4]), np.array([False, False, True, True])
    >>> best_threshold(f, y, "f1")
    -0.75
    """
    if is_second.all() or not is_second.any():
        raise DataError(
            Message(
                "{threshold=} is chosen on held-out rows, but the {} that are held out have one class only: too "
                "few rows. Leave {threshold} out.",
                wanted,
                outputs.size,
            )
        )
    w = np.ones(outputs.size) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(-outputs, kind="stable")
    f, hits, alarms = outputs[order], (w * is_second)[order], (w * ~is_second)[order]
    true = np.concatenate([[0.0], np.cumsum(hits)])  # entry k is about the k rows of largest output
    false = np.concatenate([[0.0], np.cumsum(alarms)])
    with np.errstate(invalid="ignore"):
        gain = {
            "f1": lambda: 2 * true / (true + false + true[-1]),
            "balanced": lambda: true / true[-1] - false / false[-1],
        }.get(str(wanted), lambda: true * float(wanted) - false)()
    room = max(float(np.ptp(f)), abs(float(f[0])), 1.0)
    above, below = np.append(f[0] + room, f), np.append(f, f[-1] - room)
    possible = above > below
    is_best = possible & (gain >= gain[possible].max() - 1e-12 * w.sum())
    cuts = np.where((below < 0) & (above > 0), 0.0, (above + below) / 2)[is_best]
    return float(cuts[np.argmin(np.abs(cuts))])


register(Calibration, TaskCalibration)
