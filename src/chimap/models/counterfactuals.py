"""Counterfactuals: the least change of counts that gives a row another answer.

    minimise  |d|_1   subject to   answer(x + d) = target,   0 <= x + d <= u,   d_i = 0 for bins that may not move,

with d whole where the row is, and u the largest value of each bin in real rows, if there are any: beyond these a kernel
says nothing of the world. Changes by powers of two of single bins are tried together; the one that gains the most
margin for each count is kept until the answer flips. Then each change is made as small as it can be while the answer
stays, the largest first, until none can be. The result is a local minimum: no single bin can move back by one step.
An exact solution of this integer programme is out of reach for kernels that mix the bins.

References
----------
Wachter, Mittelstadt and Russell, Counterfactual explanations without opening the black box, 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from chimap import _arrays
from chimap._errors import DataError
from chimap._threads import threads
from chimap._types import JSON, MatrixLike
from chimap.data import Source
from chimap.models.answers import class_scores
from chimap.models.explain import places_of_bins
from chimap.models.model import Model

_TRIED = 64  # bins whose changes of all sizes are tried at each step
_MOST_STEPS = 200  # changes after which a row is given up
_PARTS = 16  # of the mean filled bin: the step of rows that are not whole
_NUMBERS = 2**23  # entries of changed rows that are in memory at once

Judge = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Margins (n,) of changed rows (n, columns), and whether they have flipped, (n,)."""


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """The least change that gives a row another answer, and the real row with that answer nearest to it.

    Parameters
    ----------
    before : object
        The answer for the row as it is.
    after : object
        Its answer once it is changed.
    bins : ndarray of shape (k,)
        Places of the bins that change, the largest change first.
    names : ndarray of shape (k,)
        Their names.
    values : ndarray of shape (k,)
        Their values in the row.
    changes : ndarray of shape (k,)
        What is added to them.
    nearest : int, str or None, default=None
        Place, among the rows that were given to compare with, of the nearest one with the answer ``after``; on pages
        its name.
    distance : float or None, default=None
        Its distance from the row: the sum of the absolute differences of the bins.
    """

    before: object
    after: object
    bins: np.ndarray
    names: np.ndarray
    values: np.ndarray
    changes: np.ndarray
    nearest: int | str | None = None
    distance: float | None = None

    @property
    def size(self) -> float:
        """The sum of the absolute changes."""
        return float(np.abs(self.changes).sum())

    def as_dict(self) -> JSON:
        """Return the change as JSON types."""
        listed = zip(self.bins, self.names, self.values, self.changes, strict=True)
        return {
            "before": self.before,
            "after": self.after,
            "size": self.size,
            "changes": [
                {"bin": int(i), "name": str(name), "value": float(value), "change": float(change)}
                for i, name, value, change in listed
            ],
            "nearest": self.nearest,
            "distance": self.distance,
        }

    def __str__(self) -> str:
        """Return the change as a sentence, with at most five bins."""
        listed = zip(self.names, self.values, self.changes, strict=True)
        said = [
            f"{name if isinstance(name, str) else f'bin {name}'} {value + change:.6g} instead of {value:.6g}"
            for name, value, change in listed
        ]
        more = f" and {len(said) - 5} more bins" if len(said) > 5 else ""
        return f"{self.after} instead of {self.before} with {', '.join(said[:5])}{more}"


def counterfactuals(
    model: Model,
    X: MatrixLike | Source,
    *,
    target: object = None,
    movable: Sequence[int] | Sequence[str] | None = None,
    among: MatrixLike | Source | None = None,
) -> list[Counterfactual | None]:
    """Return the least change of each row that flips its answer.

    Changed bins stay non-negative, whole in rows that are whole, and within the values of ``among``. The change is a
    local minimum of the sum of absolute changes: no single bin can move back by one step.

    Parameters
    ----------
    X : array, sparse matrix, data frame or source of n rows
        Rows to change.
    target : object, default=None
        The class to reach; None takes any other than the answer.
    movable : sequence of int or str, default=None
        Places, names or globs of the bins that may change; None takes all.
    among : array, sparse matrix, data frame or source, default=None
        Real rows: the nearest with the new answer is told, and no bin rises above its largest value in them.

    Returns
    -------
    list of Counterfactual or None
        One for each row; None where no change of these bins was found, or the answer is ``target`` already.

    Raises
    ------
    DataError
        If the model does not answer with one of several classes, or has no such class or bins.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> model = HistogramClassifier("chi2", alpha=1.0).fit(X[1:], y[1:])
    >>> change = model.counterfactuals(X[:1])[0]
    >>> change.before, change.after, bool(change.size < X[0].sum())
    (0, 1, True)
    """
    classes = model.answers.classes
    if classes is None or model.answers.is_multilabel:
        raise DataError(
            f"a {model.schema.owner} of numbers or several tasks has no answer that flips: counterfactuals need one "
            "label of several classes."
        )
    if target is not None and target not in classes.tolist():
        raise DataError(f"target: {target!r} is none of the classes {', '.join(map(str, classes[:10].tolist()))}.")
    names = model.bin_names
    n_bins = model.schema.n_features  # columns of covariates stay as they are
    free = np.arange(n_bins) if movable is None else np.unique(places_of_bins(names, movable, model.recipe.estimator))
    free = free[free < n_bins]
    rows = _raw(model, X)
    real = None if among is None else _raw(model, among)
    highest = np.full(model.n_bins, np.inf) if real is None else real.max(axis=0)
    found: list[Counterfactual | None] = []
    with threads(model.n_jobs):
        answers = None if real is None else _answers(model, real)
        for row in rows:
            before = _answers(model, row[None])[0]
            if before == target:
                found.append(None)
                continue
            changed = least_change(row, free, np.maximum(highest, row), _judge(model, before, target))
            if changed is None:
                found.append(None)
                continue
            after = _answers(model, changed[None])[0]
            bins = np.flatnonzero(changed != row)
            bins = bins[np.argsort(-np.abs(changed - row)[bins], kind="stable")]
            place, distance = _nearest(row, real, None if answers is None else answers == after)
            found.append(
                Counterfactual(
                    _item(before),
                    _item(after),
                    bins,
                    names[bins],
                    row[bins],
                    changed[bins] - row[bins],
                    place,
                    distance,
                )
            )
    return found


def least_change(row: np.ndarray, free: np.ndarray, highest: np.ndarray, judge: Judge) -> np.ndarray | None:
    """Return the changed row (columns,), or None if no change that flips the answer is found.

    free: the bins that may change. highest (columns,): the largest value of each.
    """
    is_whole = bool((row == np.rint(row)).all())
    filled = row[row > 0]
    unit = 1.0 if is_whole or not filled.size else float(filled.mean()) / _PARTS
    largest = max(float(filled.sum()), unit)
    sizes = unit * 2.0 ** np.arange(int(np.log2(largest / unit)) + 1)
    changed = row.astype(np.float64)
    margin = float(judge(changed[None])[0][0])
    for _ in range(_MOST_STEPS):
        # both ends of the sizes say which bins are worth the others
        bins, steps = _steps(changed, free, highest, sizes[[0, -1]])
        if not bins.size:
            return None
        gains = _margins(judge, changed, bins, steps)[0] - margin
        best = np.unique(bins[np.argsort(-gains / np.abs(steps), kind="stable")[:_TRIED]])
        best = np.union1d(best, bins[np.argsort(-gains, kind="stable")[:_TRIED]])
        bins, steps = _steps(changed, best, highest, sizes)
        margins, is_flipped = _margins(judge, changed, bins, steps)
        if is_flipped.any():
            chosen = np.flatnonzero(is_flipped)[np.argmin(np.abs(steps[is_flipped]))]
            changed[bins[chosen]] += steps[chosen]
            return _pruned(row, changed, unit if is_whole else unit / 64, judge)
        chosen = int(np.argmax((margins - margin) / np.abs(steps)))
        if margins[chosen] <= margin:
            return None
        changed[bins[chosen]] += steps[chosen]
        margin = float(margins[chosen])
    return None


def _steps(row: np.ndarray, bins: np.ndarray, highest: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return bins and changes of them by these sizes, as far up as the highest value and as far down as 0."""
    up = np.minimum(sizes, (highest - row)[bins][:, None])
    down = -np.minimum(sizes, row[bins][:, None])
    steps = np.hstack([up, down]).ravel()
    places = np.repeat(bins, 2 * sizes.size)
    return places[steps != 0], steps[steps != 0]


def _margins(judge: Judge, row: np.ndarray, bins: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return margins and flips of the row with single bins changed, in pieces that fit in memory."""
    margins, is_flipped = np.empty(bins.size), np.empty(bins.size, dtype=bool)
    at_once = max(1, _NUMBERS // row.size)
    for start in range(0, bins.size, at_once):
        piece = slice(start, start + at_once)
        changed = np.tile(row, (bins[piece].size, 1))
        changed[np.arange(len(changed)), bins[piece]] += steps[piece]
        margins[piece], is_flipped[piece] = judge(changed)
    return margins, is_flipped


def _pruned(row: np.ndarray, changed: np.ndarray, unit: float, judge: Judge) -> np.ndarray:
    """Return the changed row with each change as small as it can be, in steps of ``unit``, while the answer stays."""
    while True:
        before = changed.copy()
        moved = np.flatnonzero(changed != row)
        for i in moved[np.argsort(-np.abs(changed - row)[moved], kind="stable")]:
            steps = np.arange(round(abs(changed[i] - row[i]) / unit)) * unit * np.sign(changed[i] - row[i])
            low, high = 0, steps.size  # steps[:low] do not flip; those of ``changed`` do
            while low < high:
                middle = (low + high) // 2
                tried = changed.copy()
                tried[i] = row[i] + steps[middle]
                if judge(tried[None])[1][0]:
                    high = middle
                else:
                    low = middle + 1
            if low < steps.size:
                changed[i] = row[i] + steps[low]
        if np.array_equal(before, changed):
            return changed


def _judge(model: Model, before: object, target: object) -> Judge:
    """Return how far changed rows are from another answer than ``before``, or from ``target``, and which have it."""
    classes = model.answers.classes
    assert classes is not None

    def judge(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        outputs = _outputs(model, rows)
        scores = class_scores(outputs)
        wanted = classes != before if target is None else classes == target
        margins = scores[:, wanted].max(axis=1) - scores[:, ~wanted].max(axis=1)
        answers = model.answers.predicted(outputs)
        return margins, answers != before if target is None else answers == target

    return judge


def _outputs(model: Model, rows: np.ndarray) -> np.ndarray:
    """Return f(x) (n, t) of rows as they are read."""
    return model.outputs_of_all(model.preparation(rows, 0, "X"))


def _answers(model: Model, rows: np.ndarray) -> np.ndarray:
    return np.asarray(model.answers.predicted(_outputs(model, rows)))


def _raw(model: Model, X: MatrixLike | Source) -> np.ndarray:
    """Return rows (n, columns) in the columns of the fit, not normalised."""
    source = model.schema.rows(X)
    return np.asarray(_arrays.to_dense(source.block(0, source.n_rows).X), dtype=np.float64)


def _nearest(row: np.ndarray, real: np.ndarray | None, is_wanted: np.ndarray | None) -> tuple[int | None, float | None]:
    """Return the place and distance of the nearest of the wanted real rows."""
    if real is None or is_wanted is None or not is_wanted.any():
        return None, None
    distances = np.abs(real - row).sum(axis=1)
    distances[~is_wanted] = np.inf
    place = int(np.argmin(distances))
    return place, float(distances[place])


def _item(value: object) -> object:
    """Return a NumPy scalar as a Python value, and anything else as it is."""
    return value.item() if hasattr(value, "item") else value
