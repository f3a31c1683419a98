"""Engines: where chunks run, within a memory budget and with progress."""

from chimap.engines.memory import Job, chunk_rows_within
from chimap.engines.progress import Progress, RichProgress, Stopwatch

__all__ = ["Job", "Progress", "RichProgress", "Stopwatch", "chunk_rows_within"]
