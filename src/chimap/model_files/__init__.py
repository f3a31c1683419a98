"""Models as files: arrays and plain metadata, no code."""

from chimap.model_files.model_file import load, register
from chimap.model_files.transformer import Transformer

__all__ = ["Transformer", "load", "register"]
