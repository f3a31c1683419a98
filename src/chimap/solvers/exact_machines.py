"""The catalogue of machines on a kernel matrix in memory, by what they minimise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from chimap.losses import Loss, Square, SquaredHinge
from chimap.solvers.exact_margins import DualMargins, margin_bytes
from chimap.solvers.observed_exact import ExactRidge, exact_ridge

# of a step of a machine that is tried: of more, most rows are within the margin, as of ridge
_MOST_OPERATIONS = 5e10


class ExactMachine(NamedTuple):
    """How a machine of a loss is made, with arguments as of ``exact_ridge``.

    make: to be fitted. tried: the same unrefined, as the score of rows held out tells where rounding spoils a solution,
    and with none where that would take long. bytes_beside: what one of so many rows takes beside the kernel matrix.
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
"""By the name of the loss."""


def has_exact_machine(loss: str | Loss) -> bool:
    """Whether one minimises the loss."""
    return _name(loss) in EXACT_MACHINES


def exact_machine(loss: str | Loss) -> ExactMachine:
    """Of a loss that has one."""
    return EXACT_MACHINES[_name(loss)]


def bytes_beside(loss: str | Loss, n_rows: int) -> int:
    """See ``ExactMachine``; 0 of a loss that has none, whose fit is refused."""
    return exact_machine(loss).bytes_beside(n_rows) if has_exact_machine(loss) else 0


def _name(loss: str | Loss) -> str:
    return loss if isinstance(loss, str) else loss.name
