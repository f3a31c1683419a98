"""``--config``: options from a file; and ``--save-config``, which writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from chimap._errors import InputError

if TYPE_CHECKING:
    import click

    from chimap._types import JSON

_NOT_KEPT = ("config_file", "save_config", "json", "overwrite", "help")


def read(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Use the options of the file as defaults, so that flags on the command line take precedence."""
    if path is None or context.resilient_parsing:
        return path
    options = _options_in(path)
    known = [str(p.name) for p in context.command.params if p.name not in _NOT_KEPT]
    unknown = [option for option in options if option not in known]
    if unknown:
        listed = ", ".join(sorted(name.replace("_", "-") for name in known))
        raise InputError(
            f"--config {path}: {context.command_path} has no option {unknown[0]!r}. Its options are {listed}."
        )
    context.default_map = {**(context.default_map or {}), **options}
    return path


def _options_in(path: Path) -> JSON:
    import tomllib

    from chimap._validation import DataError

    try:
        with path.open("rb") as file:
            options = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"--config {path} is not valid TOML: {error}. Write lines such as kernel = 'chi2'.") from error
    by_parameter: JSON = {}
    for name, value in options.items():
        if isinstance(value, dict):
            raise DataError(f"--config {path}: [{name}] is a table; write options alone, such as kernel = 'chi2'.")
        by_parameter[name.replace("-", "_")] = ",".join(map(str, value)) if isinstance(value, list) else value
    return by_parameter


def save(path: Path | None) -> None:
    """Write the options of the running command that differ from their defaults, under the names of their flags."""
    import click

    from chimap._files import replacing

    if path is None:
        return
    context = click.get_current_context()
    lines = [
        f"{name.replace('_', '-')} = {json.dumps(value if isinstance(value, bool | int | float) else str(value))}\n"
        for name, value, usual in ((p.name, context.params[p.name], p.default) for p in context.command.params)
        if name not in _NOT_KEPT and value != usual
    ]
    with replacing(path) as unfinished:
        unfinished.write_text(f"# {context.command_path} --config {path.name}\n{''.join(lines)}", encoding="utf-8")
