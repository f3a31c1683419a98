"""Messages that keep the parameters that they name apart from their text, so that a command line can name its flags.

Python writes ``loss='square'`` where a shell writes ``--loss square``. Any exception or warning takes a ``Message`` as
its only argument: ``DataError(Message(...))``.
"""

from __future__ import annotations

import ast
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias


class Spelling(Protocol):
    """How parameters are written."""

    def parameter(self, name: str) -> str:
        """Return the text for a parameter."""

    def setting(self, name: str, value: object, shown: str) -> str:
        """Return the text for a parameter that is set to a value, which Python writes as ``shown``."""


class _Python:
    """The spelling of Python."""

    def parameter(self, name: str) -> str:
        return name

    def setting(self, name: str, value: object, shown: str) -> str:
        return f"{name}={shown}"


_PYTHON = _Python()


class Parameter:
    """A parameter in a message."""

    def __init__(self, name: str):
        self.name = name

    def text(self, spelling: Spelling) -> str:
        """Return the parameter as ``spelling`` writes it."""
        return spelling.parameter(self.name)


class Setting:
    """A parameter in a message, with its value."""

    def __init__(self, name: str, value: object, shown: str | None = None):
        self.name, self.value = name, value
        self.shown = repr(value) if shown is None else shown

    def text(self, spelling: Spelling) -> str:
        """Return the parameter and its value as ``spelling`` writes them."""
        return spelling.setting(self.name, self.value, self.shown)


class Message(str):
    """A text with parameters in it. As a string it is what Python writes; ``text`` gives it in another spelling.

    Parameters
    ----------
    template : str
        The text, with fields in braces. A field with a name is a parameter: ``{n_terms}``; ``{loss='square'}`` has a
        literal value, and ``{loss=}`` the next of ``values``. A field without a name, ``{}``, is the next value itself.
        Values are formatted as in an f-string: ``{:,}``, ``{!r}``, ``{alpha=:g}``.
    *values : object
        The values, in order. Parameters within messages, and within exceptions raised with one, are kept.

    Examples
    --------
    >>> print(Message("{selection='gcv'} needs {loss='square'}; got {loss=} and {:,} {n_terms}", "hinge", 2000))
    selection='gcv' needs loss='square'; got loss='hinge' and 2,000 n_terms
    """

    _pieces: tuple[Piece, ...]

    def __new__(cls, template: str, /, *values: object) -> Message:
        pieces: list[Piece] = []
        rest = iter(values)
        for text, field, spec, conversion in string.Formatter().parse(template):
            pieces.append(text)
            if field is not None:
                pieces.append(_piece(field, conversion, spec or "", rest))
        if left := [*rest]:
            raise TypeError(f"{template!r} has no field for {left}")
        return _message_of(*pieces)

    def text(self, spelling: Spelling) -> str:
        """Return the text with its parameters as ``spelling`` writes them."""
        return _spelt(self._pieces, spelling)

    def __reduce__(self) -> tuple[Callable[..., Message], tuple[Piece, ...]]:
        return _message_of, self._pieces


Named: TypeAlias = Parameter | Setting | Message
Piece: TypeAlias = str | Parameter | Setting


def message_of(error: BaseException) -> str:
    """Return the text of an exception or warning: the message that it was raised with, if it was."""
    return error.args[0] if len(error.args) == 1 and isinstance(error.args[0], Message) else str(error)


def text_of(thing: object, spelling: Spelling) -> str:
    """Return the text of a message, or of an exception or warning, with its parameters as ``spelling`` writes them."""
    piece = _structured(thing)
    return str(thing) if piece is None else piece.text(spelling)


def joined(separator: str, texts: Iterable[str]) -> Message:
    """Return texts with a separator between them; the parameters of those that are messages are kept."""
    first, *others = texts
    return _message_of(first, *(piece for text in others for piece in (separator, text)))


def _message_of(*pieces: Piece) -> Message:
    message = str.__new__(Message, _spelt(pieces, _PYTHON))
    message._pieces = pieces
    return message


def _spelt(pieces: Iterable[Piece], spelling: Spelling) -> str:
    return "".join(piece.text(spelling) if isinstance(piece, Named) else piece for piece in pieces)


def _piece(field: str, conversion: str | None, spec: str, rest: Iterator[object]) -> Piece:
    """Return what stands for a field of a template, which may take the next of the values."""
    name, is_setting, literal = field.partition("=")
    if literal:
        return Setting(name, ast.literal_eval(literal), literal)
    if name and not is_setting:
        return Parameter(name)
    value = next(rest)
    if is_setting:
        return Setting(name, value, _formatted(value, conversion or ("" if spec else "r"), spec))
    return _structured(value) or _formatted(value, conversion or "", spec)


def _structured(value: object) -> Named | None:
    """Return a value that has parameters in it, or the message of an exception raised with one; None for others."""
    text = message_of(value) if isinstance(value, BaseException) else value
    return text if isinstance(text, Named) else None


def _formatted(value: object, conversion: str, spec: str) -> str:
    return string.Formatter().format(f"{{0{conversion and '!' + conversion}:{spec}}}", value)


_MOST_NAMES_SHOWN = 20


def shown(names: Sequence[str], most: int = _MOST_NAMES_SHOWN) -> str:
    """Return names as a list for a message.

    >>> shown(["a", "b", "c"], most=2), shown([])
    ('a, b, ...', 'none')
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") or "none"


def quoted_names(names: Sequence[object], most: int = 8) -> str:
    """Return names in quotes as a list for a message.

    >>> quoted_names(["a", "b", "c"], most=2), quoted_names([])
    ("'a', 'b', ...", 'none')
    """
    return shown([repr(str(name)) for name in names[:most]], most) + (", ..." if len(names) > most else "")
