"""Build the contents of ``chimap explain`` from a model and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap.cli import data_rows, show
from chimap.cli.image_rows import images_of
from chimap.cli.margins import of_tasks, spread_of

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap._types import Rows
    from chimap.data import Source
    from chimap.explain import Explanation, Importance
    from chimap.images.reading.image_set import ImageSet
    from chimap.report import ExplainedRow, ModelExplanation

SAMPLE = 1000  # rows sampled for importances and densities
MISTAKES = 5  # rows explained when none are named
_FUNCTIONS = 6  # bins whose functions are drawn
_LANDMARKS = 5
_PERMUTED = 300  # rows among which bins are shuffled
_NUMBERS = 2**27  # contributions held in memory at once


def explainable(model: BaseEstimator) -> BaseEstimator:
    """Return the model, or the one that a compiled model was made from. Raise DataError if neither explains."""
    from chimap._validation import DataError

    exact = getattr(model, "exact_", model)
    if exact is None or not hasattr(exact, "explain"):
        raise DataError(
            f"a {type(model).__name__} cannot be explained. Explain the model that it was made from, or a model of "
            "'chimap fit'."
        )
    return exact


def row_names(source: Source) -> np.ndarray:
    """Return the names of the rows: their ids, or else their numbers in the file."""
    from chimap.data.label_kinds import texts_of

    return texts_of(source.places_in_file() if source.row_ids is None else source.row_ids)


def named_rows(source: Source, text: str) -> np.ndarray:
    """Return the places of rows named by id or number, separated by commas. Raise DataError for unknown rows."""
    import numpy as np

    from chimap._validation import DataError
    from chimap.cli.flag_values import listed

    names, numbers = row_names(source), source.places_in_file()
    chosen = []
    for word in listed(text):
        places = np.flatnonzero(names == word)
        if not places.size and word.isdecimal():
            places = np.flatnonzero(numbers == int(word))
        if not places.size:
            examples = ", ".join(names[:3])
            raise DataError(
                f"--rows: {source.name} has no row {word!r}. Its {source.n_rows:,} rows are called {examples}, ..., "
                "or can be named by number from 0."
            )
        chosen.append(int(places[0]))
    if not chosen:
        raise DataError("--rows must name rows by id or number, such as 0,17; got none.")
    return np.array(chosen)


def sample_of(source: Source, size: int = SAMPLE) -> tuple[Source, np.ndarray]:
    """Return a random sample of the rows as a source, and the places of these rows."""
    from chimap.data.source import choose_rows

    places = choose_rows(source.n_rows, min(size, source.n_rows), 0)
    return taken(source, places), places


def taken(source: Source, places: np.ndarray) -> Source:
    """Return the rows at ``places``, in that order, as a source in memory."""
    import numpy as np

    from chimap.data import ArraySource

    increasing, order = np.unique(places, return_inverse=True)
    return ArraySource(source.take(increasing)[order], name=source.name, column_names=source.column_names)


def importance_of(model: BaseEstimator, sample: Source | None, y: np.ndarray | None, kind: str) -> Importance:
    """Return the bins ranked by importance.

    ``kind="auto"`` is "variance" for additive models, "gradient" for others that have slopes, and else "variance".
    """
    if kind == "permutation":
        from chimap._validation import DataError

        if sample is None or y is None:
            raise DataError(
                "--kind permutation needs rows with labels: give DATA, and --labels if DATA has none."
            )
        few, places = sample_of(sample, _PERMUTED)
        return model.importance(few, y[places], kind="permutation")
    if kind == "auto":
        from chimap.estimators.internals import mapped_model_of

        has_slopes = mapped_model_of(model) is not None and not model.is_additive
        kind = "gradient" if has_slopes else "variance"
    return model.importance(sample, kind=kind)


def check_room(n_rows: int, n_bins: int, n_outputs: int) -> None:
    """Raise DataError if the contributions of the rows do not fit in memory."""
    from chimap._validation import DataError

    if n_rows * n_bins * n_outputs > _NUMBERS:
        most = max(1, _NUMBERS // (n_bins * n_outputs))
        raise DataError(
            f"contributions of {n_rows:,} rows, {n_bins:,} bins and {n_outputs:,} outputs take "
            f"{show.size(8 * n_rows * n_bins * n_outputs)}. Name at most {most:,} rows with --rows."
        )


def explained_rows(
    model: BaseEstimator,
    source: Source,
    places: np.ndarray,
    y: np.ndarray | None,
    shape: tuple[int, int] | None,
) -> tuple[list[ExplainedRow], Explanation]:
    """Return each row with the contributions to its prediction, and the explanation of all rows."""
    import numpy as np

    from chimap._validation import DataError
    from chimap.estimators.internals import rows_as_read
    from chimap.report import ExplainedRow, Likeness

    rows, names = taken(source, places), row_names(source)
    explanation = model.explain(rows)
    outputs = explanation.scores
    values = np.asarray(_dense(rows_as_read(model, rows)), np.float64)
    answers = model.labels_of(outputs) if hasattr(model, "classes_") else outputs
    task_names = data_rows.task_names_of(model)
    if task_names is not None:
        truths = None if y is None else y[places]
        spread = None if y is None else spread_of(y)
        number = of_tasks(model, outputs, truths, spread).argmin(axis=1)
    try:
        like = model.nearest(rows, k=_LANDMARKS)
    except DataError:  # the model is not a sum over landmarks
        like = [None] * len(places)
    neighbour = "training row" if hasattr(model, "row_numbers_") else "landmark"
    images = images_of(source)
    shown = []
    for i, place in enumerate(places):
        name, answer, truth = str(names[place]), answers[i], None if y is None else y[place]
        if task_names is None:
            answer = answer if hasattr(model, "classes_") else answer[0]
            weights, rival = _against(model, outputs[i], answer, truth)
        else:  # explain the task with the worst prediction
            k = number[i]
            name, answer = f"{name}, {task_names[k]}", answer[k]
            truth = None if truth is None else truth[k].astype(answers.dtype)
            weights, rival = _of_task(model, int(k), outputs.shape[1], answer)
        contributions = explanation.contributions[i] @ weights
        pictures = _pictures(model, images, int(place), values[i], contributions, shape)
        shown.append(
            ExplainedRow(
                name, _item(truth), _item(answer), _item(rival), contributions,
                float(explanation.base @ weights), float(outputs[i] @ weights), values[i],
                [] if like[i] is None else Likeness.of(like[i], neighbour), *pictures,
            )
        )  # fmt: skip
    return shown, explanation


def _against(
    model: BaseEstimator, outputs: np.ndarray, answer: object, truth: object
) -> tuple[np.ndarray, object]:
    """Return weights of the scores, (t,), and the class that the answer is compared with.

    The weighted sum of the scores is the margin of the answer over that class.
    """
    import numpy as np

    if not hasattr(model, "classes_"):
        return np.ones(1), None
    classes = model.classes_
    if outputs.size == 1:
        return np.array([1.0 if answer == classes[1] else -1.0]), classes[0 if answer == classes[1] else 1]
    order = np.argsort(-outputs, kind="stable")
    rival = order[1]
    if truth is not None and truth != answer:
        rival = np.flatnonzero(classes == truth)[0]
    weights = np.zeros(outputs.size)
    weights[order[0]], weights[rival] = 1.0, -1.0
    return weights, classes[rival]


def _of_task(model: BaseEstimator, k: int, n_tasks: int, answer: object) -> tuple[np.ndarray, object]:
    """Return the same for one task of several: its score, with the sign reversed if the answer is 0."""
    import numpy as np

    weights = np.zeros(n_tasks)
    weights[k] = -1.0 if hasattr(model, "classes_") and answer == 0 else 1.0
    return weights, 1 - int(weights[k] > 0) if hasattr(model, "classes_") else None


def _pictures(
    model: BaseEstimator,
    images: ImageSet | None,
    place: int,
    values: np.ndarray,
    contributions: np.ndarray,
    shape: tuple[int, int] | None,
) -> tuple[str | None, str | None]:
    from chimap.report.pictures import SIDE, grey, painted, painted_photo, small_jpeg

    if images is not None:
        image = images.read(place)
        return small_jpeg(image, SIDE), painted_photo(image, model.histograms_.painted(image, contributions))
    return (None, None) if shape is None else (grey(values, shape), painted(contributions, shape, values))


def page_of(
    model: BaseEstimator,
    file: str,
    source: Source | None,
    sample: Source | None,
    importance: Importance,
    rows: list[ExplainedRow],
    which_rows: str,
    shape: tuple[int, int] | None,
) -> ModelExplanation:
    """Return everything that the page and ``--json`` show."""
    from chimap.estimators.explained_rows import bin_names, output_names
    from chimap.report import ModelExplanation
    from chimap.report.pictures import painted

    about = model.describe()
    facts = {
        "model": file,
        "kernel": show.kernel(about["kernel"], about["gamma"]),
        "features": about["features"],
        "bin weights": show.bin_weights(getattr(model, "bin_weights_", None), bin_names(model).tolist()),
        "rows trained on": getattr(model, "n_rows_", None),
        "file": None if source is None else source.name.partition(",")[0],
        "rows looked at": None if sample is None else sample.n_rows,
    }
    return ModelExplanation(
        title=f"{about['kernel']}: {file}",
        model_name=type(model).__name__,
        data={name: fact for name, fact in facts.items() if fact is not None},
        importance=importance,
        is_additive=model.is_additive,
        output_names=tuple(output_names(model, model.intercept_.size).tolist()),
        bin_names=bin_names(model),
        effects=tuple(model.effects(importance.bins[:_FUNCTIONS], sample)),
        rows=tuple(rows),
        which_rows=which_rows,
        painted=None if shape is None else painted(importance.by_bin, shape),
    )


def _dense(rows: Rows) -> np.ndarray:

    from chimap import _arrays

    return _arrays.to_dense(rows)


def _item(value: object) -> object:
    """Return a NumPy scalar as a Python value, and anything else as it is."""
    return value.item() if hasattr(value, "item") else value
