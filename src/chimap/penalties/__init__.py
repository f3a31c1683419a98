"""Penalties on the weights of a model."""

from chimap.penalties.base import Penalty
from chimap.penalties.groups import check_groups
from chimap.penalties.l1 import L1
from chimap.penalties.l2 import L2
from chimap.penalties.l21 import L21
from chimap.penalties.sum import PenaltySum

__all__ = ["L1", "L2", "L21", "Penalty", "PenaltySum", "check_groups"]
