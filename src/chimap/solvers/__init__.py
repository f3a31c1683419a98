"""Solvers: what is minimised, from moments or by passes over the rows."""

from chimap.solvers.group_passes import LossProblem
from chimap.solvers.group_path import GroupSolution, SquareProblem, follow
from chimap.solvers.lbfgs import SmoothSolution, lbfgs, over, zero_solution
from chimap.solvers.principal import PrincipalRidge
from chimap.solvers.ridge import LinearSolution, ridge

__all__ = [
    "GroupSolution",
    "LinearSolution",
    "LossProblem",
    "PrincipalRidge",
    "SmoothSolution",
    "SquareProblem",
    "follow",
    "lbfgs",
    "over",
    "ridge",
    "zero_solution",
]
