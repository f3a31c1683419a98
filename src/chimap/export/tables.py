"""The functions of single bins as tables of knots and values, in files that any program can read."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from chimap._arrays import to_dense
from chimap._errors import InputError
from chimap._types import JSON
from chimap.export.parts import ModelParts
from chimap.normalizations import Normalization
from chimap.tables import BinFunctions, line_tables
from chimap.tables.pieces import grid_of

# positions between two knots, as shares of the gap, at which the straight line is compared to the model's function
_INNER = np.array([0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9])
_BETWEEN = 1.25  # factor on the largest difference, since it may be larger between these positions
_NUMBERS = 2**21  # numbers in one chunk of bins


@dataclass(frozen=True, eq=False)
class BinTables:
    """An additive model as tables: f_ic is given by its values at the knots of bin i.

    The score of class or output c is

        score_c(x) = intercept_c + sum_i sign(x_i) f_ic(|x_i|).

    Parameters
    ----------
    kind : {"linear", "steps"}
        "linear": f is a straight line between knots; beyond the last knot it is unknown, and the value there is used.
        "steps": f(x) is the value at the last knot below x, and the first value at x = 0.
    knots : ndarray of shape (bins, k), float64
        Ascending in each bin; infinite after the last knot of a bin that has fewer than k.
    values : ndarray of shape (bins, k, t), float64
        The values of f at the knots.
    errors : ndarray of shape (bins,)
        Largest difference between the line and the model's function (0 for steps), over magnitudes not below the
        smallest non-zero one in the rows of the fit.
    intercept : ndarray of shape (t,)
        The scores at f = 0.
    output_names : list of str
        A name for each of the t outputs.
    normalize : Normalization or None
        The fitted normalisation of the rows before the tables are applied; None for none.
    is_signed : bool
        Whether bins may be negative.
    bound : float, default=0.0
        Largest error of a score, for rows within the range of the tables. Errors of the same sign in the same output
        add up; errors of opposite signs cancel.
    threshold : float, default=0.0
        Scores above it mean the second of two classes.
    """

    kind: str
    knots: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    intercept: np.ndarray
    output_names: list[str]
    normalize: Normalization | None
    is_signed: bool
    bound: float = 0.0
    threshold: float = 0.0

    @property
    def normalize_name(self) -> str | None:
        """Name of the normalisation; None for none."""
        return None if self.normalize is None else self.normalize.name

    @property
    def learned(self) -> dict[str, Any]:
        """What the normalisation learned, by name: ``idf`` of tf-idf."""
        return {} if self.normalize is None else vars(self.normalize)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the scores (n, t) of rows X (n, bins) by the definition above. Slow: only for checks."""
        X = np.asarray(X, dtype=np.float64)
        if self.normalize is not None:
            X = to_dense(self.normalize(X, [np.arange(X.shape[1])]))
        out = np.tile(self.intercept, (X.shape[0], 1))
        for i in range(X.shape[1]):
            out += self.terms(i, X[:, i])
        return out

    def terms(self, place: int, values: np.ndarray) -> np.ndarray:
        """Return what normalised values (n,) of a bin add to the scores, (n, t)."""
        sign, x, knots = np.sign(values), np.abs(values), self.knots[place]
        if self.kind == "steps":
            terms = self.values[place][np.maximum(np.searchsorted(knots, x, side="left") - 1, 0)]
        else:
            terms = np.stack([np.interp(x, knots, column) for column in self.values[place].T], axis=1)
        return sign[:, None] * terms


def bin_tables(parts: ModelParts, tolerance: float, holder: str = "tables") -> BinTables:
    """Return the tables of an additive model within ``tolerance`` (see ``HistogramClassifier.compile``).

    A refusal names ``holder``, what the tables are for.

    Raises
    ------
    ValueError
        If the model is not a sum over bins, if it divides each of several blocks by the block's sum, or if only some
        blocks may be negative.
    """
    normalize, factors = parts.preparation.normalize, parts.preparation.factors
    refused = f"{holder} cannot hold this model"
    if normalize is not None and normalize.joins_bins and len(parts.preparation.parts) > 1:
        raise InputError(f"{refused}: it normalises each of its blocks by the block's sum. Export it as ONNX.")
    common: JSON = {
        "intercept": np.asarray(parts.intercept, np.float64),
        "output_names": parts.output_names,
        "normalize": normalize,
        "threshold": parts.threshold,
    }
    psi = parts.features
    known = psi.exact_functions(parts.coef)
    if known is not None:
        is_signed = bool(psi.kernel_.is_signed)
        return _of_rows_as_they_come(BinTables(*known, np.zeros(parts.n_bins), is_signed=is_signed, **common), factors)
    try:
        functions = BinFunctions(psi, parts.coef)
    except InputError as error:
        raise InputError(f"{refused}: {error}") from None
    if functions.is_mixed:
        raise InputError(f"{refused}: some of its blocks take negative values, and others do not. Export it as ONNX.")
    # The line through a function's values at both ends of a piece errs up to twice as much as the best line there.
    pieces = line_tables(functions, parts.intercept, tolerance / 2)
    grid = grid_of(pieces)
    first, last = grid.edges()
    ends = np.append(first, last[-1:]).astype(np.float64)
    inner = np.concatenate([(1 - s) * ends[:-1] + s * ends[1:] for s in _INNER])
    knots = ends * functions.tops[:, None]
    values = np.empty((*knots.shape, parts.n_outputs))
    errors = np.empty(parts.n_bins)
    above, below, either = np.zeros((3, parts.n_outputs))
    chunk = max(1, _NUMBERS // (inner.size * max(parts.n_outputs, 4)))
    for start in range(0, parts.n_bins, chunk):
        bins = np.arange(start, min(parts.n_bins, start + chunk))
        values[bins] = functions(knots[bins].T, bins).transpose(1, 0, 2)
        x = inner[:, None] * functions.tops[bins]
        exact = functions(x, bins)
        low, high = values[bins, :-1].transpose(1, 0, 2), values[bins, 1:].transpose(1, 0, 2)
        lines = np.concatenate([(1 - s) * low + s * high for s in _INNER])
        gaps = _BETWEEN * np.where((x >= functions.smallest)[..., None], lines - exact, 0)
        errors[bins] = np.abs(gaps).max(axis=(0, 2))
        above += gaps.max(axis=0).clip(0).sum(axis=0)
        below += (-gaps).max(axis=0).clip(0).sum(axis=0)
        either += np.abs(gaps).max(axis=0).sum(axis=0)
    # A negative bin flips the sign of its error, so with signed bins the errors of all bins may add up.
    bound = either if functions.is_signed else np.maximum(above, below)
    tables = BinTables(
        "linear", knots, values, errors, is_signed=functions.is_signed, bound=float(bound.max()), **common
    )
    return _of_rows_as_they_come(tables, factors)


def _of_rows_as_they_come(tables: BinTables, factors: np.ndarray | None) -> BinTables:
    """Return the tables for unweighted bins: the knots are divided by the columns' factors."""
    if factors is None:
        return tables
    is_dropped = factors == 0
    knots = tables.knots / np.where(is_dropped, 1, factors)[:, None]
    values = np.where(is_dropped[:, None, None], tables.values[:, :1], tables.values)  # the value at 0 everywhere
    return replace(tables, knots=knots, values=values)


def _write_npz(tables: BinTables, path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(
            file,
            kind=tables.kind,
            knots=tables.knots,
            values=tables.values,
            errors=tables.errors,
            intercept=tables.intercept,
            outputs=np.array(tables.output_names),
            normalize=tables.normalize_name or "",
            signed=tables.is_signed,
            threshold=tables.threshold,
            **tables.learned,
        )


def document_of(tables: BinTables) -> JSON:
    """Return the tables as plain values, which JSON holds."""
    bins = [
        {"knots": knots[is_knot].tolist(), "values": values[is_knot].tolist(), "error": float(error)}
        for knots, values, error in zip(tables.knots, tables.values, tables.errors, strict=True)
        for is_knot in [np.isfinite(knots)]
    ]
    return {
        "kind": tables.kind,
        "outputs": tables.output_names,
        "intercept": tables.intercept.tolist(),
        "normalize": tables.normalize_name,
        "signed": tables.is_signed,
        "threshold": tables.threshold,
        "bins": bins,
        **{name: numbers.tolist() for name, numbers in tables.learned.items()},
    }


def _write_json(tables: BinTables, path: Path) -> None:
    path.write_text(json.dumps(document_of(tables)), encoding="utf-8")


def _write_csv(tables: BinTables, path: Path) -> None:
    """Write the columns bin, knot and one per output; the line without bin and knot holds the intercepts.

    Raises ValueError if the tables contain more than that.
    """
    beyond_csv = {
        "steps": tables.kind != "linear",
        "normalised rows": tables.normalize is not None,
        "signs": tables.is_signed,
        "a threshold": tables.threshold != 0,
    }
    if any(beyond_csv.values()):
        listed = " and ".join(name for name, is_there in beyond_csv.items() if is_there)
        raise InputError(
            f"CSV holds only straight lines between knots, but these tables have {listed}: write .npz or .json."
        )
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["bin", "knot", *tables.output_names])
        writer.writerow(["", "", *tables.intercept.tolist()])
        for i, (knots, values) in enumerate(zip(tables.knots, tables.values, strict=True)):
            writer.writerows(
                [i, knot, *v] for knot, v in zip(knots.tolist(), values.tolist(), strict=True) if knot < np.inf
            )


WRITERS = {".npz": _write_npz, ".json": _write_json, ".csv": _write_csv}
"""Functions that write tables to a path, by its ending; a CSV file cannot hold all of them."""
