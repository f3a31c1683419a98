"""The commands, a file each, which is imported when its command is asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from chimap.cli.parser import Command, command_of

NAMES = (
    "demo",
    "features",
    "fit",
    "predict",
    "evaluate",
    "explain",
    "compare",
    "audit",
    "depth",
    "suggest",
    "permanova",
    "ordinate",
    "learn-kernel",
    "compress",
    "forget",
    "export",
    "card",
    "info",
)
"""The commands in the order of ``chimap --help``."""


@cache
def named(name: str) -> Command:
    """Return the command of a name: the function of that name in the file of that name."""
    name = name.replace("-", "_")
    return command_of(getattr(import_module(f"{__name__}.{name}"), name))


@cache
def flags() -> frozenset[str]:
    """Return the flags of all commands."""
    return frozenset(
        flag for name in NAMES for option in named(name).params for flag in option.opts if flag.startswith("--")
    )
