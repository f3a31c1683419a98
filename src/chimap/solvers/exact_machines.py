"""The catalogue of machines on a kernel matrix in memory, by what they minimise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chimap.losses import Loss, Square, SquaredHinge
from chimap.solvers.exact_margins import DualMargins, margin_bytes
from chimap.solvers.observed_exact import ExactRidge, exact_ridge

# of a step of a machine that is tried: of more, most rows are within the margin, as of ridge
_MOST_OPERATIONS = 5e10

EXACT_MACHINES: dict[str, Callable[..., ExactRidge]] = {
    Square.name: exact_ridge,
    SquaredHinge.name: DualMargins,
}
"""By the name of the loss; arguments as of ``exact_ridge``."""


_QUICK: dict[str, Callable[..., ExactRidge]] = {
    Square.name: partial(exact_ridge, steps=0),
    SquaredHinge.name: partial(DualMargins, steps=0, most_operations=_MOST_OPERATIONS),
}


def has_exact_machine(loss: str | Loss) -> bool:
    """Whether one minimises the loss."""
    return _name(loss) in EXACT_MACHINES


def exact_machine(loss: str | Loss) -> Callable[..., ExactRidge]:
    """Of a loss that has one."""
    return EXACT_MACHINES[_name(loss)]


def quick_machine(loss: str | Loss) -> Callable[..., ExactRidge]:
    """The same to be tried: unrefined, as the score of rows held out tells where rounding spoils a solution, and with
    none where that would take long."""
    return _QUICK[_name(loss)]


def bytes_beside(loss: str | Loss, n_rows: int) -> int:
    """What the machine of so many rows takes at most beside the kernel matrix."""
    return margin_bytes(n_rows) if _name(loss) == SquaredHinge.name else 0


def _name(loss: str | Loss) -> str:
    return loss if isinstance(loss, str) else loss.name
