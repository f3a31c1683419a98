"""Additive models as tables: the contribution of each bin to each score, in straight pieces."""

from chimap.features.mapped_functions import Tables
from chimap.model_files import register
from chimap.tables.functions import BinFunctions
from chimap.tables.lines import LineTables
from chimap.tables.pieces import line_tables

__all__ = ["BinFunctions", "LineTables", "Tables", "line_tables"]

register(LineTables)
