"""What features="auto" and n_components="auto" mean for the rows at hand.

Estimators call these functions before they make a recipe. They decide whether a fit keeps every row, whether it keeps
the features of all rows, and how many landmarks suit the rows and the memory budget.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from chimap._types import Blocks, Parameters
from chimap._validation import MemoryBudgetError, check_blocks
from chimap.backends import backend_of, on_host
from chimap.data import Source
from chimap.data.table import named_blocks
from chimap.features.additive.families import AdditiveFamily, LinearFamily
from chimap.features.base import FeatureSettings
from chimap.features.exact.family import MOST_ROWS
from chimap.features.families import FAMILIES, family_of
from chimap.fit.exact import has_form_on_device, kernels_of_blocks
from chimap.kernels import Exponential
from chimap.solvers.blocks import (
    FEWEST_BLOCK_ROWS,
    MOST_BLOCK_ROWS,
    USUAL_SECONDS,
    block_bytes,
    block_seconds,
    most_rows_within,
)
from chimap.solvers.exact import is_shared
from chimap.solvers.exact_observed import filling_bytes
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.kernel_matrix import MOST_MAPPED, bytes_beside, exact_bytes

FEWEST_LANDMARKS, MOST_LANDMARKS = 1000, 8000
_GROWTH = 8  # landmarks per square root of the rows: 2000 for 60,000 rows
_LESS = 0.8  # factor on the number of landmarks while they do not fit in the memory
_LEAST = 64  # landmarks; if these do not fit, the budget itself is too small
MOST_SUMMED = 8192  # features whose products an ordinary machine can sum up
BLOCK_TERMS = (
    1  # features per bin of machines in blocks: a second costs as much again and gains nothing at many rows
)
_STEP_OF_BLOCKS = 500  # rows by which blocks differ that are tried for the memory
_FIRST_SHARE = 0.3  # of the seconds of a fit that its first block may take
_CHOICE = 3  # the first block takes as long as so many factors
_OUTPUTS_OF_ROWS = 4  # matrices of targets, weights and outputs of all rows
_SPARSE_ENTRY = 20  # dense columns whose products take as long as those of an entry of sparse rows
_SUMS = 2e11  # operations per second of two cores, of sums of features
_BATCH = 2 * FEWEST_LANDMARKS  # rows of a first batch that landmarks for later batches can be chosen from


def is_automatic(value: object) -> bool:
    """Whether a parameter is "auto"."""
    return isinstance(value, str) and value == "auto"


def takes_exact(given: Parameters, source: Source, budget: int, *, has_posterior: bool = False) -> bool:
    """Return whether features="auto" fits on the kernel matrix of all rows, with loss="square", within the budget.

    It does for an exponential kernel, also if it is that of one block among several, and for an additive one with more
    features than rows: a factor then costs the cube of the rows and not that of the features.

    given : parameters of an estimator. has_posterior : whether the model keeps the posterior of its weights, which an
    additive kernel has up to ``MOST_MAPPED`` features, and those of several blocks do not have.
    """
    if not _allows_exact(given) or not holds_matrix(given, source, budget):
        return False
    blocks = kernels_of_blocks(given)
    if not any(isinstance(block.exact, Exponential) for block in blocks):
        families = [family_of(block) for block in blocks]
        if not set(families) <= {AdditiveFamily, LinearFamily}:
            return False
        n_features = min(
            family.footprint(block, source.n_features).features
            for family, block in zip(families, blocks, strict=True)
        )
        has_other_map = n_features > MOST_MAPPED or given["blocks"] is not None
        if source.n_rows >= n_features or (has_posterior and has_other_map):
            return False
    return True


def holds_matrix(given: Parameters, source: Source, budget: int) -> bool:
    """Return whether the kernel matrix of all rows fits the budget, and is factorised in seconds, or the time limit."""
    n, limit = source.n_rows, given.get("time_limit")
    if n > MOST_ROWS or bytes_of_exact(given, source) > budget:
        return False
    return limit is None or _CHOICE * block_seconds(n, n, 0) <= limit


def takes_blocks(given: Parameters, source: Source, budget: int) -> bool:
    """Return whether features="auto" solves an exponential kernel block by block, with loss="square".

    Targets with missing entries or weights of their own take a matrix of all rows, and so have landmarks.
    """
    y = source.labels()
    if not _allows_exact(given) or y is None or _is_of_its_own(y, source.weights):
        return False
    if not any(isinstance(block.exact, Exponential) for block in kernels_of_blocks(given)):
        return False
    return block_plan(given, source, budget).fits(budget)


def _allows_exact(given: Parameters) -> bool:
    """Return whether nothing is asked for that exact machines do not have.

    Components, bfloat16, folds of moments and a given number of components are not available there, nor are kernels
    without a map on a device.
    """
    return not (
        "n_principal" not in given  # a learner of kernels, which has its own features
        or given["n_principal"] is not None
        or not is_automatic(given["n_components"])
        or given["sampling"] != "auto"
        or not isinstance(given["landmarks"], str)
        or given["precision"] == "bfloat16"
        or not has_form_on_device(given)
        or not RidgeSolver().supports(given["loss"])
        or (isinstance(given["selection"], str) and given["selection"] in ("gcv", "holdout"))
    )


@dataclass(frozen=True)
class BlockPlan:
    """How a machine in blocks takes the rows of a source.

    Parameters
    ----------
    block_rows : int
        Rows of a block, as many as the memory holds.
    n_rows : int
        Rows to learn from: those of the source, or as many as the work allows.
    seconds : float
        Seconds of two cores for these rows, by the operations.
    n_bytes : int
        Bytes of the rows and of a block.
    is_held : bool
        Whether the device, if there is one, has room for the rows and a block.
    """

    block_rows: int
    n_rows: int
    seconds: float
    n_bytes: int
    is_held: bool

    def fits(self, room: int) -> bool:
        """Return whether ``room`` bytes, and the device, hold the rows and a block."""
        return self.is_held and self.n_bytes <= room

    @property
    def first_seconds(self) -> float:
        """Seconds of the first block, on which strength and gamma are chosen too."""
        return _CHOICE * block_seconds(self.block_rows, self.block_rows, 0)


def block_plan(given: Parameters, source: Source, room: int) -> BlockPlan:
    """Return how a machine in blocks takes the rows of a source within ``room`` bytes.

    The work is that of the time limit among the parameters, or a usual amount. A device does it faster, apart from the
    first block, which is solved on this machine.
    """
    backend = backend_of(given["device"])
    dtype = np.dtype("float64" if given["precision"] == "float64" else "float32")
    row_bytes = mapped_row_bytes(given, source)
    kept_bytes = row_bytes + outputs_bytes(_targets_of(source))
    seconds = given.get("time_limit") or USUAL_SECONDS
    stored = int(_terms_in_blocks(given) * source.n_features * _share_of_columns(given.get("blocks"), source))
    columns = _dense_columns(given, source, row_bytes, dtype) if on_host(given["device"]) else stored
    least = min(FEWEST_BLOCK_ROWS, source.n_rows)

    def of_blocks(block_rows: int) -> BlockPlan:
        work = seconds * backend.speed
        n_rows = min(source.n_rows, max(block_rows, most_rows_within(work, block_rows, columns)))
        needed = int(n_rows * kept_bytes) + block_bytes(block_rows, row_bytes, dtype)
        return BlockPlan(
            block_rows, n_rows, block_seconds(n_rows, block_rows, columns) / backend.speed, needed,
            backend.holds(n_rows, stored, block_rows, dtype),
        )  # fmt: skip

    sizes = range(min(MOST_BLOCK_ROWS, source.n_rows), least, -_STEP_OF_BLOCKS)
    plans = [of_blocks(size) for size in [*sizes, least]]
    fitting = (p for p in plans if p.fits(room) and p.first_seconds <= _FIRST_SHARE * seconds)
    return next(fitting, plans[-1])


def _targets_of(source: Source) -> int:
    """Return the number of outputs of a machine for the labels of a source, at most."""
    y = source.labels()
    if y is None:
        return 1
    if y.ndim == 2:
        return int(y.shape[1])
    return 1 if y.dtype.kind == "f" else max(1, np.unique(y).size)


def outputs_bytes(n_targets: int) -> int:
    """Return the bytes of the targets, weights and outputs of a row of a machine in blocks."""
    return _OUTPUTS_OF_ROWS * n_targets * np.dtype(np.float64).itemsize


def mapped_row_bytes(given: Parameters, source: Source) -> float:
    """Return the bytes of a mapped row in the precision of the fit."""
    return float(_terms_in_blocks(given) * source.row_bytes * _share_of_columns(given.get("blocks"), source))


def _terms_in_blocks(given: Parameters) -> int:
    """Return the features per bin of a machine in blocks."""
    if given["map"] is not None:
        return int(given["map"]._terms_at_most)
    return BLOCK_TERMS if is_automatic(given["n_terms"]) else int(given["n_terms"])


def _dense_columns(given: Parameters, source: Source, row_bytes: float, dtype: np.dtype) -> float:
    """Return the columns of dense mapped rows whose products take as long as those of the mapped rows."""
    if not source.is_sparse:
        return row_bytes / dtype.itemsize
    entries = row_bytes / (dtype.itemsize + np.dtype(np.int32).itemsize)
    return min(_SPARSE_ENTRY * entries, float(source.n_features))


def takes_wide(given: Parameters, settings: FeatureSettings, source: Source) -> bool:
    """Whether ridge keeps the features of all rows, as an additive map of sparse rows has too many to sum products of.

    Sparse rows have so few entries each that passes over them are quick. ``given`` are the parameters of an estimator.
    """
    asks_otherwise = (
        not RidgeSolver().supports(given["loss"])
        or given.get("n_principal") is not None
        or given.get("blocks") is not None
        or given.get("precision") == "bfloat16"
        or not on_host(given.get("device", "cpu"))
        or given.get("scoring") is not None
        or not is_automatic(given.get("selection", "auto"))
        or isinstance(settings.kernel, list | tuple)
    )
    y = source.labels()
    if asks_otherwise or not source.is_sparse or y is None or _is_of_its_own(y, source.weights):
        return False
    family = family_of(settings)
    if family not in FAMILIES["additive"]:
        return False
    return family.footprint(settings, source.n_features).features > MOST_SUMMED


def _is_of_its_own(y: np.ndarray, weights: np.ndarray | None) -> bool:
    """Whether one of several targets misses entries or has weights that differ from those of the others."""
    return y.ndim == 2 and not is_shared(y, weights)


def bytes_of_exact(given: Parameters, source: Source) -> int:
    """Return the bytes that features="exact" takes for a source with these parameters of an estimator."""
    if given["map"] is not None:
        terms = given["map"]._terms_at_most
    else:
        terms = 2 if is_automatic(given["n_terms"]) else given["n_terms"]
    dtype = np.dtype("float64" if given["precision"] == "float64" else "float32")
    mapped_bytes = terms * source.row_bytes * _share_of_columns(given.get("blocks"), source)
    needed = exact_bytes(source.n_rows, mapped_bytes, dtype) + bytes_beside(given["loss"], source.n_rows)
    y = source.labels()
    if y is None or not _is_of_its_own(y, source.weights):
        return needed
    return needed + filling_bytes(*y.shape)


def _share_of_columns(blocks: Blocks | None, source: Source) -> float:
    """Return how many columns all blocks have together, which may overlap, as a share of those of the source."""
    by_place = named_blocks(blocks, source.column_names)
    if by_place is None:
        return 1.0
    _, columns = check_blocks(by_place, source.n_features)
    return sum(block.size for block in columns) / source.n_features


def takes_components(settings: FeatureSettings) -> bool:
    """Whether these settings give landmarks or random features, whose number is n_components."""
    if not isinstance(settings.features, str) or isinstance(settings.kernel, list | tuple):
        return False
    family = family_of(settings)
    fewer, more = (family.footprint(replace(settings, n_components=n), 1).features for n in (2, 3))
    return fewer < more


def takes_landmarks(settings: FeatureSettings) -> bool:
    """Whether these settings give landmarks, chosen among the rows or given."""
    if not isinstance(settings.features, str) or isinstance(settings.kernel, list | tuple):
        return False
    # given ones do not count as rows of the sample
    chosen = replace(settings, n_components=2, landmarks="kmeans")
    return family_of(settings).footprint(chosen, 1).landmarks > 0


def landmarks_of(n_rows: int) -> int:
    """Return the number of landmarks that suits ``n_rows`` rows, whatever the memory.

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


def words_of_a_batch(settings: FeatureSettings, n_rows: int) -> Parameters:
    """Return settings for rows in batches: random features, if the first batch is too small for landmarks.

    Kernels that have no random features take the landmarks of the first batch.
    """
    is_small = settings.features == "auto" and n_rows < _BATCH and takes_landmarks(settings)
    if is_small and any(family.takes(settings.exact) for family in FAMILIES["fourier"]):
        return {"features": "fourier"}
    return {}
