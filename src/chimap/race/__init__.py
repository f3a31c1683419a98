"""The race that chooses what is left open: candidates of all kinds, compared on the same held-out rows."""

from chimap.race.trials import Candidate, RaceResult, Trial

__all__ = ["Candidate", "RaceResult", "Trial"]
