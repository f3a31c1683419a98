"""Why a model predicts what it does for single rows: what each bin, landmark, pixel or atom adds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._errors import DataError
from chimap._formatting import plain
from chimap._memory import format_bytes
from chimap._messages import Message
from chimap._progress import Progress
from chimap._types import JSON
from chimap.data import ArraySource
from chimap.data.label_kinds import is_text, places_among
from chimap.data.table import declared_blocks
from chimap.models.answers import class_scores
from chimap.models.counterfactuals import Counterfactual, counterfactuals
from chimap.models.explain import explain, nearest
from chimap.models.predict import predict_chunks
from chimap.reports.pictures import PICTURE_SIDE, drawn, grey, painted, painted_photo, small_jpeg
from chimap.reports.rows import row_names, taken

if TYPE_CHECKING:
    from chimap.data import Source
    from chimap.data.reading import Reading
    from chimap.explain.contributions import Explanation
    from chimap.explain.neighbours import Neighbours
    from chimap.images.reading.image_set import ImageSet
    from chimap.models.model import Model

MISTAKES_EXPLAINED = 5  # rows explained when none are named
_LANDMARKS_SHOWN = 5
_MOST_CONTRIBUTIONS = 2**27  # contributions held in memory at once


@dataclass(frozen=True, eq=False)
class Likeness:
    """A landmark or training row that contributes to a prediction.

    Parameters
    ----------
    name : str
        Its name.
    answer : object
        The model's prediction for it.
    similarity : float
        Its kernel value with the predicted row, at most 1.
    contribution : float
        What it adds to the score: kernel value times weight.
    """

    name: str
    answer: object
    similarity: float
    contribution: float


@dataclass(frozen=True, eq=False)
class Drawing:
    """What the parts of a row add to its score, compared with an empty row: all of it lies in what the row has.

    Parameters
    ----------
    image : str
        The parts of the row painted with what they add, a data URL.
    base : float
        Score of an empty row; the parts add the rest of the score of the row.
    blocks : tuple of (str, str, float), default=()
        The same for each block of bins: its name, the drawing, and what its bins add together.
    """

    image: str
    base: float
    blocks: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True, eq=False)
class ExplainedRow:
    """The explanation of the prediction for one row.

    For a classifier, scores and contributions are in favour of the predicted class. With one output per class, they are
    those of the predicted class minus those of its rival; with a single output, they have the sign of the predicted
    class.

    Parameters
    ----------
    name : str
        Name or number of the row.
    truth : object
        Its true label or target; None if it is unknown.
    predicted : object
        Its predicted label or target.
    rival : object
        The class that the predicted class is compared to: the true class if it is another one, else the second best;
        None for a regression.
    contributions : ndarray of shape (bins,)
        What each bin adds to the score.
    base : float
        Score of the reference row.
    score : float
        Score of this row.
    values : ndarray of shape (bins,)
        Values of the bins.
    likenesses : list of Likeness, optional
        Landmarks that contribute the most to the prediction; by default empty.
    picture : str or None, default=None
        The row as an image, a data URL.
    painted : str or None, default=None
        The contributions painted over the image, a data URL.
    drawing : Drawing or None, default=None
        What the parts of the row add, painted over a drawing of it, such as the atoms of a molecule.
    counterfactual : Counterfactual or None, default=None
        The least change that flips the prediction, if it was asked for and found.
    """

    name: str
    truth: object
    predicted: object
    rival: object
    contributions: np.ndarray
    base: float
    score: float
    values: np.ndarray
    likenesses: list[Likeness] = field(default_factory=list)
    picture: str | None = None
    painted: str | None = None
    drawing: Drawing | None = None
    counterfactual: Counterfactual | None = None

    def top(self, k: int = 10) -> np.ndarray:
        """Return the indices of the bins with the largest absolute contributions, by descending contribution.

        Parameters
        ----------
        k : int, default=10
            Largest number of bins; bins that contribute nothing are left out.
        """
        order = np.argsort(-np.abs(self.contributions), kind="stable")[:k]
        order = order[self.contributions[order] != 0]
        return np.asarray(order[np.argsort(-self.contributions[order], kind="stable")])

    def as_dict(self, names: np.ndarray, k: int = 20) -> JSON:
        """Return the explanation as JSON types.

        Parameters
        ----------
        names : ndarray of shape (bins,)
            Names of the bins.
        k : int, default=20
            Number of contributions to include, largest first.
        """
        listed = [
            {"bin": int(i), "name": str(names[i]), "value": self.values[i], "adds": self.contributions[i]}
            for i in self.top(k)
        ]
        return {
            "row": self.name,
            "truth": plain(self.truth),
            "predicted": plain(self.predicted),
            "compared_with": plain(self.rival),
            "base": self.base,
            "score": self.score,
            "contributions": plain(listed),
            "like": [plain(vars(likeness)) for likeness in self.likenesses],
            "counterfactual": self.counterfactual and plain(self.counterfactual.as_dict()),
        }


def check_room(n_rows: int, n_bins: int, n_outputs: int) -> None:
    """Raise DataError if the contributions of the rows do not fit in memory."""
    if n_rows * n_bins * n_outputs > _MOST_CONTRIBUTIONS:
        most = max(1, _MOST_CONTRIBUTIONS // (n_bins * n_outputs))
        raise DataError(
            Message(
                "contributions of {:,} rows, {:,} bins and {:,} outputs take {}. Name at most {:,} rows with {rows}.",
                n_rows,
                n_bins,
                n_outputs,
                format_bytes(8 * n_rows * n_bins * n_outputs),
                most,
            )
        )


def explained_rows(
    model: Model, source: Source, places: np.ndarray, y: np.ndarray | None, shape: tuple[int, int] | None
) -> tuple[list[ExplainedRow], Explanation]:
    """Return each row with the contributions to its prediction, and the explanation of all rows."""
    rows, names = taken(source, places), row_names(source)
    explanation = explain(model, rows)
    outputs, has_classes = explanation.scores, model.answers.classes is not None
    in_columns = model.schema.rows(rows)
    values = np.asarray(_arrays.to_dense(in_columns.block(0, in_columns.n_rows).X), np.float64)
    answers = model.answers.predicted(outputs) if has_classes else outputs
    tasks = model.task_names
    if tasks is not None:
        truths = None if y is None else y[places]
        spread = None if y is None else spread_of(y)
        number = of_tasks(model, outputs, truths, spread).argmin(axis=1)
    try:
        like: Sequence[Neighbours] | None = nearest(model, rows, k=_LANDMARKS_SHOWN)
    except DataError:  # the model is not a sum over landmarks
        like = None
    neighbour = "landmark" if model.learned.findings.row_numbers is None else "training row"
    draw = _drawings(model, source, places, rows)
    shown = []
    for i, place in enumerate(places):
        name, answer, truth = str(names[place]), answers[i], None if y is None else y[place]
        if tasks is None:
            answer = answer if has_classes else answer[0]
            weights, rival = _against(model, outputs[i], answer, truth)
        else:  # explain the task with the worst prediction
            k = number[i]
            name, answer = f"{name}, {tasks[k]}", answer[k]
            truth = None if truth is None else truth[k].astype(answers.dtype)
            weights, rival = _of_task(model, int(k), outputs.shape[1], answer)
        contributions = explanation.contributions[i] @ weights
        pictures = _pictures(model, source.images, int(place), values[i], contributions, shape)
        shown.append(
            ExplainedRow(
                name,
                _item(truth),
                _item(answer),
                _item(rival),
                contributions,
                float(explanation.base @ weights),
                float(outputs[i] @ weights),
                values[i],
                [] if like is None else _likenesses(like[i], neighbour, weights[0] if outputs.shape[1] == 1 else 1.0),
                *pictures,
                drawing=None if draw is None else draw(i, weights),
            )
        )
    return shown, explanation


def with_counterfactuals(
    model: Model,
    source: Source,
    places: np.ndarray,
    explained: list[ExplainedRow],
    movable: Sequence[str] | None,
    among: np.ndarray,
) -> list[ExplainedRow]:
    """Return explained rows at ``places`` with the least change that flips each, and the nearest of rows ``among``."""
    names = row_names(source)
    found = counterfactuals(model, taken(source, places), movable=movable, among=taken(source, among))
    named = [
        change and replace(change, nearest=None if change.nearest is None else str(names[among[change.nearest]]))
        for change in found
    ]
    lost = ", ".join(row.name for row, change in zip(explained, named, strict=True) if change is None)
    if lost:
        warnings.warn(f"no change of these columns was found that flips the prediction of rows {lost}.", stacklevel=2)
    return [replace(row, counterfactual=change) for row, change in zip(explained, named, strict=True)]


def _likenesses(neighbours: Neighbours, kind: str, sign: float) -> list[Likeness]:
    """Return what contributes the most to a prediction: by ids, or as the "landmark" or "training row" of a number.

    sign: that of the score in favour of the prediction.
    """
    names = [f"{kind} {place}" for place in neighbours.places] if neighbours.ids is None else neighbours.ids.tolist()
    answers = [None] * len(names) if neighbours.answers is None else neighbours.answers
    listed = zip(names, answers, neighbours.similarities, neighbours.contributions, strict=True)
    return [Likeness(name, answer, float(alike), sign * float(added)) for name, answer, alike, added in listed]


def _drawings(
    model: Model, source: Source, places: np.ndarray, rows: Source
) -> Callable[[int, np.ndarray], Drawing | None] | None:
    """Return a function that draws the i-th row, for weights (t,) of its scores; None for rows without drawings."""
    reading: Reading | None = source.reading
    if reading is None or not reading.has_drawings or source.read_column is None:
        return None
    fields = source.column(reading.column)[places]
    empty = ArraySource(np.zeros((1, rows.n_features)), column_names=rows.column_names)
    explanation = explain(model, rows, background=empty)
    blocks = declared_blocks(rows.column_names) or {}

    def draw(i: int, weights: np.ndarray) -> Drawing | None:
        added = explanation.contributions[i] @ weights
        image = drawn(reading, fields[i], added)
        if image is None:
            return None
        by_block = []
        for name, columns in blocks.items():
            own = np.zeros_like(added)
            own[columns] = added[columns]
            by_block.append((name, drawn(reading, fields[i], own) or "", float(own.sum())))
        return Drawing(image, float(explanation.base @ weights), tuple(by_block))

    return draw


def _against(model: Model, outputs: np.ndarray, answer: object, truth: object) -> tuple[np.ndarray, object]:
    """Return weights of the scores, (t,), and the class that the answer is compared with.

    The weighted sum of the scores is the margin of the answer over that class.
    """
    classes = model.answers.classes
    if classes is None:
        return np.ones(1), None
    if outputs.size == 1:
        return np.array([1.0 if answer == classes[1] else -1.0]), classes[0 if answer == classes[1] else 1]
    order = np.argsort(-outputs, kind="stable")
    rival = order[1]
    if truth is not None and truth != answer:
        rival = np.flatnonzero(classes == truth)[0]
    weights = np.zeros(outputs.size)
    weights[order[0]], weights[rival] = 1.0, -1.0
    return weights, classes[rival]


def _of_task(model: Model, k: int, n_tasks: int, answer: object) -> tuple[np.ndarray, object]:
    """Return the same for one task of several: its score, with the sign reversed if the answer is 0."""
    weights = np.zeros(n_tasks)
    has_classes = model.answers.classes is not None
    weights[k] = -1.0 if has_classes and answer == 0 else 1.0
    return weights, 1 - int(weights[k] > 0) if has_classes else None


def _pictures(
    model: Model,
    images: ImageSet | None,
    place: int,
    values: np.ndarray,
    contributions: np.ndarray,
    shape: tuple[int, int] | None,
) -> tuple[str | None, str | None]:
    if images is not None:
        assert model.histograms is not None  # they were described as rows
        image = images.read(place)
        return small_jpeg(image, PICTURE_SIDE), painted_photo(image, model.histograms.painted(image, contributions))
    return (None, None) if shape is None else (grey(values, shape), painted(contributions, shape, values))


def _item(value: object) -> object:
    """Return a NumPy scalar as a Python value, and anything else as it is."""
    return value.item() if hasattr(value, "item") else value


def margins(model: Model, source: Source, y: np.ndarray | None, progress: Progress | None = None) -> np.ndarray:
    """Return the margin of each row, (n,).

    With labels ``y``, the margin is that of the true answer, so that the worst mistake has the smallest margin. Without
    labels, it says how certain the prediction is.
    """
    out = np.empty(source.n_rows)
    spread, has_classes = None if y is None else spread_of(y), model.answers.classes is not None
    for start, outputs in predict_chunks(model, source, progress):
        chunk = slice(start, start + len(outputs))
        truth = None if y is None else y[chunk]
        if has_classes and model.task_names is None:
            out[chunk] = _between_classes(model, outputs, truth)
        else:
            out[chunk] = of_tasks(model, outputs, truth, spread).min(axis=1)
    return out


def told_by_margins(shown: np.ndarray, has_labels: bool, has_classes: bool) -> str:
    """Return which rows have the smallest margins, in a sentence.

    >>> told_by_margins(np.array([-0.2, 0.1]), True, True)
    'The mistakes first, then the closest calls.'
    """
    if not has_classes:
        return "The largest errors first." if has_labels else "The first rows."
    if not has_labels:
        return "The closest calls first: the least certain predictions."
    if (shown < 0).all():
        return "The worst mistakes first."
    if (shown < 0).any():
        return "The mistakes first, then the closest calls."
    return "The closest calls first; no row is wrong."


def of_tasks(model: Model, outputs: np.ndarray, y: np.ndarray | None, spread: np.ndarray | None) -> np.ndarray:
    """Return the margins of each binary task or regression, (n, t); inf where the label is missing.

    The margin of a regression is its negative error divided by the spread (t,) of the target, so that units do not
    matter.
    """
    has_classes = model.answers.classes is not None
    if y is None:
        return np.abs(outputs) if has_classes else np.zeros(outputs.shape)
    truth = y.reshape(outputs.shape)
    if has_classes:
        return np.where(np.isnan(truth), np.inf, outputs * (2 * truth - 1))
    assert spread is not None  # the labels of a regression are numbers
    return np.where(np.isnan(truth), np.inf, -np.abs(outputs - truth) / spread)


def spread_of(y: np.ndarray) -> np.ndarray | None:
    """Return the standard deviation of each target, (t,), with 1 for constant targets; None for text labels."""
    if is_text(y):
        return None
    known = np.ma.masked_invalid(y.reshape(len(y), -1).astype(np.float64))
    spread = np.ma.filled(known.std(axis=0), 0.0)
    return np.where(spread > 0, spread, 1.0)


def _between_classes(model: Model, outputs: np.ndarray, y: np.ndarray | None) -> np.ndarray:
    scores = class_scores(outputs)
    if y is None:
        best = np.partition(scores, -2, axis=1)
        return best[:, -1] - best[:, -2]
    classes = model.answers.classes
    assert classes is not None  # it is a classifier
    true_columns = places_among(y, classes).clip(0)
    rows = np.arange(len(outputs))
    others = scores.copy()
    others[rows, true_columns] = -np.inf
    return scores[rows, true_columns] - others.max(axis=1)
