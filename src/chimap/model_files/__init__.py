"""Model files, which hold arrays and plain metadata but no code."""

from chimap.model_files.model_file import load, register, register_addresses
from chimap.model_files.saved import Transformer

__all__ = ["Transformer", "load", "register", "register_addresses"]
