"""Every setting that is open gets its value for the rows at hand: here, once per fit, after the race.

The values say whether every row is kept, how many landmarks there are, gamma, which solver, and the precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import AUTO
from chimap.data import ArraySource, Source
from chimap.data.source import choose_rows
from chimap.engines import chunk_rows_within
from chimap.kernels import Exponential
from chimap.machines.base import Request
from chimap.machines.block_plan import BLOCK_TERMS, FEWEST_BLOCK_ROWS
from chimap.machines.jobs import largest_job
from chimap.machines.method import Method, check_sizes
from chimap.machines.sizes import (
    bytes_of_exact,
    features_of_a_batch,
    holds_matrix,
    landmarks_within,
    most_components,
    takes_blocks,
    takes_components,
    takes_exact,
    takes_landmarks,
    takes_wide,
)
from chimap.moments import of_rows
from chimap.recipe import Recipe
from chimap.recipe.task import Task
from chimap.recipe.weights import with_weights
from chimap.solvers.blocks import BlockSolver
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.kernel_matrix import exact_bytes
from chimap.solvers.wide_ridge import WideRidgeSolver

GAMMA_ROWS = 2000  # of a sample that gamma is chosen on: a quarter of a second per gamma; more hardly change the best
_FEWEST_GAMMA_ROWS = 100
_GAMMA_SHARE = 4  # the kernel matrix of the sample may take a quarter of the memory budget

ChooseGamma = Callable[[Recipe, Source, np.ndarray | None], float | str]
"""Returns gamma for a recipe, rows and their groups."""


def resolve(
    recipe: Recipe, source: Source, task: Task, choose_gamma: ChooseGamma, groups: np.ndarray | None, request: Request
) -> Recipe:
    """Return the recipe with a value for each setting that depends on the rows.

    Parameters
    ----------
    recipe : Recipe
        The settings, after the race.
    source : Source
        The rows.
    task : Task
        Their targets.
    choose_gamma : callable
        Chooses gamma="auto" for machines that do not choose it themselves: ``gamma_of_sample``, with a fit.
    groups : array of shape (n,) or None
        Groups of the rows.
    request : Request
        What is asked of the fit besides.

    Raises
    ------
    ValueError
        If a size is invalid.
    MemoryBudgetError
        If not even a few landmarks fit in the memory budget.
    """
    names_exact = recipe.is_exact and "features" not in recipe.raced
    if (
        request.may_keep_rows
        and recipe.leaves_open("features")
        and (takes_exact(recipe, source) or takes_blocks(recipe, source))
    ):
        recipe = recipe.with_values(features="exact")
    if _is_solved_in_blocks(recipe, source, request, names_exact):
        recipe = recipe.with_values(solver=BlockSolver.name)
        if recipe.leaves_open("n_terms"):
            recipe = recipe.with_values(n_terms=BLOCK_TERMS)
    check_sizes(recipe)
    if recipe.leaves_open("gamma") and not recipe.is_exact:
        recipe = recipe.with_values(gamma=choose_gamma(recipe, source, groups))
    if request.is_batch:
        features = features_of_a_batch(recipe, source.n_rows)
        recipe = recipe if features is recipe.features else recipe.with_values(features=features)
    if recipe.leaves_open("n_components") and takes_landmarks(recipe):
        check = room_for(recipe, source, task, groups)
        recipe = recipe.with_values(n_components=landmarks_within(source.n_rows, check))
    if source.is_sparse and request.may_keep_rows and not request.has_checkpoint and takes_wide(recipe, source):
        recipe = recipe.with_values(solver=WideRidgeSolver.name)
    if recipe.leaves_open("precision"):
        recipe = recipe.with_values(precision="float32")
    return recipe


def _is_solved_in_blocks(recipe: Recipe, source: Source, request: Request, names_exact: bool) -> bool:
    """Whether a machine that keeps every row is solved block by block: rows to come are blocks of their own.

    names_exact: whether the user named exact machines, which then have a matrix of all rows wherever memory holds one.
    """
    if not recipe.is_exact or recipe.learner is not None or not RidgeSolver().supports(recipe.loss):
        return False
    if request.is_batch or source.n_rows <= FEWEST_BLOCK_ROWS:
        return request.is_batch
    if names_exact:
        return bytes_of_exact(recipe, source) > recipe.room
    return not holds_matrix(recipe, source)


def room_for(recipe: Recipe, source: Source, task: Task, groups: np.ndarray | None = None) -> Callable[[int], None]:
    """Return a function that takes a number of components and raises MemoryBudgetError if it does not fit."""

    def check(n: int) -> None:
        method = Method.of(replace(recipe, n_components=n), source.column_names, has_gaps=task.has_gaps)
        method = method if groups is None else method.of_groups()
        chunk_rows_within(largest_job(method, source, task.n_targets), recipe.budget)

    return check


def advice_on_components(recipe: Recipe, source: Source, task: Task) -> str:
    """Return a sentence with the largest number of components that fits in the memory budget.

    It is empty if not even one fits, or if the settings do not give their number.
    """
    n = recipe.n_components
    if recipe.is_exact or isinstance(n, str) or not takes_components(recipe):
        return ""
    fewest = Method.of(recipe, source.column_names, has_gaps=task.has_gaps).most_principal or 1
    most = most_components(fewest, n, room_for(recipe, source, task))
    return Message(" At most about {n_components=!s} fits it.", most) if most else ""


def gamma_sample(
    recipe: Recipe, source: Source, groups: np.ndarray | None
) -> tuple[Recipe, Source, np.ndarray | None] | None:
    """Return the exact machine of a sample that chooses gamma, its rows and their groups.

    It is chosen together with a strength by the score of left-out rows or groups, from a quarter to four times 1 / mean
    distance. Landmarks and random features of all rows approximate the kernel of that machine, so its width suits them.
    None for kernels without a gamma of their own: "mean", which sums of kernels pass on to their parts.

    Raise ValueError for settings that an exact machine does not support.
    """
    if recipe.blocks is not None or isinstance(recipe.kernel, list | tuple):
        raise InputError(
            Message("{gamma='auto'} chooses one gamma for all columns: with {blocks} give numbers, or 'mean'.")
        )
    if not isinstance(recipe.exact_kernel, Exponential):
        return None
    labels = source.labels()
    assert labels is not None
    places = choose_rows(source.n_rows, _rows_within(recipe.room, source), recipe.seed)
    sample: Source = ArraySource(source.take(places), labels[places], column_names=source.column_names)
    if source.weights is not None:
        sample = with_weights(sample, of_rows(source.weights[places]))
    of_sample = None if groups is None else groups[places]
    return (exact_machine_of(recipe), sample, None if of_sample is None or np.unique(of_sample).size < 2 else of_sample)


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
