"""The exceptions of the package: each says that what the caller gave is at fault, and what to do about it.

Any other exception is a fault of the package, or of one that it uses, and the command line reports it as such.
"""

from __future__ import annotations

from chimap._messages import Message, Parameter


class InputError(ValueError):
    """What the caller gave, a setting for example, cannot be used. Others of this file are special cases."""


class MissingPackageError(ImportError):
    """A package is missing that the caller's data or settings need; the message says how to install it."""


class DataError(InputError):
    """The data, not the program, is at fault: wrong values, shape, labels or file contents."""


class MemoryBudgetError(InputError):
    """The memory budget cannot hold the work. The message names the smallest budget that can."""


class ParameterError(InputError):
    """A parameter has a value that it cannot take: ``wanted`` is the end of the sentence "NAME must be ...".

    The name is that of a parameter, or a message in which the parameter stands among other words.

    >>> print(ParameterError("n_terms", 0, "a positive whole number"))
    n_terms must be a positive whole number; got 0.
    >>> print(ParameterError(Message("each of {alpha}"), 0, "a positive number"))
    each of alpha must be a positive number; got 0.
    """

    def __init__(self, name: str, value: object, wanted: str):
        named = name if isinstance(name, Message) else Parameter(name)
        super().__init__(Message("{} must be {}; got {!r}.", named, wanted, value))
        self.name, self.value, self.wanted = name, value, wanted

    def __reduce__(self) -> tuple[type[ParameterError], tuple[str, object, str]]:
        return type(self), (self.name, self.value, self.wanted)
