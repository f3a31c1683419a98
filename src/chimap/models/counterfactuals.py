"""Counterfactuals: the least change of counts that gives a row another answer.

    minimise  |d|_1   subject to   answer(x + d) = target,   0 <= x + d <= u,   d_i = 0 for bins that may not move,

with d whole where the row is, and u the largest value of each bin in real rows, if there are any: beyond these a kernel
says nothing of the world. Changes by powers of two of single bins are tried together; the one that gains the most
margin for each count is kept until the answer flips. Then bins move back as far as the answer stays, by themselves or
where another bin takes over all but a step of it, until none can. The result is a local minimum: an exact solution of
this integer programme is out of reach for kernels that mix the bins.

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
from chimap._formatting import plain
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
    before, after : object
        The answer for the row as it is, and once it is changed.
    bins : ndarray of shape (k,)
        Places of the bins that change, the largest change first.
    names, values, changes : ndarray of shape (k,)
        Their names, their values in the row, and what is added to them.
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
        changes = [{"bin": i, "name": str(name), "value": value, "change": by} for i, name, value, by in listed]
        found: JSON = plain({"before": self.before, "after": self.after, "size": self.size, "changes": changes})
        return found | {"nearest": self.nearest, "distance": self.distance}

    def __str__(self) -> str:
        """Return the change as a sentence, with at most five bins."""
        listed = zip(self.names, self.values, self.changes, strict=True)
        said = [
            f"{name if isinstance(name, str) else f'bin {name}'} {value + change:.6g} instead of {value:.6g}"
            for name, value, change in listed
        ]
        more = f" and {len(said) - 5} more bins" if len(said) > 5 else ""
        near = "" if self.nearest is None else f"; the nearest row is {self.nearest}, {self.distance:.6g} away"
        return f"{self.after} instead of {self.before} with {', '.join(said[:5])}{more}{near}"


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
            changes = None
            if before != target:
                changes = least_change(row, free, np.maximum(highest, row), _judge(model, before, target))
            if changes is None:
                found.append(None)
                continue
            after = _answers(model, row[None] + changes)[0]
            bins = np.argsort(-np.abs(changes), kind="stable")[: np.count_nonzero(changes)]
            place = distance = None
            if real is not None and (answers == after).any():
                distances = np.where(answers == after, np.abs(real - row).sum(axis=1), np.inf)
                place, distance = int(np.argmin(distances)), float(distances.min())
            told = row[bins], changes[bins], place, distance
            found.append(Counterfactual(plain(before), plain(after), bins, names[bins], *told))
    return found


def least_change(row: np.ndarray, free: np.ndarray, highest: np.ndarray, judge: Judge) -> np.ndarray | None:
    """Return what is added to the row (columns,), or None if no change that flips the answer is found.

    free: the bins that may change. highest (columns,): the largest value of each.
    """
    is_whole = bool((row == np.rint(row)).all())
    filled = row[row > 0]
    unit = 1.0 if is_whole or not filled.size else float(filled.mean()) / _PARTS
    least = unit if is_whole else unit / 64
    sizes = _powers(max(float(filled.sum()), unit), unit)
    changes = np.zeros(row.size)
    margin = float(judge(row[None])[0][0])
    for _ in range(_MOST_STEPS):
        # both ends of the sizes say which bins are worth the others
        bins, steps = _steps(row + changes, free, highest, sizes[[0, -1]])
        if not bins.size:
            return None
        gains = _margins(judge, row + changes, bins, steps)[0] - margin
        best = np.unique(bins[np.argsort(-gains / np.abs(steps), kind="stable")[:_TRIED]])
        best = np.union1d(best, bins[np.argsort(-gains, kind="stable")[:_TRIED]])
        bins, steps = _steps(row + changes, best, highest, sizes)
        margins, is_flipped = _margins(judge, row + changes, bins, steps)
        gained = (margins - margin) / np.abs(steps)
        chosen = np.argmin(np.where(is_flipped, np.abs(steps), np.inf)) if is_flipped.any() else np.argmax(gained)
        if not is_flipped.any() and gained[chosen] <= 0:
            return None
        changes[bins[chosen]] += steps[chosen]
        if is_flipped.any():
            found: np.ndarray | None = changes
            while found is not None:
                changes, found = found, _smaller(row, found, best, highest, (unit, least), judge)
            return changes
        margin = float(margins[chosen])
    return None


def _powers(largest: float, unit: float) -> np.ndarray:
    """Return the unit times powers of two, up to the largest."""
    return unit * 2.0 ** np.arange(int(np.log2(max(largest / unit, 1))) + 1)


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


def _smaller(
    row: np.ndarray,
    changes: np.ndarray,
    free: np.ndarray,
    highest: np.ndarray,
    units: tuple[float, float],
    judge: Judge,
) -> np.ndarray | None:
    """Return smaller changes (columns,) that keep the answer, or None: a bin moves back, in steps of the second unit.

    If none can, another bin takes over all but the first unit of it.
    """
    unit, least = units
    moved = np.flatnonzero(changes)
    far = np.abs(changes[moved, None])
    back = np.minimum(_powers(float(far.max()), least), far)
    bins, back = np.repeat(moved, back.shape[1]), (back * -np.sign(changes[moved, None])).ravel()
    order = np.argsort(-np.abs(back), kind="stable")
    changed = [(changes, bins[order], back[order])]
    for place, step in zip(bins[order], back[order], strict=True):
        if abs(step) + unit <= abs(changes[place]):
            without = changes.copy()
            without[place] += step + unit * np.sign(step)
            changed.append((without, *_steps(row + without, free, highest, np.array([abs(step)]))))
    for begun, bins, steps in changed:
        is_flipped = _margins(judge, row + begun, bins, steps)[1]
        if is_flipped.any():
            found = begun.copy()
            found[bins[is_flipped][0]] += steps[is_flipped][0]
            return found
    return None


def _judge(model: Model, before: object, target: object) -> Judge:
    """Return how far changed rows are from another answer than ``before``, or from ``target``, and which have it."""
    classes = model.answers.classes
    assert classes is not None
    wanted = classes != before if target is None else classes == target

    def judge(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        outputs = model.outputs_of_all(model.preparation(rows, 0, "X"))
        scores, answers = class_scores(outputs), model.answers.predicted(outputs)
        margins = scores[:, wanted].max(axis=1) - scores[:, ~wanted].max(axis=1)
        return margins, answers != before if target is None else answers == target

    return judge


def _answers(model: Model, rows: np.ndarray) -> np.ndarray:
    return np.asarray(model.answers.predicted(model.outputs_of_all(model.preparation(rows, 0, "X"))))


def _raw(model: Model, X: MatrixLike | Source) -> np.ndarray:
    """Return rows (n, columns) in the columns of the fit, not normalised."""
    source = model.schema.rows(X)
    return np.asarray(_arrays.to_dense(source.block(0, source.n_rows).X), dtype=np.float64)
