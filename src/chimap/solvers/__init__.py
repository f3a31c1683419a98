"""Solvers: what is minimised, from moments."""

from chimap.solvers.cross_validation import StrengthScores, choose_strength
from chimap.solvers.ridge import LinearSolution, ridge, ridge_path

__all__ = ["LinearSolution", "StrengthScores", "choose_strength", "ridge", "ridge_path"]
