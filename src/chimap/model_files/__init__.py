"""Model files, which hold arrays and plain metadata but no code."""

from chimap.model_files.model_file import Transformer, load, register

__all__ = ["Transformer", "load", "register"]
