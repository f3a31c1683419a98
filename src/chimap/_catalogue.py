"""Catalogues with entries that are imported at their first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib.metadata import EntryPoint
from typing import TypeVar, cast

Entry = TypeVar("Entry")


def at_address(address: str) -> object:
    """Return the object at an address "package.module:name", importing its module."""
    return EntryPoint("", address, "").load()


class Catalogue(MutableMapping[str, Entry]):
    """Entries by name; one that is given by its address, "package.module:name", is imported when it is asked for.

    Parameters
    ----------
    entries : mapping of str to entries or addresses
        The entries in their order.

    Examples
    --------
    >>> numbers = Catalogue({"e": 2.718, "pi": "math:pi"})
    >>> list(numbers), round(numbers["pi"], 3)
    (['e', 'pi'], 3.142)
    """

    def __init__(self, entries: Mapping[str, Entry | str]):
        self._entries = dict(entries)

    @property
    def addresses(self) -> dict[str, str]:
        """Addresses of the entries that are not imported yet, by the name in their module."""
        return {a.rpartition(":")[2]: a for a in self._entries.values() if isinstance(a, str)}

    def __getitem__(self, name: str) -> Entry:
        entry = self._entries[name]
        if isinstance(entry, str):
            entry = self._entries[name] = cast(Entry, at_address(entry))
        return entry

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
