"""Help in panels: ``--help`` shows the common options on one screen, ``--help-all`` shows all of them."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

# The options of each panel. Those that are not listed go to the last panel.
_PANELS = {
    "Data": """
        labels task test_fraction unlabelled blocks normalize part all_rows splits per_class permutations rows id
        columns exclude missing sample_weight groups split covariates metadata text tokens ngrams min_count
        smiles fingerprint salts
        morgan_radius morgan_size transpose rank shape encoding missing_counts
    """,
    "Model": """
        kernel normalization scoring bin_weights time_limit gamma terms components map features
        sampling loss quantile alpha folds class_weight weights threshold positive kind principal method
        widths
        tune_components tune_rows objective validation_fraction iterations width_strength
    """,
    "Images": """
        descriptors words coding grids step sizes strict like
    """,
}
_ORDER = ("Arguments", "Data", "Model", "Images", "Output and runtime")
_COMMON = """
    output labels test_fraction task normalize kernel components alpha loss memory jobs seed descriptors
    config_file json overwrite help page blocks method widths
"""
_MOST_IN_SHORT_HELP = 26  # commands with more parameters have a short and a long help
_EXAMPLES_SHOWN = 5  # examples in the short help

EVERYTHING = "--help-all"  # ``main`` turns it into --help, with True for the context's object


class PanelCommand(TyperCommand):
    """A command whose help groups its options into panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options by panel. Long commands show only common options unless all are wanted."""
        is_short = self._is_short(ctx)
        panels: dict[str, list[tuple[str, str]]] = {name: [] for name in _ORDER}
        n_left = 0
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if is_short and parameter.param_type_name != "argument" and parameter.name not in _COMMON.split():
                n_left += 1
            else:
                panels[_panel_of(parameter)].append(_first_sentence(record) if is_short else record)
        for name, records in panels.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        if n_left:
            formatter.write_paragraph()
            formatter.write_text(f"For {n_left} more options and full descriptions: {ctx.command_path} {EVERYTHING}")

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command does. Long commands show their first paragraph and some examples by default."""
        whole = self.help
        if whole and self._is_short(ctx):
            about, _, examples = whole.partition("Examples:\n")
            first = about.split("\n\n")[0]
            lines = examples.splitlines()[:_EXAMPLES_SHOWN]
            self.help = "\n".join([first, "", "\b", "Examples:", *lines]) if lines else first
        super().format_help_text(ctx, formatter)
        self.help = whole

    def _is_short(self, ctx: Any) -> bool:
        return len(self.params) > _MOST_IN_SHORT_HELP and not ctx.find_root().obj


def _first_sentence(record: tuple[str, str]) -> tuple[str, str]:
    """Return the name of an option, and its help up to the first full stop, with the default if there is one."""
    name, text = record
    text, _, default = text.partition("  [")
    return name, re.split(r"\. ", text)[0].rstrip(".") + (f"  [{default}" if default else "")


def _panel_of(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    return next((panel for panel, names in _PANELS.items() if parameter.name in names.split()), "Output and runtime")
