"""Models as files: arrays and plain metadata, no code."""

from chimap.model_files.model_file import load, register

__all__ = ["load", "register"]
