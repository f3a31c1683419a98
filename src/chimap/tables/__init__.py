"""Additive models as tables: the contribution of each bin to each score, in straight pieces or by codes of anchors."""

from chimap.model_files import register
from chimap.tables.functions import BinFunctions, CodeTables
from chimap.tables.lines import LineTables
from chimap.tables.pieces import line_tables

__all__ = ["BinFunctions", "CodeTables", "LineTables", "line_tables"]

register(LineTables, CodeTables)
