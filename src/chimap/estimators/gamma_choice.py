"""gamma="auto" for rows that are too many for an exact machine: what an exact machine of a sample of them chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from chimap._errors import InputError
from chimap._memory import parse_memory, room_in
from chimap._messages import Message
from chimap._types import ArrayLike
from chimap.data import ArraySource, Source
from chimap.data.source import choose_rows
from chimap.features.base import FeatureSettings
from chimap.fit.weights import with_weights
from chimap.kernels import Exponential
from chimap.moments import of_rows
from chimap.solvers.kernel_matrix import exact_bytes

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


MOST_ROWS = 2000  # rows of the sample: a quarter of a second per gamma; more hardly change the best width
_SHARE = 4  # the kernel matrix of the sample may take a quarter of the memory budget


def gamma_of_sample(model: BaseEstimator, source: Source, groups: ArrayLike | None, seed: int) -> float | str:
    """Return gamma of the exponential kernel of an estimator, from a quarter to four times 1 / mean distance.

    It is chosen together with a strength on a sample, by the score of the estimator (``scoring``) on left-out rows or
    groups. Landmarks and random features of all rows approximate the kernel of that machine, so its width suits them.
    Kernels without a gamma of their own have none to choose: "mean", which sums of kernels pass on to their parts.

    Raise ValueError for settings that an exact machine does not support.
    """
    if model.blocks is not None or isinstance(model.kernel, list | tuple):
        raise InputError(
            Message(
                "{gamma='auto'} chooses one gamma for all columns: with {blocks} give numbers, or 'mean'."
            )
        )
    settings = {name: value for name, value in model.chosen_.items() if name in ("kernel", "normalize")}
    if not isinstance(FeatureSettings(settings.get("kernel", model.kernel)).exact, Exponential):
        return "mean"
    labels = source.labels()
    assert labels is not None
    places = choose_rows(source.n_rows, _rows_within(room_in(parse_memory(model.memory)), source), seed)
    sample: Source = ArraySource(source.take(places), labels[places], column_names=source.column_names)
    if source.weights is not None:
        sample = with_weights(sample, of_rows(source.weights[places]))
    exact = clone(model).set_params(
        features="exact", n_components="auto", n_principal=None, selection="auto", loss="square", sampling="auto",
        precision="float64" if model.precision == "float64" else "float32", device="cpu", verbose=False,
        class_weight=None, weights="importance",  # the row weights include the class weights already
        **settings,
    )  # fmt: skip
    sampled_groups = None if groups is None else np.asarray(groups)[places]
    if sampled_groups is not None and np.unique(sampled_groups).size < 2:
        sampled_groups = None
    return float(exact.fit_source(sample, groups=sampled_groups).kernel_.gamma)


def _rows_within(budget: int, source: Source) -> int:
    rows = MOST_ROWS
    while rows > 100 and _SHARE * exact_bytes(rows, 2 * source.row_bytes, np.dtype(np.float32)) > budget:
        rows //= 2
    return min(rows, source.n_rows)
