"""Bundles of options: dataclasses whose fields are options, which a command takes as a single parameter."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import cache
from typing import Annotated, get_args, get_origin, get_type_hints


@dataclasses.dataclass(frozen=True)
class Without:
    """Annotation of a bundle parameter: the options that the command lacks, which keep their defaults."""

    names: tuple[str, ...]

    def __init__(self, *names: str):
        object.__setattr__(self, "names", names)


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with each bundle parameter replaced by the fields of the bundle, in order.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Size:
    ...     rows: int = 2
    ...     columns: int = 3
    >>> def area(name: str, size: Size, unit: str = "m") -> None:
    ...     print(f"{name}: {size.rows * size.columns} {unit}")
    >>> [*inspect.signature(flat(area)).parameters]
    ['name', 'rows', 'columns', 'unit']
    >>> flat(area)(name="a", rows=4, columns=5, unit="cm")
    a: 20 cm
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    bundles: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind, left_out = _bundle(hints[name])
        if kind is None:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))
            continue
        options = [option for option in _options(kind) if option.name not in left_out]
        bundles[name] = kind, [option.name for option in options]
        parameters += options

    def run(**given: object) -> None:
        filled = {
            name: kind(**{field: given.pop(field) for field in fields})
            for name, (kind, fields) in bundles.items()
        }
        command(**given, **filled)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {option.name: option.annotation for option in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _bundle(hint: object) -> tuple[type | None, tuple[str, ...]]:
    """Return the dataclass in a parameter's annotation, or None, and the names of the options it leaves out."""
    kind, marks = (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return None, ()
    return kind, tuple(name for mark in marks if isinstance(mark, Without) for name in mark.names)


@cache
def _options(kind: type) -> list[inspect.Parameter]:
    """Return a parameter for each field."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(kind)
    ]
