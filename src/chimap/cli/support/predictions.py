"""Files of predictions, written chunk by chunk as the rows are read.

A format is a function (file, model, source, chunks, columns of numbers) here and a line in ``FORMATS``.
"""

from __future__ import annotations

import csv
import io
import itertools
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from chimap.cli.support import errors
from chimap.cli.support.score import answers, is_classifier

if TYPE_CHECKING:
    from chimap.data import Source
    from chimap.engines import Progress

Chunks = Iterator[np.ndarray]  # linear outputs (rows, t) of consecutive rows


Extras = dict[str, Callable[[np.ndarray], np.ndarray]]
"""Numbers of every class (rows, classes) beside the prediction, from linear outputs, by name."""


def writer(
    output: Path, model: Any, scores: bool, probabilities: bool = False
) -> Callable[[Any, Source, Progress], None]:
    """What writes the predictions to this path; "-" is CSV on stdout. Raises ValueError where nothing can."""
    wanted = {"scores": scores, "probabilities": probabilities}
    ending = ".csv" if str(output) == "-" else output.suffix.lower()
    write = FORMATS.get(ending)
    if write is None:
        raise ValueError(f"--output {output}: the ending must be {', '.join(FORMATS)}, or - for stdout.")
    for name in (name for name, is_wanted in wanted.items() if is_wanted):
        if not is_classifier(model):
            raise ValueError(f"--{name} are of classes, but the model is a regression; leave --{name} out.")
        if ending == ".npy":
            raise ValueError(f"--output {output}: .npy holds one array, so no --{name}; use .npz or .csv.")
    if probabilities and not hasattr(model, "probabilities_of"):
        raise ValueError(
            f"a {type(model).__name__} has no probabilities; leave --probabilities out, or use --scores."
        )
    extras: Extras = {}
    if scores:
        extras["scores"] = lambda outputs: class_scores(model, outputs)
    if probabilities:
        extras["probabilities"] = model.probabilities_of

    def run(model: Any, source: Source, progress: Progress) -> None:
        from chimap._files import replacing

        chunks = (outputs for _, outputs in model.predict_chunks(source, progress))
        if str(output) == "-":
            errors.written.append("predictions to stdout, not all")
            _csv_lines(sys.stdout, model, source, chunks, extras)
            sys.stdout.flush()
            return
        with replacing(output) as beside, beside.open("wb") as file:
            write(file, model, source, chunks, extras)

    return run


def class_scores(model: Any, outputs: np.ndarray) -> np.ndarray:
    """A score a class (n, classes): of two classes the first has the second's, negated."""
    return np.hstack([-outputs, outputs]) if outputs.shape[1] == 1 else outputs


def _write_csv(file: IO[bytes], model: Any, source: Source, chunks: Chunks, extras: Extras) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    _csv_lines(text, model, source, chunks, extras)
    text.flush()
    text.detach()


def _csv_lines(text: Any, model: Any, source: Source, chunks: Chunks, extras: Extras) -> None:
    """A line a row: its name, where rows have names, the answer, and the numbers of every class that are wanted.

    Their columns are named by the classes, and where there are several kinds by these as well.
    """
    lines = csv.writer(text, lineterminator="\n")
    named = source.row_ids is not None
    header = [
        label if len(extras) == 1 else f"{kind}_{label}" for kind in extras for label in model.classes_.tolist()
    ] if extras else []  # fmt: skip
    lines.writerow([*([source.id_name] if named else []), "prediction", *header])
    names = iter(() if source.row_ids is None else source.row_ids)
    for outputs in chunks:
        columns: list[list[Any]] = [list(itertools.islice(names, len(outputs)))] if named else []
        columns.append(answers(model, outputs).tolist())
        for numbers_of in extras.values():
            columns.extend(numbers_of(outputs).astype(_precision(model)).astype(str).T.tolist())
        lines.writerows(zip(*columns, strict=True))


def _precision(model: Any) -> str:
    return "float32" if model.precision == "bfloat16" else str(model.precision)


def _write_npy(file: IO[bytes], model: Any, source: Source, chunks: Chunks, extras: Extras) -> None:
    dtype = _answer_dtype(model)
    _npy_header(file, (source.n_rows,), dtype)
    for outputs in chunks:
        file.write(answers(model, outputs).astype(dtype, copy=False).tobytes())


def _write_npz(file: IO[bytes], model: Any, source: Source, chunks: Chunks, extras: Extras) -> None:
    """``predictions``; with numbers of classes also these (n, classes), by their names, and ``classes``."""
    # A zip file takes one member at a time, so that numbers of a second kind wait in memory.
    predicted: list[np.ndarray] = []
    first, *others = extras or [""]
    waiting: dict[str, list[np.ndarray]] = {name: [] for name in others}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        if extras:
            with archive.open(f"{first}.npy", "w", force_zip64=True) as member:
                _npy_header(member, (source.n_rows, len(model.classes_)), np.dtype(np.float64))
                for outputs in chunks:
                    member.write(np.ascontiguousarray(extras[first](outputs)).tobytes())
                    predicted.append(answers(model, outputs))
                    for name, parts in waiting.items():
                        parts.append(extras[name](outputs))
            _npz_member(archive, "classes", model.classes_)
        for name, parts in waiting.items():
            _npz_member(archive, name, np.concatenate(parts))
        predicted.extend(answers(model, outputs) for outputs in chunks)
        values = np.concatenate(predicted).astype(_answer_dtype(model), copy=False)
        _npz_member(archive, "predictions", values)


def _answer_dtype(model: Any) -> np.dtype:
    return model.classes_.dtype if is_classifier(model) else np.dtype(np.float64)


def _npy_header(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype) -> None:
    header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, header)


def _npz_member(archive: zipfile.ZipFile, name: str, values: np.ndarray) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        npy.write_array(member, values, allow_pickle=False)


FORMATS: dict[str, Callable[[IO[bytes], Any, Source, Chunks, Extras], None]] = {
    ".csv": _write_csv,
    ".npy": _write_npy,
    ".npz": _write_npz,
}
