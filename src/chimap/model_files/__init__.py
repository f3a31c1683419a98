"""Model files, which hold arrays and plain metadata but no code.

``TRUSTED_TYPES`` names what estimators hold, for files of skops: ``skops.io.load(file, trusted=TRUSTED_TYPES)``.
"""

from __future__ import annotations

from chimap.model_files.model_file import load, register, register_addresses
from chimap.model_files.saved import Transformer
from chimap.model_files.values import register_named, trusted_types

__all__ = ["TRUSTED_TYPES", "Transformer", "load", "register", "register_addresses", "register_named"]

TRUSTED_TYPES: tuple[str, ...]


def __getattr__(name: str) -> tuple[str, ...]:
    """Return ``TRUSTED_TYPES``, which is made at its first use: then every folder that has such types is imported."""
    if name != "TRUSTED_TYPES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = trusted_types()
    return found
