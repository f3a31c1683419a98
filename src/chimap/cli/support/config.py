"""Read options from a TOML file, and write the options of a command to one."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chimap._errors import InputError
from chimap.cli.support.options import optional

if TYPE_CHECKING:
    from chimap._types import JSON, Parameters


_NOT_KEPT = ("config_file", "save_config", "json", "overwrite", "help")


def _read(context: typer.Context, path: Path | None) -> Path | None:
    """Use the options of the file as defaults, so that flags on the command line take precedence."""
    if path is None or context.resilient_parsing:
        return path
    options = _words_of(path)
    known = {p.name: p for p in context.command.params if p.name not in _NOT_KEPT}
    unknown = [option for option in options if option not in known]
    if unknown:
        listed = ", ".join(sorted(name.replace("_", "-") for name in known if name))
        raise InputError(
            f"--config {path}: {context.command_path} has no option {unknown[0]!r}. Its options are {listed}."
        )
    context.default_map = {**(context.default_map or {}), **options}
    return path


def _words_of(path: Path) -> JSON:
    import tomllib

    from chimap._validation import DataError

    try:
        with path.open("rb") as file:
            options = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(
            f"--config {path} is not valid TOML: {error}. Write lines such as kernel = 'chi2'."
        ) from error
    by_parameter: Parameters = {}
    for name, value in options.items():
        if isinstance(value, dict):
            raise DataError(
                f"--config {path}: [{name}] is a table; write options alone, such as kernel = 'chi2'."
            )
        by_parameter[name.replace("-", "_")] = ",".join(map(str, value)) if isinstance(value, list) else value
    return by_parameter


Config = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", is_eager=True, callback=_read, show_default=False,
        help="Read options from a TOML file; flags take precedence. A line is written kernel = 'chi2'.",
    ),
]  # fmt: skip
SaveConfig = Annotated[
    Path | None,
    optional("FILE", "Write the options of this command to a file for --config.", "--save-config"),
]


def save(context: typer.Context, path: Path | None) -> None:
    """Write the options that differ from their defaults, under the names of their flags."""
    from chimap._files import replacing

    if path is None:
        return
    lines = [
        f"{parameter.name.replace('_', '-')} = {_toml(context.params[parameter.name])}\n"
        for parameter in context.command.params
        if parameter.name in context.params
        and parameter.name not in _NOT_KEPT
        and context.params[parameter.name] != parameter.default
    ]
    with replacing(path) as unfinished:
        unfinished.write_text(
            f"# {context.command_path} --config {path.name}\n{''.join(lines)}", encoding="utf-8"
        )


def _toml(value: object) -> str:
    value = value.value if isinstance(value, Enum) else value
    return json.dumps(value if isinstance(value, bool | int | float) else str(value))
