"""What the machines share that keep every row (``features="exact"``): what they refuse, take from a race and hold."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from typing import ClassVar

from chimap._messages import Message, Setting
from chimap.backends import on_host
from chimap.features.exact import MOST_ROWS
from chimap.features.families import AutomaticFeatures, has_number
from chimap.kernels import Exponential
from chimap.machines.base import Facts, Machine, Refusals, Winner
from chimap.machines.block_plan import block_plan, choice_seconds, compares_entries, share_of_columns, terms_of
from chimap.recipe import Recipe
from chimap.selection.leave_one_out import FEW_ROWS
from chimap.solvers.exact_observed import filling_bytes
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.kernel_matrix import EXACT_LOSSES, MOST_MAPPED, bytes_beside, exact_bytes, is_iterated

MOST_ITERATED_ROWS = 3000  # of machines with iterated weights, each strength of which takes half a dozen factors
_MOST_LOOPED = 3e10  # entries of pairs of rows, at .2 to 3 ns each, of kernels that are not computed from products
_SEARCHED_AGAIN = 2  # times the rows that settings are compared on: a search of so many takes as long as their fit


def _contradicts(name: str) -> Callable[[Recipe], Message]:
    first, *others, last = EXACT_LOSSES
    losses = reduce(lambda listed, loss: Message("{}, {loss=}", listed, loss), others, Message("{loss=}", first))
    return lambda recipe: Message(
        "{features='exact'} solves {} or {loss=} on the kernel matrix, and does not support {}. Leave that out, or use "
        "{features='landmarks'}.",
        losses,
        last,
        Setting(name, getattr(recipe, name)),
    )


def _without_map(recipe: Recipe) -> Message:
    return Message(
        "{features='exact'} on {device=}: kernel {} has no map, and its values are computed on this machine only. Use "
        "{device='cpu'}, or {features='landmarks'}.",
        recipe.device,
        ", ".join(repr(kernel.name) for kernel in recipe.exact_kernels if kernel.inner is None),
    )


class KeepsRows(Machine):
    """What the machines share that keep every row: they leave rows out in closed form."""

    refuses: ClassVar[Refusals] = {
        "n_principal": _contradicts("n_principal"),
        "loss": _contradicts("loss"),
        "map values": _without_map,
    }
    declines: ClassVar[Collection[str]] = ("learner", "n_components", "sampling", "landmarks", "selection by sums")

    def meets_rivals(self, recipe: Recipe, facts: Facts) -> bool:
        return on_host(recipe.device) and not (facts.request.has_checkpoint or recipe.n_covariates)

    def raced(self, recipe: Recipe, facts: Facts, asked: Recipe, winner: Winner | None) -> Recipe:
        """See ``Machine``: where few rows were raced, or many are left, the race knows strength and gamma."""
        if recipe.leaves_open("features"):
            return recipe.with_values(features="exact")
        return recipe if winner is None else with_strengths(recipe, facts, asked, winner)


def with_strengths(recipe: Recipe, facts: Facts, asked: Recipe, winner: Winner) -> Recipe:
    """Return the recipe with the score of a race, and its strength and gamma if a fit finds none that are better.

    This is so for few rows, all of which the race left out. For exact machines of many rows, a new search would take
    several times the fit: strength and gamma correspond to the noise and width of a Gaussian process, which do not
    depend on the number of rows. Between the two, a search over all rows is fast, and knows more than the rows of the
    race.
    """
    recipe = recipe.with_raced(scoring=winner.scoring if recipe.is_exact and asked.leaves_open("features") else None)
    is_open = asked.leaves_open("alpha", "selection", "features")
    if not is_open or not (winner.knows_all or facts.n_rows > _SEARCHED_AGAIN * FEW_ROWS):
        return recipe
    return recipe.with_raced(**{name: winner.learned[name] for name in ("alpha", "gamma") if name in winner.learned})


def is_cheapest(recipe: Recipe, facts: Facts) -> bool:
    """Return whether the matrix takes less than explicit features.

    It does for a kernel of which these would be landmarks or random, also if it is that of one block among several,
    where its values are computed in seconds; and for an additive one with more features than rows: a factor then costs
    the cube of the rows and not that of the features. The posterior of the weights, where the model keeps it, is there
    for an additive kernel of up to ``MOST_MAPPED`` features, and not for several blocks.
    """
    source, kernels = facts.source, recipe.exact_kernels
    automatic = AutomaticFeatures(map=recipe.map, n_terms=recipe.n_terms)
    features = [automatic.of_kernel(kernel) for kernel in kernels]
    if any(has_number(each) for each in features):
        by_loops = any(kernel.inner is None and not isinstance(kernel, Exponential) for kernel in kernels)
        entries = source.row_bytes / (source.dtype.itemsize + 4) if source.is_sparse else source.n_features
        return not by_loops or facts.n_rows**2 * entries <= _MOST_LOOPED
    if not all(kernel.inner is not None for kernel in kernels):
        return False
    n_features = min(each.footprint(source.n_features).features for each in features)
    has_other_map = n_features > MOST_MAPPED or recipe.blocks is not None or recipe.n_covariates > 0
    return facts.n_rows < n_features and not (recipe.keeps_posterior and has_other_map)


def holds_matrix(recipe: Recipe, facts: Facts) -> bool:
    """Return whether the kernel matrix of all rows fits the budget, and is factorised in seconds, or the time limit."""
    n, limit = facts.n_rows, recipe.time_limit
    most = MOST_ITERATED_ROWS if is_iterated(recipe.loss) else MOST_ROWS
    if n > most or bytes_of_exact(recipe, facts) > recipe.room:
        return False
    return limit is None or choice_seconds(n) <= limit


def bytes_of_exact(recipe: Recipe, facts: Facts) -> int:
    """Return the bytes of a machine on the kernel matrix of all rows."""
    source = facts.source
    mapped_bytes = terms_of(recipe, 2) * source.row_bytes * share_of_columns(recipe.blocks, source)
    needed = exact_bytes(facts.n_rows, mapped_bytes, recipe.dtype) + bytes_beside(recipe.loss, facts.n_rows)
    return needed if facts.is_shared or not facts.has_labels else needed + filling_bytes(facts.n_rows, facts.n_outputs)


def against_blocks(recipe: Recipe, facts: Facts, declined: str) -> str:
    """Return why a kernel is not solved in blocks of rows; empty if it can be: exponential, or min-max of sparse rows.

    Targets with missing entries or weights of their own take a matrix of all rows.
    """
    if declined:
        return declined
    if not RidgeSolver().supports(recipe.loss):
        return "blocks are solved by ridge"
    if not facts.is_shared:
        return "targets have rows or weights of their own, or there are none"
    if not (compares_entries(recipe) or any(isinstance(kernel, Exponential) for kernel in recipe.exact_kernels)):
        return "the kernel is not exponential"
    if compares_entries(recipe) and not facts.filling.is_sparse:
        return "the min-max kernel takes long on dense rows"
    return "" if block_plan(recipe, facts).fits(recipe.room) else "memory, or the device, does not hold a block"
