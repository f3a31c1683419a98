"""Commands made of functions: parameters before ``*`` are arguments, those behind it options, described in docstrings.

A parameter may also be a dataclass, called a bundle: the command has an option for each of its fields. ``--help`` shows
the options in panels: those that are required, and those whose description is headed ``name : METAVAR, common``, with
their first sentence. ``--help-all`` shows all of them in full.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import click

from chimap.cli import config, machine
from chimap.cli.options import SHARED, Description

Described: TypeAlias = dict[str, Description]  # by option

# The options of each panel. Those that are not listed go to the last panel.
PANELS = {
    "Data": """
        labels task test_fraction unlabelled blocks normalize part all_rows splits time per_class permutations rows id
        columns exclude missing sample_weight groups split covariates metadata text tokens ngrams min_count
        formula strata between colour new
        smiles fingerprint salts
        morgan_radius morgan_size transpose rank shape encoding missing_counts missing_columns
    """,
    "Model": """
        kernel normalization scoring bin_weights time_limit gamma terms components map features
        sampling loss quantile alpha folds depth_robust class_weight weights threshold positive
        ordered label_tree level kind principal method
        widths landmarks model
        tune_components tune_rows objective validation_fraction iterations width_strength
    """,
    "Images": """
        descriptors words coding grids step sizes strict like
    """,
}
_ORDER = ("Arguments", "Data", "Model", "Images", "Output and runtime")
_EXAMPLES_SHOWN = 3  # in the short help
EVERYTHING = "--help-all"  # ``main`` turns it into --help, with True for the context's object


class Without:
    """Annotation of a bundle: the options that the command lacks, which keep their defaults."""

    def __init__(self, *names: str):
        self.names = names

    def takes(self, name: str) -> bool:
        """Return whether the command has this option."""
        return name not in self.names


class Only(Without):
    """Annotation of a bundle: the options that the command has; others keep their defaults."""

    def takes(self, name: str) -> bool:
        """Return whether the command has this option."""
        return name in self.names


def command_of(function: Callable[..., None]) -> Command:
    """Return the command that calls the function.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Size:
    ...     '''How large.
    ...
    ...     Parameters
    ...     ----------
    ...     rows : N
    ...         Rows.
    ...     columns : N
    ...         Columns.
    ...     '''
    ...
    ...     rows: int = 2
    ...     columns: int = 3
    >>> def area(*, size: Size, seed: int = 0) -> None:
    ...     '''Print an area.'''
    ...     print(size.rows * size.columns)
    >>> [option.opts[0] for option in command_of(area).params]
    ['--rows', '--columns', '--seed']
    >>> command_of(area).main(["--rows", "4"], standalone_mode=False)
    12
    """
    about, described = about_of(function)
    hints = get_type_hints(function, include_extras=True)
    parameters: list[click.Parameter] = []
    bundles: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind, *marks = get_args(hints[name]) or (hints[name],)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            options = [option for option in _options(kind) if all(mark.takes(option.name) for mark in marks)]
            bundles[name] = kind, [str(option.name) for option in options]
            parameters += options
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            parameters.append(_option(parameter, hints[name], described))
        else:
            is_needed = parameter.default is inspect.Parameter.empty
            text = (SHARED | described)[name].text
            parameters.append(Argument([name], text, type=_type_of(hints[name]), required=is_needed))

    def run(**given: Any) -> int | None:
        filled = {
            name: kind(**{field: given.pop(field) for field in fields}) for name, (kind, fields) in bundles.items()
        }
        try:
            function(**given, **filled)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of the output has left, as head and pagers do
            machine.discard_output()
            return machine.PIPE_CLOSED
        return None

    return Command(function.__name__.replace("_", "-"), callback=run, params=parameters, help=about)


def _options(bundle: type) -> list[Option]:
    """Return an option for each field of a dataclass. It may describe those of the one that it extends anew."""
    described: Described = {}
    for owner in reversed(bundle.__mro__[:-1]):
        described |= about_of(owner)[1]
    hints = get_type_hints(bundle)
    return [_option(field, hints[name], described) for name, field in inspect.signature(bundle).parameters.items()]


def _option(parameter: inspect.Parameter, hint: Any, described: Described) -> Option:
    name, default = parameter.name, parameter.default
    metavar, text, is_common = (SHARED | described)[name]
    flag = f"--{name.replace('_', '-')}"
    flags: list[str] = [name, flag]
    more: dict[str, Any] = {"is_flag": hint in (bool, bool | None)}
    if more["is_flag"] and (default is not False or name == "normalize"):
        flags = [name, f"{flag}/--no-{flag[2:]}"]
    elif name == "output":
        flags.append("-o")
    elif name == "config_file":  # read before the options that it sets
        flags = [name, "--config"]
        more |= {"is_eager": True, "callback": config.read}
    is_needed = default is inspect.Parameter.empty
    if not is_needed:
        more["default"] = default
    option = Option(
        flags,
        type=_type_of(hint),
        required=is_needed,
        metavar=metavar,
        help=text,
        show_default=not is_needed and default is not None,
        **more,
    )
    option.is_common = is_common or is_needed
    return option


def _type_of(hint: Any) -> Any:
    """Return how click reads values of a type, which may be optional."""
    if get_origin(hint) in (Union, UnionType):
        hint = get_args(hint)[0]
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    return click.Path(path_type=Path) if hint is Path else hint


def about_of(owner: object) -> tuple[str, Described]:
    """Return a docstring without its section of parameters, and what that says of each.

    >>> class Size:
    ...     '''How large.
    ...
    ...     Parameters
    ...     ----------
    ...     rows : N, common
    ...         Rows, in
    ...         thousands.
    ...     '''
    >>> about_of(Size)
    ('How large.', {'rows': Description(metavar='N', text='Rows, in thousands.', is_common=True)})
    """
    before, _, after = (inspect.getdoc(owner) or "").partition("Parameters\n----------\n")
    section, _, rest = after.partition("\n\n")
    described: Described = {}
    for entry in filter(None, re.split(r"\n(?=\S)", section.strip("\n"))):
        head, _, text = entry.partition("\n")
        name, _, kind = head.partition(" : ")
        metavar = kind.removesuffix("common").rstrip(", ")
        described[name] = Description(metavar or None, " ".join(text.split()), metavar != kind)
    return "\n\n".join(filter(None, (before.rstrip(), rest))), described


class Argument(click.Argument):
    """An argument with a text in the help."""

    def __init__(self, names: list[str], text: str, **of_click: Any):
        super().__init__(names, **of_click)
        self.text = text

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the name and the text."""
        record = self.make_metavar(ctx), self.text
        return record if _shows_everything(ctx) else _first_sentence(*record)


class Option(click.Option):
    """An option that is on the first screen of help if it is common."""

    is_common = False

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the flags and the text; None if it is left to the whole help."""
        record = super().get_help_record(ctx)
        if record is None or _shows_everything(ctx):
            return record
        return _first_sentence(*record) if self.is_common else None


class Command(click.Command):
    """A command whose help has panels."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write arguments and options by panel, and how many of them are left to the whole help."""
        panels: dict[str, list[tuple[str, str]]] = {name: [] for name in _ORDER}
        n_left = 0
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                n_left += 1
                continue
            listed = (panel for panel, names in PANELS.items() if parameter.name in names.split())
            is_argument = parameter.param_type_name == "argument"
            panels["Arguments" if is_argument else next(listed, "Output and runtime")].append(record)
        for name, records in panels.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
        if n_left:
            formatter.write_paragraph()
            formatter.write_text(f"For {n_left} more options and full descriptions: {ctx.command_path} {EVERYTHING}")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does; on the first screen, one sentence and some examples."""
        whole = self.help
        if whole and not _shows_everything(ctx):
            about, _, examples = whole.partition("Examples:\n")
            lines = examples.splitlines()[:_EXAMPLES_SHOWN]
            self.help = "\n".join([about.split("\n\n")[0], *(["", "\b", "Examples:", *lines] if lines else [])])
        super().format_help_text(ctx, formatter)
        self.help = whole


def _shows_everything(ctx: click.Context) -> bool:
    return bool(ctx.find_root().obj)


def _first_sentence(name: str, text: str) -> tuple[str, str]:
    """Return the name of an option, and its help up to the first full stop, with the default if there is one."""
    text, _, default = text.partition("  [")
    return name, re.split(r"\. ", text)[0].rstrip(".") + (f"  [{default}" if default else "")
