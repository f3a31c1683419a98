"""What a recipe takes on the rows at hand: memory, work, and how many landmarks suit them.

By these functions ``machines.resolve`` decides whether a fit keeps every row, in one matrix or in blocks, or the
features of all rows; and a race what a candidate becomes on all rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from chimap._validation import MemoryBudgetError
from chimap.backends import on_host
from chimap.data import Source
from chimap.features.additive.base import AdditiveMap
from chimap.features.base import Features
from chimap.features.exact import MOST_ROWS
from chimap.features.families import FAMILIES, AutomaticFeatures
from chimap.kernels import Exponential
from chimap.machines.block_plan import CHOICE_FACTORS, block_plan, block_seconds, share_of_columns, terms_of
from chimap.recipe.recipe import Recipe
from chimap.solvers.exact import is_shared
from chimap.solvers.exact_observed import filling_bytes
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.kernel_matrix import MOST_MAPPED, bytes_beside, exact_bytes, is_iterated

FEWEST_LANDMARKS, MOST_LANDMARKS = 1000, 8000
_GROWTH = 8  # landmarks per square root of the rows: 2000 for 60,000 rows
_LESS = 0.8  # factor on the number of landmarks while they do not fit in the memory
_LEAST = 64  # landmarks; if these do not fit, the budget itself is too small
MOST_SUMMED = 8192  # features whose products an ordinary machine can sum up
_SUMS = 2e11  # operations per second of two cores, of sums of features
MOST_ITERATED_ROWS = 3000  # of machines with iterated weights, each strength of which takes half a dozen factors
_MOST_LOOPED = 3e10  # entries of pairs of rows, at .2 to 3 ns each, of kernels that are not computed from products
_BATCH = 2 * FEWEST_LANDMARKS  # rows of a first batch that landmarks for later batches can be chosen from


def takes_exact(recipe: Recipe, source: Source) -> bool:
    """Return whether features="auto" fits on the kernel matrix of all rows, with loss="square", within the budget.

    It does for a kernel of which explicit features would be landmarks or random, also if it is that of one block among
    several, where its values are computed in seconds; and for an additive one with more features than rows: a factor
    then costs the cube of the rows and not that of the features.

    The posterior of the weights, where the model keeps it, is there for an additive kernel of up to ``MOST_MAPPED``
    features, and not for several blocks.
    """
    if not _allows_exact(recipe) or not holds_matrix(recipe, source):
        return False
    kernels = recipe.exact_kernels
    automatic = AutomaticFeatures(map=recipe.map, n_terms=recipe.n_terms)
    features = [automatic.of_kernel(kernel) for kernel in kernels]
    if any(_has_number(each) for each in features):
        by_loops = any(kernel.inner is None and not isinstance(kernel, Exponential) for kernel in kernels)
        entries = source.row_bytes / (source.dtype.itemsize + 4) if source.is_sparse else source.n_features
        return not by_loops or source.n_rows**2 * entries <= _MOST_LOOPED
    if not all(kernel.inner is not None for kernel in kernels):
        return False
    n_features = min(each.footprint(source.n_features).features for each in features)
    has_other_map = n_features > MOST_MAPPED or recipe.blocks is not None or recipe.n_covariates > 0
    return source.n_rows < n_features and not (recipe.keeps_posterior and has_other_map)


def holds_matrix(recipe: Recipe, source: Source) -> bool:
    """Return whether the kernel matrix of all rows fits the budget, and is factorised in seconds, or the time limit."""
    n, limit = source.n_rows, recipe.time_limit
    most = MOST_ITERATED_ROWS if is_iterated(recipe.loss) else MOST_ROWS
    if n > most or bytes_of_exact(recipe, source) > recipe.room:
        return False
    return limit is None or CHOICE_FACTORS * block_seconds(n, n, 0) <= limit


def takes_blocks(recipe: Recipe, source: Source) -> bool:
    """Return whether features="auto" solves an exponential kernel block by block, with loss="square".

    Targets with missing entries or weights of their own take a matrix of all rows, and so have landmarks.
    """
    y = source.labels()
    is_ridge = RidgeSolver().supports(recipe.loss)
    if not is_ridge or not _allows_exact(recipe) or y is None or _is_of_its_own(y, source.weights):
        return False
    if not any(isinstance(kernel, Exponential) for kernel in recipe.exact_kernels):
        return False
    return block_plan(recipe, source).fits(recipe.room)


def _allows_exact(recipe: Recipe) -> bool:
    """Return whether nothing is asked for that exact machines do not have.

    Components, folds of moments and a given number of components are not available there, nor are kernels
    without a map on a device.
    """
    return not (
        recipe.learner is not None  # it has its own features
        or recipe.n_principal is not None
        or not recipe.leaves_open("n_components")
        or not recipe.leaves_open("sampling")
        or not isinstance(recipe.landmarks, str)
        or not has_form_on_device(recipe)
        or not (RidgeSolver().supports(recipe.loss) or is_iterated(recipe.loss))
        or (isinstance(recipe.selection, str) and recipe.selection in ("gcv", "holdout"))
    )


def has_form_on_device(recipe: Recipe) -> bool:
    """Return whether the device can compute the values of the kernels: the host can of any."""
    return on_host(recipe.device) or all(kernel.inner is not None for kernel in recipe.exact_kernels)


def takes_wide(recipe: Recipe, source: Source) -> bool:
    """Whether ridge keeps the features of all rows, as an additive map of sparse rows has too many to sum products of.

    Sparse rows have so few entries each that passes over them are quick.
    """
    asks_otherwise = (
        recipe.learner is not None
        or not RidgeSolver().supports(recipe.loss)
        or recipe.n_principal is not None
        or recipe.blocks is not None
        or recipe.n_covariates > 0
        or not on_host(recipe.device)
        or recipe.scoring is not None
        or not recipe.leaves_open("selection")
        or isinstance(recipe.kernel, list | tuple)
    )
    y = source.labels()
    if asks_otherwise or not source.is_sparse or y is None or _is_of_its_own(y, source.weights):
        return False
    features = recipe.features_of(recipe.exact_kernel)
    is_additive = isinstance(features, (AdditiveMap, *FAMILIES["additive"]))
    return is_additive and features.footprint(source.n_features).features > MOST_SUMMED


def _is_of_its_own(y: np.ndarray, weights: np.ndarray | None) -> bool:
    """Whether one of several targets misses entries or has weights that differ from those of the others."""
    return y.ndim == 2 and not is_shared(y, weights)


def bytes_of_exact(recipe: Recipe, source: Source) -> int:
    """Return the bytes that features="exact" takes for a source with these parameters of an estimator."""
    mapped_bytes = terms_of(recipe, 2) * source.row_bytes * share_of_columns(recipe.blocks, source)
    needed = exact_bytes(source.n_rows, mapped_bytes, recipe.dtype) + bytes_beside(recipe.loss, source.n_rows)
    y = source.labels()
    if y is None or not _is_of_its_own(y, source.weights):
        return needed
    return needed + filling_bytes(*y.shape)


def takes_components(recipe: Recipe) -> bool:
    """Whether the word for the features gives landmarks or random features, whose number is n_components."""
    features = _features_of_word(recipe)
    return features is not None and _has_number(features)


def _has_number(features: Features) -> bool:
    """Whether they are as many as they are told to be: landmarks or random features."""
    return "n_components" in features.settings


def takes_landmarks(recipe: Recipe) -> bool:
    """Whether the word for the features gives landmarks, chosen among the rows or given."""
    return isinstance(_features_of_word(recipe), FAMILIES["landmarks"])


def _features_of_word(recipe: Recipe) -> Features | None:
    """Return unfitted features of all columns; None where an object was given, or several kernels."""
    if not isinstance(recipe.features, str) or isinstance(recipe.kernel, list | tuple):
        return None
    return recipe.features_of(recipe.exact_kernel)


def landmarks_of(n_rows: int) -> int:
    """Return the number of landmarks that a fit of ``n_rows`` rows begins with, whatever the memory.

    >>> [landmarks_of(n) for n in (500, 60_000, 10**9)]
    [1000, 1959, 8000]
    """
    return int(np.clip(_GROWTH * np.sqrt(n_rows), FEWEST_LANDMARKS, MOST_LANDMARKS))


def landmarks_in(seconds: float, n_rows: int) -> int:
    """Return the number of landmarks whose sums over ``n_rows`` rows take so many seconds of two cores.

    >>> [landmarks_in(60.0, n) for n in (100_000, 1_000_000, 100_000_000)]
    [8000, 3464, 1000]
    """
    return int(np.clip(np.sqrt(seconds * _SUMS / n_rows), FEWEST_LANDMARKS, MOST_LANDMARKS))


def landmarks_within(n_rows: int, check: Callable[[int], None]) -> int:
    """Return as many landmarks as suit the rows and fit in the memory budget.

    ``check`` raises MemoryBudgetError for a number that does not fit; if even few do not, that error is raised.
    """
    n = landmarks_of(n_rows)
    while True:
        try:
            check(n)
        except MemoryBudgetError:
            if n <= _LEAST:
                raise
            n = max(_LEAST, int(_LESS * n))
        else:
            return n


def most_components(least: int, n: int, check: Callable[[int], None]) -> int:
    """Return the largest number of landmarks or random features from ``least`` to ``n`` - 1 that fits; 0 if none does.

    See ``landmarks_within`` for ``check``.
    """
    n_fitting = bisect_left(range(least, n), True, key=lambda fewer: not _fits(fewer, check))
    return least + n_fitting - 1 if n_fitting else 0


def _fits(n: int, check: Callable[[int], None]) -> bool:
    try:
        check(n)
    except MemoryBudgetError:
        return False
    return True


def features_of_a_batch(recipe: Recipe, n_rows: int) -> str | Features:
    """Return the features for rows in batches: random ones, if the first batch is too small for landmarks.

    Kernels that have no random features take the landmarks of the first batch.
    """
    is_small = recipe.leaves_open("features") and n_rows < _BATCH and takes_landmarks(recipe)
    if is_small and any(made.takes(recipe.exact_kernel) for made in FAMILIES["fourier"]):
        return "fourier"
    return recipe.features
