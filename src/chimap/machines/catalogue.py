"""The catalogue of machines, in order of preference, and the one that a recipe gets for the rows at hand."""

from __future__ import annotations

from collections.abc import Iterator

from chimap.machines.base import Facts, Machine, Plan, Winner
from chimap.machines.blocks import Blocks
from chimap.machines.groups import GroupPasses, Groups
from chimap.machines.kept import KeepsFeatures
from chimap.machines.matrix import WholeMatrix
from chimap.machines.objective import objective_of
from chimap.machines.replayed import ReplayedPasses
from chimap.machines.sparse_margins import SparseMargins
from chimap.machines.sums import SumsOfFeatures
from chimap.machines.wide import WideRidge
from chimap.recipe import Recipe

MACHINES: tuple[Machine, ...] = (
    WholeMatrix(),
    Blocks(),
    WideRidge(),
    Groups(),
    GroupPasses(),
    SumsOfFeatures(),
    SparseMargins(),
    ReplayedPasses(),
    KeepsFeatures(),
)
"""Machines in order of preference."""


def plans(recipe: Recipe, facts: Facts, asked: Recipe | None = None) -> Iterator[tuple[Machine, str]]:
    """Yield every machine with what speaks against it, the preferred first; nothing speaks against one that can.

    =============== ====================================== ============================== ==========================
    machine         takes                                  memory                         seconds of two cores
    =============== ====================================== ============================== ==========================
    kernel matrix   rows whose matrix the memory holds     n^2                            n^3 / 3, for each strength
    blocks of rows  exponential or min-max, of more rows   rows, and a block m^2          n^2 (D + 1) / 2 + n m^2 / 3
    wide ridge      additive maps of sparse rows, many D   entries of the features        passes over the entries
    groups          weights of several kernels             D^2 for each fold              n D^2
    sums            the square loss                        D^2 for each fold              n D^2
    sparse margins  the squared hinge of sparse rows       entries of the features        passes over the entries
    replayed passes other losses                           D^2, features if there is room n D^2, passes n D
    kept features   margins                                features of all rows           passes over the entries
    =============== ====================================== ============================== ==========================

    Parameters
    ----------
    recipe : Recipe
        The settings, after a race if there was one; memory and time limit among them.
    facts : Facts
        The rows, and what is asked besides.
    asked : Recipe or None, default=None
        The settings before the race; None for those of ``recipe``. Features that the user named are kept; those that a
        race compared by are kept where memory and time allow.
    """
    for machine in MACHINES:
        yield machine, machine.against(recipe, facts, asked or recipe)


def machine_for(recipe: Recipe, facts: Facts, asked: Recipe | None = None) -> Plan:
    """Return the plan of the first machine of ``plans`` that nothing speaks against.

    Raises
    ------
    ValueError
        If settings contradict each other, or a size is invalid.
    MemoryBudgetError
        If not even a few landmarks fit in the memory budget.
    """
    asked = asked or recipe
    machine, others = _first(recipe, facts, asked)
    raced = machine.raced(recipe, facts, asked, None)
    machine.check(raced, facts.has_gaps)
    return Plan(machine, asked, recipe, machine.resolved_recipe(raced, facts), facts, others)


def for_all_rows(recipe: Recipe, facts: Facts, asked: Recipe, winner: Winner) -> Recipe:
    """Return the recipe of the winner of a race for all rows, with the features of the machine that they get."""
    return _first(recipe, facts, asked)[0].raced(recipe, facts, asked, winner)


def _first(recipe: Recipe, facts: Facts, asked: Recipe) -> tuple[Machine, dict[str, str]]:
    others: dict[str, str] = {}
    for machine, against in plans(recipe, facts, asked):
        if not against:
            return machine, others
        others[machine.name] = against
    raise AssertionError(f"no machine takes {recipe}: {others}")


def check_settings(recipe: Recipe, has_gaps: bool = False) -> None:
    """Raise ValueError for settings that contradict the machine of a recipe, before any rows are known."""
    objective = objective_of(recipe, has_gaps)
    needs, has_groups = objective.solver.needs, objective.groups is not None
    able = [each for each in MACHINES if needs in each.needs and has_groups == isinstance(each, Groups)]
    able[-1].check(recipe, has_gaps)
