"""Solvers: what is minimised, from moments."""

from chimap.solvers.cross_validation import StrengthScores, choose_strength
from chimap.solvers.principal import PrincipalRidge, PrincipalScores, score_principal
from chimap.solvers.ridge import LinearSolution, ridge

__all__ = [
    "LinearSolution",
    "PrincipalRidge",
    "PrincipalScores",
    "StrengthScores",
    "choose_strength",
    "ridge",
    "score_principal",
]
