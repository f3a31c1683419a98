"""gamma="auto" of rows that are too many for an exact machine: what an exact machine of a sample of them chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from chimap._memory import parse_memory, room_in
from chimap._types import ArrayLike
from chimap.data import ArraySource, Source
from chimap.data.source import choose_rows
from chimap.fit.exact import exact_bytes
from chimap.fit.weights import with_weights
from chimap.moments import of_rows

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


MOST_ROWS = 2000  # of the sample: a quarter of a second a gamma, and the best width hardly moves with more
_SHARE = 4  # of the memory budget that the kernel matrix of the sample may take


def gamma_of_sample(model: BaseEstimator, source: Source, groups: ArrayLike | None, seed: int) -> float:
    """gamma of the exponential kernel of an estimator, from a quarter to four times 1 / mean distance.

    It is chosen with a strength by leaving out rows, or groups of them, of a sample, by the score of the estimator
    (``scoring``). Landmarks and random features of all rows approach that machine's kernel, so its width is theirs.

    Raises ValueError for settings that an exact machine does not have.
    """
    if model.blocks is not None or isinstance(model.kernel, list | tuple):
        raise ValueError(
            "gamma='auto' chooses one gamma of all columns: with blocks give numbers, or 'mean'."
        )
    labels = source.labels()
    assert labels is not None
    places = choose_rows(source.n_rows, _rows_within(room_in(parse_memory(model.memory)), source), seed)
    sample: Source = ArraySource(source.take(places), labels[places], column_names=source.column_names)
    if source.weights is not None:
        sample = with_weights(sample, of_rows(source.weights[places]))
    exact = clone(model).set_params(
        features="exact", n_components="auto", n_principal=None, selection="auto", loss="square", sampling="auto",
        precision="float64" if model.precision == "float64" else "float32", device="cpu", verbose=False,
        class_weight=None,  # the weights of the rows have those of classes in them
        **{name: value for name, value in model.chosen_.items() if name in ("kernel", "normalize")},
    )  # fmt: skip
    chosen = None if groups is None else np.asarray(groups)[places]
    if chosen is not None and np.unique(chosen).size < 2:
        chosen = None
    return float(exact.fit_source(sample, groups=chosen).kernel_.gamma)


def _rows_within(budget: int, source: Source) -> int:
    rows = MOST_ROWS
    while rows > 100 and _SHARE * exact_bytes(rows, 2 * source.row_bytes, np.dtype(np.float32)) > budget:
        rows //= 2
    return min(rows, source.n_rows)
