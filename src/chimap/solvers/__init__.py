"""Solvers: what is minimised, from moments or by passes over the rows."""

from chimap.solvers.cross_validation import StrengthScores, choose_strength
from chimap.solvers.lbfgs import SmoothSolution, lbfgs, zero_solution
from chimap.solvers.principal import PrincipalRidge, PrincipalScores, score_principal
from chimap.solvers.ridge import LinearSolution, ridge

__all__ = [
    "LinearSolution",
    "PrincipalRidge",
    "PrincipalScores",
    "SmoothSolution",
    "StrengthScores",
    "choose_strength",
    "lbfgs",
    "ridge",
    "score_principal",
    "zero_solution",
]
