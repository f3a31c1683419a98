"""What a machine is, the facts of the rows that it decides by, and the plan that it makes.

A machine is a way to solve a fit for the rows at hand: on the kernel matrix between all rows, in blocks of it, or from
explicit features. Each has a file, and ``catalogue.plans`` asks all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message
from chimap._progress import Ahead
from chimap._types import JSON, Parameters, Scoring
from chimap._validation import MemoryBudgetError, check_positive
from chimap.backends import on_host
from chimap.data import Source
from chimap.data.source import TAKEN_BYTES, choose_rows
from chimap.features.additive import check_map
from chimap.features.families import check_features
from chimap.moments.kept_rows import FilledShares
from chimap.recipe import Recipe
from chimap.recipe.task import Task
from chimap.selection.leave_one_out import usual_machines
from chimap.solvers.base import Needs
from chimap.solvers.exact import is_shared
from chimap.solvers.kernel_matrix import has_exact_machine

Refusals = Mapping[str, Callable[[Recipe], Message]]
"""Settings that contradict a machine, each with the message of the error."""

HoldOut: TypeAlias = Callable[
    [np.ndarray, np.ndarray, np.ndarray | None, bool, int], list[tuple[np.ndarray, np.ndarray]]
]
"""Returns pairs (rows to learn from, rows to score) of a sample, given its places among all rows, labels and groups,
whether labels are classes, and a seed."""

CHOICE_FACTORS = 3  # a search on one matrix is counted as so many factors in the choice of a machine
_GROWTH = 2.2  # power of the rows with which the seconds of a machine grow: small factors run at lower rates
_COUNTED_ROWS = 1000  # whose entries in each column are counted
_SMALL, _MOST_LARGE = (
    16,
    0.05,
)  # the largest small number, and the share of entries that may be others where rows are small


@dataclass(frozen=True)
class Request:
    """What a caller asks of a fit besides its recipe.

    Parameters
    ----------
    can_keep : bool
        Whether rows can be kept in the memory of this process, as the engine says.
    has_checkpoint : bool, default=False
        Whether the state of the fit is written to a file.
    has_unlabelled : bool, default=False
        Whether there are rows without targets.
    has_curve : bool, default=False
        Whether a learning curve is wanted.
    is_batch : bool, default=False
        Whether the rows are a first batch, and more will come.
    races : bool, default=False
        Whether a race chooses what is open; distances of left-out rows to the others are then measured, too, for a
        model that is kept.
    holds_out : callable or None, default=None
        How a race holds rows out, see ``race.rows.held_out_rows``; None leaves it to the race.
    """

    can_keep: bool
    has_checkpoint: bool = False
    has_unlabelled: bool = False
    has_curve: bool = False
    is_batch: bool = False
    races: bool = False
    holds_out: HoldOut | None = None

    @property
    def may_keep_rows(self) -> bool:
        """Whether the fit may keep all rows, as exact machines do."""
        return self.can_keep and not self.has_unlabelled and not self.is_batch

    @property
    def may_leave_each_out(self) -> bool:
        """Whether a race on few rows may leave each of them out of a machine of all others."""
        return self.may_keep_rows and self.holds_out is None


@dataclass(frozen=True, eq=False)
class Facts:
    """What decides a machine, of the rows and of what is asked besides the recipe.

    Parameters
    ----------
    source : Source
        Its sizes, names and types. Only ``filling`` reads rows, up to a thousand.
    request : Request
        What is asked of the fit besides.
    n_targets, n_outputs : int
        Targets of the task, and outputs of an exact machine at most.
    has_labels, is_shared, has_gaps : bool
        Whether there are targets; whether they share rows and weights; see ``Task``.
    has_groups : bool
        Whether rows come in groups.
    """

    source: Source
    request: Request
    n_targets: int
    n_outputs: int
    has_labels: bool
    is_shared: bool
    has_gaps: bool
    has_groups: bool

    @classmethod
    def of(cls, source: Source, task: Task, groups: np.ndarray | None, request: Request) -> Facts:
        """Return the facts of the rows of a source, with the targets of a task."""
        y = source.labels()
        if y is None:
            n_outputs = 1
        elif y.ndim == 2:
            n_outputs = int(y.shape[1])
        else:
            n_outputs = 1 if y.dtype.kind == "f" else max(1, np.unique(y).size)
        return cls(
            source,
            request,
            task.n_targets,
            n_outputs,
            y is not None,
            y is not None and (y.ndim == 1 or is_shared(y, source.weights)),
            task.has_gaps,
            groups is not None,
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    @cached_property
    def filling(self) -> FilledShares:
        """How filled the columns are, see ``filling_of``."""
        return filling_of(self.source)


def filling_of(source: Source) -> FilledShares:
    """Return how filled the columns of a source are, dense or CSR: by random rows where reading them is cheap."""
    n, size = min(source.n_rows, _COUNTED_ROWS), max(1, TAKEN_BYTES // (8 * source.n_features))
    counts, n_counted, n_large = np.zeros(source.n_features, np.intp), 0, 0
    if source.can_seek and source.stored_rows <= _COUNTED_ROWS:
        places = choose_rows(source.n_rows, n, 0)
        pieces = (source.take(places[piece]) for piece in _arrays.slices(n, size))
    else:
        pieces = (chunk.X for chunk in source.chunks_from(0, min(n, size), n))
    for X in pieces:
        if _arrays.is_sparse(X):
            counts += np.bincount(X.indices[X.data != 0], minlength=source.n_features)
        else:
            counts += np.count_nonzero(X, axis=0)
        n_counted += X.shape[0]
        values = _arrays.stored_values(X)
        n_large += int(np.count_nonzero((values > _SMALL) | (values != np.rint(values))))
    return FilledShares(counts / n_counted, bool(n_large <= _MOST_LARGE * counts.sum()))


@dataclass(frozen=True)
class Winner:
    """What a race found for the recipe that won.

    Parameters
    ----------
    learned : dict
        Strength and, of exponential kernels, gamma of its last trial.
    knows_all : bool
        Whether the trial left out every row of the fit.
    scoring : str, callable or None
        The score of the race.
    """

    learned: Parameters
    knows_all: bool
    scoring: Scoring


@dataclass(frozen=True)
class Cost:
    """What a machine takes.

    Parameters
    ----------
    n_bytes : int
        Bytes of memory.
    seconds : float
        Seconds of two cores, by the operations.
    n_rows : int
        Rows that it learns from.
    """

    n_bytes: int
    seconds: float
    n_rows: int

    def ahead(self, searches: bool) -> tuple[Ahead, ...]:
        """Return the stages that a fit spends its time on: here a search on one matrix.

        searches: whether settings are compared; else one machine is solved.
        """
        return (search_ahead(self.n_rows, self.seconds, searches),)

    @property
    def sizes(self) -> JSON:
        """Components of the model, their features, and rows of a piece; seconds where they limit the rows."""
        return {"components": self.n_rows, "features": "exact", "chunk_rows": self.n_rows}


def search_ahead(n_rows: int, choice_seconds: float, searches: bool) -> Ahead:
    """Return what is ahead of a search on a matrix of so many rows, or of one machine.

    The seconds of a machine are those of a factor of its rows.
    """
    rows = np.array(usual_machines(n_rows) if searches else [n_rows])
    each = (rows / n_rows) ** _GROWTH * choice_seconds / CHOICE_FACTORS
    done = np.concatenate([[0.0], np.cumsum(each)])
    return Ahead("alpha", rows.size, lambda n: float(np.interp(n, np.arange(done.size), done)))


@dataclass(frozen=True)
class Plan:
    """The machine of a fit, and its recipe.

    Parameters
    ----------
    machine : Machine
        The machine.
    asked : Recipe
        The settings as they were asked for.
    raced : Recipe
        The same with what a race chose for all rows.
    recipe : Recipe
        The same with a value for each setting that depends on the rows, but for a gamma to be chosen on a sample.
    facts : Facts
        The rows.
    others : mapping of str to str
        Why each machine that is preferred to this one was not taken, by name.
    """

    machine: Machine
    asked: Recipe
    raced: Recipe
    recipe: Recipe
    facts: Facts
    others: Mapping[str, str]

    @cached_property
    def cost(self) -> Cost:
        """What the machine takes."""
        return self.machine.cost(self.recipe, self.facts)

    @property
    def ahead(self) -> tuple[Ahead, ...]:
        """The stages that a fit spends its time on, and their seconds, see ``Cost``.

        There are none where memory may not hold the machine: its fit says so, or does with fewer folds.
        """
        with suppress(MemoryBudgetError):
            return self.cost.ahead(self.recipe.searches_alpha)
        return ()

    @property
    def n_rows(self) -> int:
        """The rows that the machine learns from, as far as memory lets its cost be told."""
        with suppress(MemoryBudgetError):
            return self.cost.n_rows
        return self.facts.n_rows

    def chosen_by(self, name: str) -> str:
        """Return who gave a setting its value: "user", "race" or "machine"."""
        if not self.asked.leaves_open(name):
            return "user"
        return "machine" if self.raced.leaves_open(name) else "race"

    @property
    def numbers_of_race(self) -> list[str]:
        """Which of "alpha" and "gamma" are numbers that a race has found, where the user gave none."""
        given = {name: (getattr(self.asked, name), getattr(self.recipe, name)) for name in ("alpha", "gamma")}
        return [name for name, (asked, now) in given.items() if isinstance(asked, str) and not isinstance(now, str)]


class Machine(ABC):
    """An entry of the catalogue ``MACHINES``.

    Attributes
    ----------
    name : str
        Its name in tables.
    needs : tuple of str
        What its solvers need of the rows.
    refuses : mapping of str to callable
        Settings that contradict it, each with the message of the error for a recipe. See ``named_settings``.
    declines : collection of str
        Settings of which it makes nothing: where one is named it is taken only by name.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[Needs, ...]]
    refuses: ClassVar[Refusals] = {}
    declines: ClassVar[Collection[str]] = ()

    @abstractmethod
    def against(self, recipe: Recipe, facts: Facts, asked: Recipe) -> str:
        """Return why it is not taken for a recipe; empty if it can be. asked: the recipe before the race."""

    @abstractmethod
    def raced(self, recipe: Recipe, facts: Facts, asked: Recipe, winner: Winner | None) -> Recipe:
        """Return the recipe with the features of this machine, and what it takes over from the winner of a race."""

    def resolved_recipe(self, recipe: Recipe, facts: Facts) -> Recipe:
        """Return a recipe with values for its open settings.

        Raise MemoryBudgetError if the memory does not hold even its smallest form.
        """
        check_sizes(recipe)
        return recipe.with_values(precision="float32") if recipe.leaves_open("precision") else recipe

    @abstractmethod
    def cost(self, recipe: Recipe, facts: Facts) -> Cost:
        """Return what it takes for a resolved recipe."""

    def meets_rivals(self, recipe: Recipe, facts: Facts) -> bool:
        """Whether machines of one pass may replace it, or that of a recipe, where they predict better."""
        return False

    def larger(self, plan: Plan, facts: Facts, n_features: int, gamma: float | None) -> Recipe | None:
        """Return the recipe of a larger machine that may predict better than the one of a plan; None if there is none.

        facts: of the rows that it would learn from. n_features, gamma: what the machine of the plan has learned.
        """
        return None

    def declined(self, recipe: Recipe) -> str:
        """Return which settings it refuses or declines, in words; empty if none."""
        names = [name for name in named_settings(recipe) if name in self.refuses or name in self.declines]
        return ", ".join(names)

    def check(self, recipe: Recipe, has_gaps: bool) -> None:
        """Raise ValueError for the first setting of a recipe that contradicts this machine."""
        named = named_settings(recipe, has_gaps)
        for name, message in self.refuses.items():
            if name in named:
                raise InputError(message(recipe))


def named_settings(recipe: Recipe, has_gaps: bool = False) -> dict[str, Any]:
    """Return the settings of a recipe that ask something particular of a machine, with their values, by name.

    "loss" is one that no machine on a kernel matrix minimises. "gaps" are missing entries, or weights that
    differ between targets. "normalize by labels" is a normalisation that learns from them. "map values" are those of a
    kernel without a map, which a device cannot compute.
    """
    is_away, selection = not on_host(recipe.device), recipe.selection
    has_maps = not is_away or recipe.leaves_open("kernel") or all(k.inner is not None for k in recipe.exact_kernels)
    asked = {
        "learner": recipe.learner,
        "n_principal": recipe.n_principal,
        "normalize by labels": recipe.normalize if recipe.normalizes_by_labels else None,
        "loss": None if has_exact_machine(recipe.requested_loss) else recipe.loss,
        "features": None if recipe.leaves_open("features") else recipe.features,
        "gamma": None if isinstance(recipe.gamma, str) and recipe.gamma == "mean" else recipe.gamma,
        "n_components": None if recipe.leaves_open("n_components") else recipe.n_components,
        "sampling": None if recipe.leaves_open("sampling") else recipe.sampling,
        "landmarks": None if isinstance(recipe.landmarks, str) else recipe.landmarks,
        "map": recipe.map,
        "blocks": recipe.blocks,
        "kernels": recipe.kernel if isinstance(recipe.kernel, list | tuple) else None,
        "covariates": recipe.n_covariates or None,
        "scoring": recipe.scoring,
        "selection": None if recipe.leaves_open("selection") else selection,
        "selection by sums": selection if isinstance(selection, str) and selection in ("gcv", "holdout") else None,
        "device": recipe.device if is_away else None,
        "map values": None if has_maps else recipe.device,
        "several components' scoring": recipe.scoring if isinstance(recipe.n_principal, Sequence) else None,
        "gaps on a device": (is_away and has_gaps) or None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def check_sizes(recipe: Recipe) -> None:
    """Raise ValueError for features, numbers or a map that no rows could have."""
    check_features(recipe.features)
    for name in ("n_components", "n_terms"):
        if not recipe.leaves_open(name):
            check_positive(getattr(recipe, name), name, integer=True)
    if recipe.map is not None:
        check_map(recipe.map)
