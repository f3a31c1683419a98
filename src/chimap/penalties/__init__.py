"""Penalties on the weights of a model."""

from chimap.penalties.groups import check_groups
from chimap.penalties.l2 import L2
from chimap.penalties.l21 import L21

__all__ = ["L2", "L21", "check_groups"]
