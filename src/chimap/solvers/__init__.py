"""Solvers: what is minimised, from moments or by passes over the rows."""

from chimap.solvers.cross_validation import StrengthScores, choose_strength
from chimap.solvers.group_passes import LossProblem
from chimap.solvers.group_path import GroupSolution, SquareProblem, follow
from chimap.solvers.lbfgs import SmoothSolution, lbfgs, over, zero_solution
from chimap.solvers.principal import PrincipalRidge, PrincipalScores, score_principal
from chimap.solvers.ridge import LinearSolution, ridge

__all__ = [
    "GroupSolution",
    "LinearSolution",
    "LossProblem",
    "PrincipalRidge",
    "PrincipalScores",
    "SmoothSolution",
    "SquareProblem",
    "StrengthScores",
    "choose_strength",
    "follow",
    "lbfgs",
    "over",
    "ridge",
    "score_principal",
    "zero_solution",
]
