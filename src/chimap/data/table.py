"""The columns of a table: which of them are bins, which holds labels, which names the rows."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from chimap._frames import INDEX
from chimap._types import Blocks, Columns
from chimap._validation import DataError

LABEL_NAMES = ("y", "label")  # taken for labels where none are named


@dataclass(frozen=True)
class Choice:
    """What the caller says of the columns of a table.

    id : name or place of the column that names the rows, or None to look for one.
    columns, exclude : the columns that are bins, and those that are not: see ``places_of``.
    missing : a value that marks a missing label, beside those that always do.
    aside : names of columns that are neither bins, labels nor ids, groups of rows for example. A table need not have
    them.
    names : the columns that a model was fitted on, in its order. They are taken where the table has names, and all
    others are ignored.
    """

    id: str | int | None = None
    columns: Columns | None = None
    exclude: Columns | None = None
    missing: object = None
    names: tuple[str, ...] | None = None
    aside: tuple[str, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether nothing is said of bins and ids."""
        return self.id is None and self.columns is None and self.exclude is None and not self.aside

    def said(self) -> list[object]:
        """Every word that means columns, among slices and places."""
        spans = (words_of(words) for words in (self.columns, self.exclude) if words is not None)
        return [self.id, *self.aside, *(word for words in spans for word in words)]


@dataclass(frozen=True)
class Roles:
    """Places of the columns that are bins, of the labels, and of the ids of rows.

    is_explicit : whether the caller or a model named the bins, so that none of them needs a second look.
    unknown : names of columns that are none of these, where a model named the bins.
    """

    bins: list[int]
    label: int | None
    id: int | None
    is_explicit: bool = False
    unknown: tuple[str, ...] = ()

    def notes(self, where: str, id: str | None) -> tuple[str, ...]:
        """What to tell the user of unknown columns, of which one may have turned out to name the rows."""
        return ignored([name for name in self.unknown if name != id], where)


def roles_of(
    names: Sequence[str],
    label: int | None,
    choice: Choice,
    where: str,
    *,
    index: Iterable[str] = (),
    has_names: bool = True,
) -> Roles:
    """What each column of a table is.

    The columns that pandas writes for the index of a data frame are set aside, and the first of them names the rows
    unless ``choice.id`` says another.

    names : of the columns. label : place of the labels, or None. where : file, for errors. index : further names of
    index columns, from metadata. has_names : whether the names are from the file, and not places.
    Raises DataError for names that are not there and where no bins are left.
    """
    indices = {*index}
    aside = [
        place
        for place, name in enumerate(names)
        if place != label
        and has_names
        and (name in indices or (INDEX.fullmatch(name) and (name or not place)))
    ]
    if choice.id is not None:
        aside.insert(0, place_of(names, choice.id, where, "id"))
    rows = aside[0] if aside else None
    aside += _there(names, choice.aside, has_names)
    others = [place for place in range(len(names)) if place != label and place not in {*aside}]
    if choice.names is not None and has_names:
        place = {name: i for i, name in enumerate(names)}
        bins = [place[name] for name in present_names(choice.names, place, where)]
        taken = {*bins}
        return Roles(bins, label, rows, True, tuple(names[i] for i in others if i not in taken))
    explicit = choice.columns is not None
    bins = others
    if choice.columns is not None:
        besides = {label, *_there(names, choice.aside, has_names)}
        bins = [i for i in places_of(names, choice.columns, where, "columns") if i not in besides]
    if choice.exclude is not None:
        left_out = {*places_of(names, choice.exclude, where, "exclude")}
        bins = [i for i in bins if i not in left_out]
    if not bins:
        raise DataError(f"{where}: no columns are left beside labels and ids. Give rows of bins.")
    return Roles(bins, label, rows, explicit)


def _there(names: Sequence[str], words: Iterable[str], has_names: bool) -> list[int]:
    """The places of those columns that a table has, by name, or by place where it has no names."""
    place = {name: i for i, name in enumerate(names)}
    return [place[word] for word in words if word in place and (has_names or word.isdecimal())]


def present_names(wanted: Sequence[str], there: Container[str], where: str) -> Sequence[str]:
    """The names of a model, if all of them are there. DataError names those that are not."""
    lost = [name for name in wanted if name not in there]
    if lost:
        raise DataError(
            f"{where}: no column {_shown(lost)}, which the model was fitted on ({len(lost):,} of {len(wanted):,} "
            "columns are missing). Columns are matched by name; add them, or rename those that are called otherwise."
        )
    return wanted


def ignored(names: Sequence[str], where: str) -> tuple[str, ...]:
    """A note of columns that the model does not know, if there are any."""
    if not names:
        return ()
    what = "column" if len(names) == 1 else f"{len(names):,} columns"
    return (f"{where}: {what} {_shown(names)} ignored; the model was not fitted on such.",)


def places_of(
    names: Sequence[str], words: Columns | Sequence[str | int], where: str, argument: str
) -> list[int]:
    """Places of the columns that some words mean, each once, in the order of the words.

    words : a text with commas between, or a sequence, of names, globs ("otu_*"), places (0 is the first), ranges of
    places ("0:300", the last not included) and ranges of names ("otu_1:otu_9", the last included); or a slice.
    Raises DataError for a word that means no column.

    >>> places_of(["a", "b1", "b2", "c"], "b*,0", "rows.csv", "columns")
    [1, 2, 0]
    """
    first = {name: place for place, name in reversed([*enumerate(names)])}
    places: dict[int, None] = {}
    for word in words_of(words):
        places.update(dict.fromkeys(_meant(names, first, word, where, argument)))
    return [*places]


def place_of(names: Sequence[str], word: str | int, where: str, argument: str) -> int:
    """The place of the single column that a name or a place means. DataError if there is none."""
    places = places_of(names, [word], where, argument)
    if len(places) != 1:
        raise DataError(f"{where}: {argument} {word!r} means {len(places)} columns, expected one.")
    return places[0]


def words_of(words: Columns | Sequence[str | int]) -> list[Any]:
    """The words of a text with commas between, or of a sequence; a slice or a number is one."""
    if isinstance(words, str):
        return [word.strip() for word in words.split(",") if word.strip()]
    return [words] if isinstance(words, slice | int) else [*words]


def _meant(
    names: Sequence[str], first: dict[str, int], word: str | int | slice, where: str, argument: str
) -> Iterable[int]:
    n = len(names)
    if isinstance(word, slice):
        places: Iterable[int] = range(n)[word]
    elif not isinstance(word, str):
        place = int(word)
        places = [place % n] if -n <= place < n else []
    elif word in first:
        places = [first[word]]
    elif any(mark in word for mark in "*?["):
        places = [place for place, name in enumerate(names) if fnmatchcase(name, word)]
    elif ":" in word:
        places = _span(first, n, *word.split(":", 1))
    else:
        places = [int(word) % n] if word.removeprefix("-").isdecimal() and -n <= int(word) < n else []
    if not places:
        raise DataError(f"{where}: no column {word!r} ({argument}); there are {_shown(names)}.")
    return places


def _span(first: dict[str, int], n: int, start: str, stop: str) -> Iterable[int]:
    if all(end == "" or end.isdecimal() for end in (start, stop)):
        return range(int(start or 0), min(n, int(stop or n)))
    if start in first and stop in first:
        return range(first[start], first[stop] + 1)
    return []


def named_blocks(blocks: Blocks | None, names: Sequence[str] | None) -> Blocks | None:
    """Blocks of columns with names and globs in them as places; others as they are.

    blocks : a mapping or sequence of blocks, each a slice, places, or names as ``places_of`` takes them. names : of the
    columns, or None.

    >>> named_blocks({"sift": "sift_*", "hog": ["hog_0"]}, ["hog_0", "sift_0", "sift_1"])
    {'sift': [1, 2], 'hog': [0]}
    """
    if blocks is None:
        return None
    if isinstance(blocks, Mapping):
        return {name: _block(block, names) for name, block in blocks.items()}
    return [_block(block, names) for block in blocks]


def _block(block: Any, names: Sequence[str] | None) -> Columns:
    is_named = isinstance(block, str) or (
        not isinstance(block, slice) and any(isinstance(each, str) for each in block)
    )
    if not is_named:
        return block
    if names is None:
        raise ValueError(
            f"blocks name columns, {block!r}, but the rows have no names; give places, such as 0:300."
        )
    return places_of(names, block, "blocks", "blocks")


def _shown(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(repr(str(name)) for name in names[:most]) + (", ..." if len(names) > most else "")


def as_names(names: Iterable[object] | None) -> tuple[str, ...] | None:
    """Names of columns as a tuple of text, or None where there are none or two are the same."""
    if names is None:
        return None
    plain = tuple(str(name) for name in names)
    return plain if len({*plain}) == len(plain) else None


def is_path(value: object) -> bool:
    """Whether a value names a file."""
    return isinstance(value, str | os.PathLike)
