"""One HTML file that predicts rows in a browser by the tables of an additive model; it loads nothing else."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np

from chimap._errors import InputError
from chimap._formatting import one_line
from chimap._messages import Message
from chimap._types import JSON
from chimap._version import __version__
from chimap.export.parts import ModelParts
from chimap.export.tables import BinTables, document_of
from chimap.selection.structures import Nominal

_MOST_NUMBERS = 4_000_000  # in the tables of a page: 80 MB, which a browser opens in seconds


def write_page(tables: BinTables, parts: ModelParts, path: Path, title: str) -> None:
    """Write the page; its rows are answered as ``tables`` score them, and as the model turns scores into answers.

    Raises
    ------
    ValueError
        If rows are no numbers, if the label is not that of the largest score, or if the tables are too large.
    """
    if not parts.is_of_numbers:
        raise InputError(
            "a page takes rows of numbers, and this model reads texts, molecules or images. Export the model as ONNX, "
            "or fit one on a table of counts."
        )
    if parts.structure != Nominal():
        raise InputError(
            "a page answers with the class of the largest score, and the classes of this model have an order or stand "
            "in a tree. Export the model as ONNX."
        )
    if tables.values.size > _MOST_NUMBERS:
        raise InputError(
            Message(
                "the page would hold {:,} numbers, more than {:,}, with which browsers are slow: raise {tolerance}, "
                "fit with fewer bins or with {kernel='linear'}, or write .npz tables.",
                tables.values.size,
                _MOST_NUMBERS,
            )
        )
    text = json.dumps(_model(tables, parts, title), ensure_ascii=False).replace("<", "\\u003c")
    template = files("chimap.export").joinpath("page.html").read_text(encoding="utf-8")
    path.write_text(template.replace("{{model}}", text, 1), encoding="utf-8")


def _model(tables: BinTables, parts: ModelParts, title: str) -> JSON:
    """Return what the page computes with: tables, answers, and the contributions of the mean row of the fit."""
    names, calibration = parts.preparation.columns, parts.calibration
    reference = np.zeros((parts.n_bins, parts.n_outputs))
    if parts.mean_row is not None:
        factors = np.ones(parts.n_bins) if parts.preparation.factors is None else parts.preparation.factors
        mean = np.divide(parts.mean_row, factors, out=np.zeros(parts.n_bins), where=factors != 0)
        reference = np.vstack([tables.terms(place, mean[place : place + 1]) for place in range(parts.n_bins)])
    return {
        **document_of(tables),
        "title": one_line(title),
        "version": __version__,
        "kernel": parts.about["kernel"],
        "names": None if names is None else list(names),
        "classes": None if parts.classes is None else [str(label) for label in parts.classes.tolist()],
        "tasks": parts.tasks,
        "loss": parts.loss.name,
        "calibration": None
        if calibration is None
        else {k: np.asarray(v).tolist() for k, v in vars(calibration).items()},
        "has_mean": parts.mean_row is not None,
        "reference": reference.tolist(),
        "takes_negative": tables.is_signed and (tables.normalize is None or tables.normalize.takes_signs),
        "bound": tables.bound,
    }
