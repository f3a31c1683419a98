"""The functions of single bins as tables of knots and values, in files that anything reads."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from chimap._arrays import to_dense
from chimap._types import JSON
from chimap.export.parts import ModelParts
from chimap.features.additive import AnchorMap
from chimap.fit.rows import NORMALIZATIONS
from chimap.tables import BinFunctions, line_tables
from chimap.tables.pieces import grid_of

_INNER = np.array(
    [0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9]
)  # places between two knots where the line is compared
_BETWEEN = 1.25  # what may lie between these
_NUMBERS = 2**21


@dataclass(frozen=True, eq=False)
class BinTables:
    """score_c(x) = intercept_c + sum_i sign(x_i) f_ic(|x_i|), f_ic known at knots.

    kind : "linear": f is a straight line between knots, and beyond the last one not known (take its value there);
    "steps": f at x is the value of the last knot below x, and the first value at x = 0.
    knots : (bins, k) float64, rising; infinite where a bin has fewer. values : (bins, k, t) float64.
    errors : (bins,), how far the line is from the model's function at most (0 for steps), of values from the smallest
    on that the fit has seen. bound : how far a score is off at most, of rows within the tables: errors of one sign in
    one output add up, and those of the other sign cancel them.
    normalize : what is done to rows before, one of ``NORMALIZATIONS``; None for nothing. threshold : scores above it
    are of the second of two classes.
    """

    kind: str
    knots: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    intercept: np.ndarray
    output_names: list[str]
    normalize: str | None
    is_signed: bool
    bound: float = 0.0
    threshold: float = 0.0

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Scores (n, t) of rows X (n, bins) by the definition above: slow, and for checks."""
        X = np.asarray(X, dtype=np.float64)
        if self.normalize is not None:
            X = to_dense(NORMALIZATIONS[self.normalize](X, [np.arange(X.shape[1])]))
        out = np.tile(self.intercept, (X.shape[0], 1))
        for i in range(X.shape[1]):
            sign, x, knots = np.sign(X[:, i]), np.abs(X[:, i]), self.knots[i]
            if self.kind == "steps":
                terms = self.values[i][np.maximum(np.searchsorted(knots, x, side="left") - 1, 0)]
            else:
                columns = self.values[i].T
                terms = np.stack([np.interp(x, knots, column) for column in columns], axis=1)
            out += sign[:, None] * terms
        return out


def bin_tables(parts: ModelParts, tolerance: float) -> BinTables:
    """Tables of an additive model within ``tolerance`` (see ``HistogramClassifier.compile``).

    Raises ValueError for models that mix the bins, and for several blocks that are divided by a sum each.
    """
    if parts.normalize == "l1" and len(parts.blocks) > 1:
        raise ValueError(
            "tables are of single bins, but this model divides each of its blocks by a sum of its own: export it "
            "as ONNX."
        )
    common: JSON = {
        "intercept": np.asarray(parts.intercept, np.float64),
        "output_names": parts.output_names,
        "normalize": parts.normalize,
        "threshold": parts.threshold,
    }
    psi = parts.features
    if isinstance(psi, AnchorMap) and psi.has_codes:
        return _of_rows_as_they_come(_of_codes(psi, parts, common), parts.factors)
    functions = BinFunctions(psi, parts.coef)
    if functions.is_mixed:
        raise ValueError("some blocks take negative values and some do not: export the model as ONNX.")
    # a line between its ends is up to twice as far off as the best one
    pieces = line_tables(functions, parts.intercept, tolerance / 2)
    grid = grid_of(pieces)
    first, last = grid.edges()
    ends = np.append(first, last[-1:]).astype(np.float64)
    inner = np.concatenate([(1 - s) * ends[:-1] + s * ends[1:] for s in _INNER])
    knots = ends * functions.tops[:, None]
    values = np.empty((*knots.shape, parts.n_outputs))
    errors = np.empty(parts.n_bins)
    above, below, either = np.zeros((3, parts.n_outputs))
    size = max(1, _NUMBERS // (inner.size * max(parts.n_outputs, 4)))
    for start in range(0, parts.n_bins, size):
        bins = np.arange(start, min(parts.n_bins, start + size))
        values[bins] = functions(knots[bins].T, bins).transpose(1, 0, 2)
        x = inner[:, None] * functions.tops[bins]
        g = functions(x, bins)
        low, high = values[bins, :-1].transpose(1, 0, 2), values[bins, 1:].transpose(1, 0, 2)
        lines = np.concatenate([(1 - s) * low + s * high for s in _INNER])
        gaps = _BETWEEN * np.where((x >= functions.smallest)[..., None], lines - g, 0)
        errors[bins] = np.abs(gaps).max(axis=(0, 2))
        above += gaps.max(axis=0).clip(0).sum(axis=0)
        below += (-gaps).max(axis=0).clip(0).sum(axis=0)
        either += np.abs(gaps).max(axis=0).sum(axis=0)
    # the sign of a negative bin turns that of its error, so that those of all bins may add up
    bound = either if functions.is_signed else np.maximum(above, below)
    tables = BinTables(
        "linear", knots, values, errors, is_signed=functions.is_signed, bound=float(bound.max()), **common
    )
    return _of_rows_as_they_come(tables, parts.factors)


def _of_rows_as_they_come(tables: BinTables, factors: np.ndarray | None) -> BinTables:
    """Tables of weighted bins for bins without weights: the knots are divided by the factors of the columns."""
    if factors is None:
        return tables
    left_out = factors == 0
    knots = tables.knots / np.where(left_out, 1, factors)[:, None]
    values = np.where(left_out[:, None, None], tables.values[:, :1], tables.values)  # those of 0
    return replace(tables, knots=knots, values=values)


def _of_codes(psi: AnchorMap, parts: ModelParts, common: JSON) -> BinTables:
    half = psi._factors.shape[2]
    values = psi.tables_by_bin(parts.coef.T)[:, :half]
    knots = psi.lower_borders()
    return BinTables(
        "steps", knots, values, np.zeros(parts.n_bins), is_signed=psi.kernel_.is_signed, **common
    )


def write_tables(tables: BinTables, path: Path, ending: str) -> None:
    """As .npz, .json or .csv. Raises ValueError for other endings."""
    WRITERS[ending](tables, path)


def _write_npz(tables: BinTables, path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(
            file, kind=tables.kind, knots=tables.knots, values=tables.values, errors=tables.errors,
            intercept=tables.intercept, outputs=np.array(tables.output_names), normalize=tables.normalize or "",
            signed=tables.is_signed, threshold=tables.threshold,
        )  # fmt: skip


def _write_json(tables: BinTables, path: Path) -> None:
    bins = [
        {"knots": knots[known].tolist(), "values": values[known].tolist(), "error": float(error)}
        for knots, values, error in zip(tables.knots, tables.values, tables.errors, strict=True)
        for known in [np.isfinite(knots)]
    ]
    whole = {
        "kind": tables.kind, "outputs": tables.output_names, "intercept": tables.intercept.tolist(),
        "normalize": tables.normalize, "signed": tables.is_signed, "threshold": tables.threshold,
        "bins": bins,
    }  # fmt: skip
    path.write_text(json.dumps(whole), encoding="utf-8")


def _write_csv(tables: BinTables, path: Path) -> None:
    """bin, knot, a column an output; the intercepts are in the line without bin and knot.

    Raises ValueError for tables that are more than these numbers.
    """
    beside = {
        "steps": tables.kind != "linear",
        "normalised rows": tables.normalize is not None,
        "signs": tables.is_signed,
        "a threshold": tables.threshold != 0,
    }
    if any(beside.values()):
        what = " and ".join(name for name, is_there in beside.items() if is_there)
        raise ValueError(
            f"CSV holds lines between knots alone, and these tables have {what}: write .npz or .json."
        )
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["bin", "knot", *tables.output_names])
        lines.writerow(["", "", *tables.intercept.tolist()])
        for i, (knots, values) in enumerate(zip(tables.knots, tables.values, strict=True)):
            lines.writerows(
                [i, knot, *v]
                for knot, v in zip(knots.tolist(), values.tolist(), strict=True)
                if knot < np.inf
            )


WRITERS = {".npz": _write_npz, ".json": _write_json, ".csv": _write_csv}
