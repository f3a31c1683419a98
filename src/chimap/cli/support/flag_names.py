"""The flags of parameters of the package, and messages about parameters in flags."""

from __future__ import annotations

from numbers import Integral, Real

from chimap._messages import text_of

known: set[str] = set()  # the flags of all commands, filled as the commands are registered

# Flags that do not follow from the parameter name. All others are the name without n_ and with hyphens.
_FLAGS = {
    "selection": "--folds",
    "normalize": "--normalization",
    "n_train": "--per-class",
    "max_iter": "--iterations",
    "random_state": "--seed",
}
# Readings of a column, by the name of their class,
_READINGS = {"WordCounts": "--text", "MorganCounts": "--smiles"}
# what stands for a value that is the absence of a flag, or has another word there,
_SPELT = {"selection='auto'": "no --folds", "bin_weights=None": "--bin-weights none"}
# and the values that a flag takes, where these are fewer than those of its parameter.
_TAKES = {"selection": Integral}


def flag_of(parameter: str) -> str:
    """Return the flag of a parameter of the package.

    >>> flag_of("n_terms"), flag_of("test_fraction"), flag_of("random_state")
    ('--terms', '--test-fraction', '--seed')
    """
    return _FLAGS.get(parameter, f"--{parameter.removeprefix('n_').replace('_', '-')}")


def in_flags(message: object) -> str:
    """Return the text of a message, exception or warning with the flags of its parameters.

    >>> import chimap.cli.main  # registers the commands
    >>> from chimap._messages import Message
    >>> in_flags(Message("{device='cuda'} takes {loss='square'}; got {n_principal=None}."))
    '--device cuda takes --loss square; got no --principal.'
    """
    return text_of(message, _FlagSpelling())


class _FlagSpelling:
    """Parameters as the command line writes them. Those, and values, that no flag takes stay as in Python."""

    def parameter(self, name: str) -> str:
        flag = flag_of(name)
        return flag if flag in known else name

    def setting(self, name: str, value: object, shown: str) -> str:
        flag, in_python = flag_of(name), f"{name}={shown}"
        if name == "reading" and isinstance(value, tuple):
            kind, column = value
            return f"{_READINGS[kind]} {column}"
        if in_python in _SPELT:
            return _SPELT[in_python]
        if flag not in known:
            return in_python
        if value is None or value is False:
            return f"no {flag}"
        if value is True or isinstance(value, dict):  # such as blocks, which a shell writes in other words
            return flag
        if not isinstance(value, _TAKES.get(name, str | Real)):
            return in_python
        return f"{flag} {value if shown == repr(value) else shown}"
