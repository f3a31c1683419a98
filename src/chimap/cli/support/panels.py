"""Help in panels: what most fits need on one screen with ``--help``, everything with ``--help-all``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

# The panel of each option. A name that is not here is about running.
_PANELS = {
    "Data": (
        "labels", "task", "test_fraction", "unlabelled", "blocks", "normalize", "part", "all_rows", "splits",
        "per_class", "rows", "test_rows", "exact_rows", "id", "columns", "exclude", "missing",
        "sample_weight", "groups", "split", "text", "smiles", "morgan_radius", "morgan_size", "transpose", "shape",
    ),
    "Model": (
        "kernel", "normalization", "scoring", "bin_weights", "race_seconds",
        "gamma", "terms", "components", "map", "maps", "features", "sampling", "loss", "alpha", "folds",
        "class_weight", "threshold",
        "selection", "principal", "landmarks", "method", "widths", "tune_components", "tune_rows", "objective",
        "validation_fraction", "iterations", "width_penalty",
    ),
    "Images": ("descriptors", "words", "coding", "grids", "step", "sizes", "strict", "like"),
}  # fmt: skip
_ORDER = ("Arguments", "Data", "Model", "Images", "Running")
_COMMON = {
    "output", "labels", "test_fraction", "task", "normalize", "kernel", "components", "alpha", "loss", "memory",
    "jobs", "seed", "descriptors", "config_file", "json", "overwrite", "help", "page", "blocks", "method", "widths",
}  # fmt: skip
_LONG = 20  # options from which on a command has two helps
_EXAMPLES = 5  # in the short one

EVERYTHING = "--help-all"


def wants_everything(arguments: Sequence[str]) -> bool:
    """Whether the words of the command line ask for the long help."""
    return EVERYTHING in arguments


class PanelCommand(TyperCommand):
    """A command whose help has a panel for data, model, images and running each."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options by panel; of long commands the common ones alone, unless all are wanted."""
        is_short = self._is_short(ctx)
        panels: dict[str, list[tuple[str, str]]] = {name: [] for name in _ORDER}
        n_left = 0
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if is_short and parameter.param_type_name != "argument" and parameter.name not in _COMMON:
                n_left += 1
            else:
                panels[_panel_of(parameter)].append(_first_sentence(record) if is_short else record)
        for name, records in panels.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        if n_left:
            formatter.write_paragraph()
            formatter.write_text(f"{n_left} more options, and more on these: {ctx.command_path} {EVERYTHING}")

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """What the command does; of long commands the first sentences and examples alone, unless all are wanted."""
        whole = self.help
        if whole and self._is_short(ctx):
            about, _, examples = whole.partition("Examples:\n")
            first = about.split("\n\n")[0]
            lines = examples.splitlines()[:_EXAMPLES]
            self.help = "\n".join([first, "", "\b", "Examples:", *lines]) if lines else first
        super().format_help_text(ctx, formatter)
        self.help = whole

    def _is_short(self, ctx: Any) -> bool:
        return len(self.params) > _LONG and not ctx.find_root().meta.get(EVERYTHING)


def _first_sentence(record: tuple[str, str]) -> tuple[str, str]:
    """The name, and its help up to the first full stop, with the default if there is one."""
    name, text = record
    text, _, default = text.partition("  [")
    return name, re.split(r"\. ", text)[0].rstrip(".") + (f"  [{default}" if default else "")


def _panel_of(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    return next((panel for panel, names in _PANELS.items() if parameter.name in names), "Running")


def as_help(arguments: Sequence[str] | None) -> tuple[list[str], bool]:
    """The words of the command line with ``--help`` for ``--help-all``, and whether that was there."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return ["--help" if word == EVERYTHING else word for word in words], wants_everything(words)
