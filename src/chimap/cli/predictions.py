"""Write files of predictions chunk by chunk, as the rows are read.

A format is a function (file, model, source, chunks, extras, type of answers) in this file and a line in ``FORMATS``.
"""

from __future__ import annotations

import csv
import io
import itertools
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from chimap._errors import InputError
from chimap._files import write_npy_header
from chimap.cli import messages
from chimap.data.label_kinds import fixed_width, texts_of
from chimap.models.answers import ClassAnswers, RealAnswers, class_scores
from chimap.models.predict import labels_in_chunks, predict_chunks
from chimap.models.unassigned import UNASSIGNED

if TYPE_CHECKING:
    from chimap.data import Source
    from chimap.engines import Progress
    from chimap.models.predictor import Predictor


class Predicted(NamedTuple):
    """Linear outputs (rows, t) of consecutive rows, and their labels or targets."""

    outputs: np.ndarray
    answers: np.ndarray


Chunks = Iterator[Predicted]


@dataclass(frozen=True)
class Extra:
    """Values that are written next to the predictions.

    ``of`` maps the linear outputs (rows, t) to the values, one row for each, of shape ``n_values`` and type ``dtype``;
    ``text`` gives the same values as text, one list for each of the CSV ``columns``.
    """

    of: Callable[[np.ndarray], np.ndarray]
    columns: list[str]
    text: Callable[[np.ndarray], list[list[str]]]
    n_values: tuple[int, ...]
    dtype: str = "float64"


Extras = dict[str, Extra]
"""Extras by name, such as "scores"."""


def writer(
    output: Path,
    model: Predictor,
    wanted: Sequence[str] = (),
    coverage: float = 0.9,
    unassigned: float | None = None,
    level: float | None = None,
) -> Callable[..., int]:
    """Return the function that writes predictions to ``output``, whose ending sets the format; "-" is CSV on stdout.

    It takes the rows, the progress and, if there are any, extras of these very rows, and returns the number of rows
    that are unassigned. ``wanted`` names the ``EXTRAS``, ``coverage`` is that of sets and intervals, and ``unassigned``
    the share of rows like those of the fit that may be "unassigned"; None labels every row. Of labels in a tree,
    ``level`` asks for nodes. Raise InputError if the ending is unknown, or if the model or the format does not support
    ``wanted``.
    """
    ending = ".csv" if str(output) == "-" else output.suffix.lower()
    write = FORMATS.get(ending)
    if write is None:
        raise InputError(f"--output {output}: the ending must be one of {', '.join(FORMATS)}; or give - for stdout.")
    has_classes = model.answers.classes is not None
    for name in wanted:
        flag = "--" + name.replace("_", "-")
        if (name == "intervals") == has_classes:
            kind, instead = ("a classifier", "--sets") if has_classes else ("a regression", "--intervals")
            raise InputError(f"{flag}: the model is {kind}, which has none; leave {flag} out, or use {instead}.")
        if ending == ".npy":
            raise InputError(f"--output {output}: .npy holds one array, so it cannot take {flag}; use .npz or .csv.")
    named = {name: EXTRAS[name](model, coverage, len(wanted)) for name in wanted}

    if unassigned is not None:
        from chimap.reports.score import check_unassigned  # loads what other predictions do not need

        check_unassigned(model, unassigned)

    predict: Callable[[np.ndarray], np.ndarray] = model.answers.predicted
    names: np.ndarray | None = None
    if level is not None:
        names = model.answers.structure.names  # raises for a model without a tree
        predict = partial(_classes(model).nodes, level=level)

    def run(source: Source, progress: Progress, of_rows: Extras | None = None) -> int:
        from chimap._files import replacing

        n_unassigned, extras = 0, named | (of_rows or {})

        def predicted() -> Chunks:
            nonlocal n_unassigned
            if unassigned is None:
                for _, outputs in predict_chunks(model, source, progress):
                    yield Predicted(outputs, predict(outputs))
                return
            for start, outputs, labels in labels_in_chunks(model, source, unassigned, progress):
                places = start + np.flatnonzero(labels == UNASSIGNED)
                n_unassigned += sum(place not in source.unread for place in places.tolist())
                yield Predicted(outputs, labels)

        chunks = predicted()
        if str(output) == "-":
            messages.written.append("some of the predictions, to stdout")
            _csv_lines(sys.stdout, model, source, chunks, extras)
            sys.stdout.flush()
            return n_unassigned
        with replacing(output) as unfinished, unfinished.open("wb") as file:
            may_lack = unassigned is not None
            dtype = _answer_dtype(model, source, may_lack) if names is None else fixed_width(names).dtype
            write(file, model, source, chunks, extras, dtype)
        return n_unassigned

    return run


def _numbers(model: Predictor, kind: str, of: Callable[[np.ndarray], np.ndarray], n_kinds: int) -> Extra:
    """Return numbers for each class or task. Several kinds of numbers put the kind in front of the column names."""
    tasks = model.task_names
    labels: list[object] = [*_classes(model).classes.tolist()] if tasks is None else [*tasks]
    columns = [str(label) if n_kinds == 1 and tasks is None else f"{kind}_{label}" for label in labels]

    def text(outputs: np.ndarray) -> list[list[str]]:
        return of(outputs).astype(_precision(model)).astype(str).T.tolist()

    return Extra(of, columns, text, (len(labels),))


def _classes(model: Predictor) -> ClassAnswers:
    """Return the answers of a classifier."""
    assert isinstance(model.answers, ClassAnswers)
    return model.answers


def _scores(model: Predictor, coverage: float, n_kinds: int) -> Extra:
    return _numbers(model, "scores", class_scores, n_kinds)


def _probabilities(model: Predictor, coverage: float, n_kinds: int) -> Extra:
    answers = model.answers
    if not isinstance(answers, ClassAnswers):
        raise InputError(f"a {model.schema.owner} has no probabilities; leave --probabilities out, or use --scores.")
    return _numbers(model, "probabilities", answers.calibration, n_kinds)


def _sets(model: Predictor, coverage: float, n_kinds: int, class_conditional: bool = False) -> Extra:
    """Return the sets of possible classes. In text, classes are separated by bars."""
    tasks, answers = model.task_names, _classes(model)
    name = "class_conditional_set" if class_conditional else "set"

    def of(outputs: np.ndarray) -> np.ndarray:
        return np.asarray(answers.sets(outputs, 1 - coverage, class_conditional))

    of(np.zeros((1, model.n_outputs)))  # raises early if the model cannot form sets

    def text(outputs: np.ndarray) -> list[list[str]]:
        sets = of(outputs)
        labels = ["0", "1"] if tasks is not None else [str(label) for label in answers.classes.tolist()]
        by_task = np.moveaxis(sets, 1, 0) if tasks is not None else [sets]
        return [["|".join(itertools.compress(labels, row)) for row in task] for task in by_task]

    if tasks is not None:
        return Extra(of, [f"{name}_{task}" for task in tasks], text, (len(tasks), 2), "bool")
    return Extra(of, [name], text, (answers.classes.size,), "bool")


def _intervals(model: Predictor, coverage: float, n_kinds: int) -> Extra:
    """Return the lower and upper ends of the intervals."""
    t, answers = model.n_outputs, model.answers
    assert isinstance(answers, RealAnswers)  # it is a regression
    is_one = answers.intervals(np.zeros((1, t)), 1 - coverage).ndim == 2  # that of several quantiles is one too

    def of(outputs: np.ndarray) -> np.ndarray:
        return np.asarray(answers.intervals(outputs, 1 - coverage))

    def text(outputs: np.ndarray) -> list[list[str]]:
        return of(outputs).reshape(len(outputs), -1).astype(_precision(model)).astype(str).T.tolist()

    names = [""] if is_one else [f"_{name}" for name in model.task_names or []]
    columns = [f"{end}{name}" for name in names for end in ("low", "high")]
    return Extra(of, columns, text, (2,) if is_one else (t, 2))


def in_order(columns: dict[str, np.ndarray]) -> Extra:
    """Return an extra of values (n,) that all rows have already; each chunk of outputs gets the next of them."""
    values = np.column_stack([*columns.values()])
    rows = itertools.count()

    def of(outputs: np.ndarray) -> np.ndarray:
        return values[list(itertools.islice(rows, len(outputs)))]

    def text(outputs: np.ndarray) -> list[list[str]]:
        return of(outputs).round(4).astype(str).T.tolist()

    return Extra(of, [*columns], text, (len(columns),))


EXTRAS: dict[str, Callable[[Predictor, float, int], Extra]] = {
    "scores": _scores,
    "probabilities": _probabilities,
    "sets": _sets,
    "class_conditional_sets": partial(_sets, class_conditional=True),
    "intervals": _intervals,
}
"""What can be written next to predictions, by the name of its flag."""


def _write_csv(
    file: IO[bytes], model: Predictor, source: Source, chunks: Chunks, extras: Extras, dtype: np.dtype
) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    _csv_lines(text, model, source, chunks, extras)
    text.flush()
    text.detach()


def _csv_lines(text: IO[str], model: Predictor, source: Source, chunks: Chunks, extras: Extras) -> None:
    """Write one line for each row: its name if rows have names, the prediction, and the extras.

    The columns of extras are named after the classes, with the kind in front if there are several kinds. Where records
    could not be read, their answers are blank and a last column says why.
    """
    lines = csv.writer(text, lineterminator="\n")
    named = source.row_ids is not None
    predicted = model.task_names or ["prediction"]
    header = [*predicted, *(column for extra in extras.values() for column in extra.columns)]
    reasons = [_REASON] if source.unread else []
    lines.writerow([*([source.id_name] if named else []), *header, *reasons])
    first = 0
    names = iter(() if source.row_ids is None else source.row_ids)
    for outputs, labels in chunks:
        columns: list[Any] = [list(itertools.islice(names, len(outputs)))] if named else []
        columns.extend(np.atleast_2d(labels.T).tolist())
        for extra in extras.values():
            columns.extend(extra.text(outputs))
        if source.unread:
            why = [source.unread.get(row, "") for row in range(first, first + len(outputs))]
            columns = [values if named and values is columns[0] else _blanked(values, why) for values in columns]
            columns.append(why)
        lines.writerows(zip(*columns, strict=True))
        first += len(outputs)


_REASON = "reason"


def _blanked(values: list[Any], why: list[str]) -> list[Any]:
    """Return the values of a column, blank in the rows that have a reason why they could not be read."""
    return ["" if reason else value for value, reason in zip(values, why, strict=True)]


def _precision(model: Predictor) -> str:
    return "float64" if model.precision == "float64" else "float32"


def _write_npy(
    file: IO[bytes], model: Predictor, source: Source, chunks: Chunks, extras: Extras, dtype: np.dtype
) -> None:
    n_values = () if model.task_names is None else (model.n_outputs,)
    write_npy_header(file, (source.n_rows, *n_values), dtype)
    for _, labels in chunks:
        file.write(_stored(labels, dtype).tobytes())


def _write_npz(
    file: IO[bytes], model: Predictor, source: Source, chunks: Chunks, extras: Extras, dtype: np.dtype
) -> None:
    """Write ``predictions`` and the extras by name, ``classes`` or ``tasks``, and ``row_ids`` if rows have names.

    ``reason`` says why rows have no answer, "" for others, where some have none.
    """
    # A zip file is written one member at a time, so all extras but the first wait in memory.
    predicted: list[np.ndarray] = []
    first, *rest = extras or [""]
    waiting: dict[str, list[np.ndarray]] = {name: [] for name in rest}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        if source.row_ids is not None:
            _npz_member(archive, "row_ids", np.asarray(source.row_ids).astype(str))
        if extras:
            with archive.open(f"{first}.npy", "w", force_zip64=True) as member:
                write_npy_header(member, (source.n_rows, *extras[first].n_values), np.dtype(extras[first].dtype))
                for outputs, labels in chunks:
                    member.write(np.ascontiguousarray(extras[first].of(outputs)).tobytes())
                    predicted.append(labels)
                    for name, blocks in waiting.items():
                        blocks.append(extras[name].of(outputs))
            if (tasks := model.task_names) is not None:
                _npz_member(archive, "tasks", np.array(tasks))
            elif model.answers.classes is not None:
                _npz_member(archive, "classes", fixed_width(model.answers.classes))
        for name, blocks in waiting.items():
            _npz_member(archive, name, np.concatenate(blocks))
        predicted.extend(labels for _, labels in chunks)
        _npz_member(archive, "predictions", _stored(np.concatenate(predicted), dtype))
        if source.unread:
            why = [source.unread.get(row, "") for row in range(source.n_rows)]
            _npz_member(archive, _REASON, np.array(why))


def _answer_dtype(model: Predictor, source: Source, may_lack: bool) -> np.dtype:
    """Return the type of stored answers; numbers are floats where some rows have no answer, NaN.

    may_lack: whether rows may be "unassigned"; all labels are text then.
    """
    answers = model.answers
    if answers.classes is None:
        return np.dtype(np.float64)
    dtype = np.dtype(np.int64) if answers.is_multilabel else fixed_width(answers.classes).dtype
    if may_lack:
        return np.result_type(texts_of(answers.classes), np.array(UNASSIGNED))
    return np.dtype(np.float64) if source.unread and dtype.kind != "U" else dtype


def _stored(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return answers in a type that files can hold: "" among text and NaN among numbers for rows without an answer."""
    if values.dtype == object and dtype.kind == "U":
        values = np.array(["" if value is None else str(value) for value in values.tolist()])
    return values.astype(dtype, copy=False)


def _npz_member(archive: zipfile.ZipFile, name: str, values: np.ndarray) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        npy.write_array(member, values, allow_pickle=False)


FORMATS: dict[str, Callable[[IO[bytes], Predictor, Source, Chunks, Extras, np.dtype], None]] = {
    ".csv": _write_csv,
    ".npy": _write_npy,
    ".npz": _write_npz,
}
