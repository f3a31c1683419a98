"""The catalogue of solvers on a kernel matrix in memory, by loss.

Each minimises sum_i w_i loss(y_i, f(x_i)) plus a multiple of alpha |f|^2 over f = sum_j K(., x_j) a_j + b; ``exact``,
``exact_margins`` and ``exact_observed`` give the methods and their costs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from chimap.losses import Loss, Square, SquaredHinge
from chimap.solvers.exact_margins import DualMargins, margin_bytes
from chimap.solvers.exact_observed import ExactRidge, exact_ridge

# Limit of the operations of a step in a trial. Beyond it, most rows are within the margin, as with ridge.
_MOST_OPERATIONS = 5e10


class ExactMachine(NamedTuple):
    """How the solver of a loss is made, with the arguments of ``exact_ridge``.

    Attributes
    ----------
    make : callable
        Makes the solver for a fit.
    tried : callable
        Makes it for trials, without refinement: the score of held-out rows shows if rounding spoils a solution. It has
        no solution where that would take long.
    bytes_beside : callable
        Returns the bytes that it takes beside the kernel matrix, given the number of rows.
    """

    make: Callable[..., ExactRidge]
    tried: Callable[..., ExactRidge]
    bytes_beside: Callable[[int], int]


EXACT_MACHINES = {
    Square.name: ExactMachine(exact_ridge, partial(exact_ridge, steps=0), lambda n_rows: 0),
    SquaredHinge.name: ExactMachine(
        DualMargins, partial(DualMargins, steps=0, most_operations=_MOST_OPERATIONS), margin_bytes
    ),
}
"""Solvers by the name of their loss."""


def has_exact_machine(loss: str | Loss) -> bool:
    """Return whether a solver of the catalogue minimises the loss."""
    return _name(loss) in EXACT_MACHINES


def exact_machine(loss: str | Loss) -> ExactMachine:
    """Return the solver of a loss that has one."""
    return EXACT_MACHINES[_name(loss)]


def bytes_beside(loss: str | Loss, n_rows: int) -> int:
    """See ``ExactMachine``. A loss without a solver takes 0 bytes: its fit is refused."""
    return exact_machine(loss).bytes_beside(n_rows) if has_exact_machine(loss) else 0


def _name(loss: str | Loss) -> str:
    return loss if isinstance(loss, str) else loss.name
