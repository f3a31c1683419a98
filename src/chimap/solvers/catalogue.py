"""The catalogue of solvers, in the order in which a loss is offered to them."""

from __future__ import annotations

from chimap._catalogue import Catalogue
from chimap._errors import InputError
from chimap._messages import Message
from chimap.losses import Loss
from chimap.penalties import L2
from chimap.solvers.base import Solver
from chimap.solvers.block_problem import BlockSolver
from chimap.solvers.from_moments import RidgeSolver
from chimap.solvers.kernel_matrix import KernelSolver
from chimap.solvers.liblinear import HingeSolver, SquaredHingeSolver
from chimap.solvers.observed import ObservedRidgeSolver
from chimap.solvers.passes import PassesSolver
from chimap.solvers.wide_ridge import WideRidgeSolver

SOLVERS = Catalogue[Solver](
    {
        "ridge": RidgeSolver(),
        "liblinear": HingeSolver(),
        "observed ridge": ObservedRidgeSolver(),
        "lbfgs": PassesSolver(),
        "wide ridge": WideRidgeSolver(),
        SquaredHingeSolver.name: SquaredHingeSolver(),
        "exact": KernelSolver(),
        "blocks": BlockSolver(),
        "groups": "chimap.solvers.groups:BY_SUMS",
        "groups by passes": "chimap.solvers.groups:BY_PASSES",
    }
)
"""Solvers by name; those of groups, which no default takes, are imported when one is asked for."""


def solver_of(loss: str | Loss, penalty: type = L2) -> Solver:
    """Return the first solver of the catalogue that minimises the loss with a penalty.

    Parameters
    ----------
    loss : str or Loss
        A loss, or its name.
    penalty : type, default=L2
        The class of the penalty.

    Raises
    ------
    ValueError
        If no solver minimises it.
    """
    for solver in SOLVERS.values():
        if solver.supports(loss, penalty):
            return solver
    if penalty is not L2:
        raise InputError(
            Message(
                "weights of several kernels are learned for losses that a parabola bounds, and {loss=} is not one. Use "
                "{loss='square'}, or HistogramRegressor with a sum of the kernels, which takes {loss='poisson'}.",
                loss,
            )
        )
    raise InputError(Message("no solver minimises {loss=}.", loss))
