"""A machine that may enter a race, as a value: a kernel on normalised rows, and a way to find its weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chimap._types import Blocks
from chimap._validation import AUTO
from chimap.data import Source
from chimap.engines.memory import LIBLINEAR_ENTRY_BYTES
from chimap.features.families import AutomaticFeatures
from chimap.kernels import as_kernel
from chimap.losses import Loss
from chimap.models.race_result import Candidate
from chimap.recipe import Recipe
from chimap.solvers.kernel_matrix import bytes_beside, exact_bytes, is_iterated

MOST_MARGIN_ROWS = 8000  # margins on a kernel matrix of so many rows take less than a minute


@dataclass(frozen=True)
class Room:
    """What memory is there for the machine of all rows.

    source: the rows. density: share of their bins that are filled. n_bytes: the room. in_race: bytes of the trials.
    """

    source: Source
    density: float
    n_bytes: int
    in_race: int


@dataclass(frozen=True)
class Way:
    """How the weights of a candidate are found: what they minimise, on which features.

    Parameters
    ----------
    name : str
        Its name.
    features : str
        Features of the machine, as a recipe names them.
    loss : str or None
        The loss; None is squares, or the loss that is asked for where ridge is iterated for it.
    suffix : str, default=""
        What follows the kernel and the rows in names for tables.
    runs_on_devices : bool, default=True
        Whether a device can compute it.
    fits : callable, default=lambda kernel, room: True
        Whether the machine of all rows fits into memory, given the name of its kernel.
    """

    name: str
    features: str
    loss: str | None
    suffix: str = ""
    runs_on_devices: bool = True
    fits: Callable[[str, Room], bool] = lambda kernel, room: True


def _holds_features(kernel: str, room: Room) -> bool:
    """Whether memory holds the features of all rows, with LIBLINEAR's copy."""
    features = AutomaticFeatures("additive").of_kernel(as_kernel(kernel))
    n_features = features.footprint(room.source.n_features).features
    return room.density * room.source.n_rows * n_features * LIBLINEAR_ENTRY_BYTES <= room.n_bytes


def _holds_matrix(kernel: str, room: Room) -> bool:
    """Whether memory holds a kernel matrix and linear systems of its rows, which landmarks do not replace."""
    n_rows = room.source.n_rows
    needed = exact_bytes(n_rows, 2 * room.source.row_bytes, np.dtype(np.float32))
    return (
        n_rows <= MOST_MARGIN_ROWS and bytes_beside("squared_hinge", n_rows) + max(needed, room.in_race) <= room.n_bytes
    )


RIDGE = Way("ridge", "exact", None)
MARGINS = Way("margins", "additive", "squared_hinge", ", SVM", runs_on_devices=False, fits=_holds_features)
SUMS = Way("ridge of features", "additive", None)
LOGISTIC = Way("logistic", "additive", "logistic", ", logistic", runs_on_devices=False)
EXACT_MARGINS = Way("exact margins", "exact", "squared_hinge", ", SVM", fits=_holds_matrix)


@dataclass(frozen=True)
class KernelSpec:
    """A machine that may enter a race: a kernel on normalised rows, and what its weights minimise.

    Parameters
    ----------
    kernel : str
        Name of the kernel.
    normalize : str or None
        What is done to the rows first.
    way : Way, default=RIDGE
        Squares on the kernel matrix, LIBLINEAR's margins on explicit features, margins on the kernel matrix, or
        another.
    title : str, default=""
        Name for tables; empty for that of the kernel and the rows.
    is_baseline : bool, default=False
        See ``Candidate``.
    blocks : blocks of columns, default=None
        Columns that the kernel compares apart from each other; None for all columns at once.
    """

    kernel: str
    normalize: str | None
    way: Way = RIDGE
    title: str = ""
    is_baseline: bool = False
    blocks: Blocks | None = None

    @property
    def name(self) -> str:
        """Name for tables."""
        rows = "" if self.blocks is None else f", {len(self.blocks)} blocks"
        return self.title or name_of(self.kernel, self.normalize) + rows + self.way.suffix

    @property
    def shares(self) -> str:
        """The additive kernel, normalisation and features, whose maps and products candidates share."""
        base = "linear" if self.kernel == "gaussian" else self.kernel.removeprefix("exp-")
        return f"{base} {self.normalize} {self.way.features}"

    @property
    def family(self) -> str:
        """Another way than ridge, or additive or exponential kernels with one normalisation; linear ridge has none."""
        if self.way is not RIDGE:
            return self.way.name
        if self.kernel in ("linear", "gaussian", "minmax"):
            return "" if self.kernel == "linear" else self.name
        form = "exponential" if self.kernel.startswith("exp-") else "additive"
        return f"{form} {self.normalize}"

    def candidate(self, asked: Recipe) -> Candidate:
        """Return the candidate of a race for this recipe."""
        loss = ridge_loss(asked) if self.way.loss is None else self.way.loss
        recipe = asked.with_raced(kernel=self.kernel, normalize=self.normalize, features=self.way.features, loss=loss)
        if self.kernel.startswith(("exp-", "gaussian")):
            recipe = recipe.with_raced(gamma=AUTO)
        if self.blocks is not None:
            recipe = recipe.with_raced(blocks=self.blocks)
        return Candidate(self.name, recipe, self.is_baseline, self.shares, self.family)

    def candidate_within(self, asked: Recipe) -> Candidate:
        """Return the candidate with this kernel and normalisation; features, loss and gamma are those of the recipe."""
        recipe = asked.with_raced(kernel=self.kernel, normalize=self.normalize)
        return Candidate(name_of(self.kernel, self.normalize), recipe, self.is_baseline)


def name_of(kernel: str, normalize: str | None) -> str:
    """Return the name of a kernel on normalised rows, for tables."""
    return f"{kernel}, {normalize or 'raw'} rows"


def ridge_loss(recipe: Recipe) -> str | Loss:
    """Return the loss of machines by ridge: squares, or the loss that is asked for if ridge is iterated for it."""
    return recipe.loss if is_iterated(recipe.loss) else "square"
