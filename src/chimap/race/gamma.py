"""gamma="auto" of machines that do not choose it themselves: that of the exact machine of a sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import AUTO
from chimap.data import ArraySource, Source
from chimap.data.source import choose_rows
from chimap.kernels import Exponential
from chimap.machines.base import Facts, Plan
from chimap.machines.catalogue import machine_for
from chimap.moments import of_rows
from chimap.race.runner import Fit
from chimap.recipe import Recipe
from chimap.recipe.weights import with_weights
from chimap.solvers.kernel_matrix import exact_bytes

GAMMA_ROWS = 2000  # of a sample that gamma is chosen on: a quarter of a second per gamma; more hardly change the best
_FEWEST_GAMMA_ROWS = 100
_GAMMA_SHARE = 4  # the kernel matrix of the sample may take a quarter of the memory budget


def plan_for(recipe: Recipe, facts: Facts, asked: Recipe, groups: np.ndarray | None, fit: Fit) -> Plan:
    """Return the plan of ``machine_for``, with a gamma where it is open and the machine does not choose it."""
    plan = machine_for(recipe, facts, asked)
    if plan.recipe.is_exact or not plan.recipe.leaves_open("gamma"):
        return plan
    gamma = gamma_of_sample(plan.recipe, facts.source, groups, fit)
    return replace(plan, recipe=plan.recipe.with_values(gamma=gamma))


def gamma_of_sample(recipe: Recipe, source: Source, groups: np.ndarray | None, fit: Fit) -> float | str:
    """Return gamma of the exact machine of a sample; "mean" for kernels without one.

    It is chosen together with a strength by the score of left-out rows or groups, from a quarter to four times 1 / mean
    distance. Landmarks and random features of all rows approximate the kernel of that machine, so its width suits them.
    Sums of kernels pass "mean" on to their parts.

    Raise ValueError for settings that an exact machine does not support.
    """
    if recipe.blocks is not None or isinstance(recipe.kernel, list | tuple):
        raise InputError(
            Message("{gamma='auto'} chooses one gamma for all columns: with {blocks} give numbers, or 'mean'.")
        )
    if not isinstance(recipe.exact_kernel, Exponential):
        return "mean"
    labels = source.labels()
    assert labels is not None
    places = choose_rows(source.n_rows, _rows_within(recipe.room, source), recipe.seed)
    sample: Source = ArraySource(source.take(places), labels[places], column_names=source.column_names)
    if source.hidden is not None:
        sample.hidden = source.hidden[places]
    if source.weights is not None:
        sample = with_weights(sample, of_rows(source.weights[places]))
    of_sample = None if groups is None else groups[places]
    if of_sample is not None and np.unique(of_sample).size < 2:
        of_sample = None
    return float(fit(exact_machine_of(recipe), sample, of_sample).kernel.gamma)  # type: ignore[attr-defined]


def exact_machine_of(recipe: Recipe) -> Recipe:
    """Return the settings of the exact machine of a few weighted rows, with the kernel and the rows of a recipe."""
    return replace(
        recipe,
        features="exact",
        n_components=AUTO,
        n_principal=None,
        selection=AUTO,
        loss="square",
        sampling=AUTO,
        precision="float64" if recipe.precision == "float64" else "float32",
        device="cpu",
        verbose=False,
        class_weight=None,
        weights="importance",  # the row weights include the class weights already
        raced=frozenset(),
    )


def _rows_within(room: int, source: Source) -> int:
    rows = GAMMA_ROWS
    while (
        rows > _FEWEST_GAMMA_ROWS
        and _GAMMA_SHARE * exact_bytes(rows, 2 * source.row_bytes, np.dtype(np.float32)) > room
    ):
        rows //= 2
    return min(rows, source.n_rows)
