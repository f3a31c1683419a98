"""The columns of a table: which of them are bins, which one holds labels, and which one names the rows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from chimap._errors import InputError
from chimap._frames import INDEX
from chimap._messages import Message, Setting, quoted_names
from chimap._types import Blocks, Columns
from chimap._unicode import composed_names
from chimap._validation import DataError
from chimap.data.clades import of_rank
from chimap.data.label_kinds import is_missing, is_text, texts_of
from chimap.data.overlap import Overlap

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# By which HTSeq and STAR report reads that belong to no gene, among the genes.
COUNTER = re.compile(
    r"__(no_feature|ambiguous|too_low_aQual|not_aligned|alignment_not_unique)|N_(unmapped|multimapping|noFeature|ambiguous)"
)

_LEAST_LIKENESS = 0.6  # of a misspelt name and the name that is meant, as difflib counts it

# Where the caller names none, a column or array of one of these names holds the labels, and another names the rows. In
# containers of arrays, Y beside X holds labels too.
LABEL_NAMES = ("y", "label")
ID_NAMES = ("id", "ids", "row_ids", "row_names", "sample_id")


class NoColumnError(DataError):
    """The data have no column, array or file of a name."""


@dataclass(frozen=True)
class ColumnChoice:
    """The caller's choice of columns of a table.

    Parameters
    ----------
    id : str or int, default=None
        Name or position of the column that names the rows; None looks for one.
    columns, exclude : str, int, slice or sequence, default=None
        The columns that are bins, and those that are not, see ``places_of``.
    missing : object, default=None
        A value that marks a missing label, besides None, NaN and empty text.
    names : tuple of str, default=None
        The columns that a model was fitted on, in its order. Where the table has names, these columns are taken and all
        others ignored.
    other_names : tuple of str, default=None
        Second names of these, such as ids of genes, which the table may have instead.
    aside : tuple of str, default=()
        Names of columns that are neither bins, labels nor ids, such as groups of rows. The table need not have them.
    rank : str, default=None
        The rank of the clades that are bins, "s__" for species; None takes all.
    transpose : bool, default=None
        Whether the columns of a table are the rows; None finds out.
    encoding : str, default=None
        The encoding of text files; None is UTF-8.
    width, first_column : int, default=None
        The number of columns that a model was fitted on, and the number that their file gave the first of them, for
        files that state neither.
    """

    id: str | int | None = None
    columns: Columns | None = None
    exclude: Columns | None = None
    missing: object = None
    names: tuple[str, ...] | None = None
    other_names: tuple[str, ...] | None = None
    aside: tuple[str, ...] = ()
    rank: str | None = None
    transpose: bool | None = None
    encoding: str | None = None
    width: int | None = None
    first_column: int | None = None

    @property
    def is_silent(self) -> bool:
        """Whether the choice leaves bins and ids to the defaults."""
        asked = (self.id, self.columns, self.exclude, self.rank)
        return all(setting is None for setting in asked) and not self.aside

    def usual_label(self, names: Sequence[str], where: str) -> str | None:
        """Return the column that holds the labels where the caller names none, or None if there is none.

        It is called ``y`` or ``label``, and is no bin of the model. Raises DataError if there are both and neither is
        excluded.
        """
        known = {*(self.names or ()), *self.aside, *(() if self.columns is None else map(str, words_of(self.columns)))}
        there = [name for name in LABEL_NAMES if name in names and name not in known]
        if len(there) > 1:
            excluded = self.excluded(names, where)
            there = [name for name in there if names.index(name) not in excluded] or there
        return only_label(there, where)

    def usual_id(self, names: Sequence[str], where: str) -> int | None:
        """Return the position of the column that names the rows by its usual name, or None.

        Raises DataError if there are two such columns.
        """
        if self.id is not None:
            return None
        bins = {*(self.names or ())}
        if self.columns is not None:
            bins |= {names[place] for place in places_of(names, self.columns, where, "columns")}
        there = [name for name in ID_NAMES if name in names and name not in bins and name not in self.aside]
        if there:
            excluded = self.excluded(names, where)
            there = [name for name in there if names.index(name) not in excluded]
        if len(there) > 1:
            message = Message(
                "{}: {!r} and {!r} may both name the rows. Name one of them with {id=}.",
                where,
                there[0],
                there[1],
                there[0],
            )
            raise DataError(message)
        return names.index(there[0]) if there else None

    def excluded(self, names: Sequence[str], where: str) -> set[int]:
        """Return the positions of the columns that are left out. Raises DataError for a name that is not there."""
        return set() if self.exclude is None else {*places_of(names, self.exclude, where, "exclude")}

    def said(self) -> list[object]:
        """Return all words that may name columns, together with slices and positions."""
        word_lists = (words_of(words) for words in (self.columns, self.exclude) if words is not None)
        return [self.id, *self.aside, *(word for words in word_lists for word in words)]


@dataclass(frozen=True)
class Roles:
    """Positions of the columns that are bins, of the labels, and of the ids of rows.

    Parameters
    ----------
    bins, label, id : list of int, int or None, int or None
        The positions.
    is_explicit : bool, default=False
        Whether the caller or a model named the bins, so that they need no further check.
    unknown : tuple of str, default=()
        Names of the columns that have none of these roles, where a model named the bins.
    doubts : tuple of str, default=()
        Notes for the user on roles that may not be meant.
    is_index : bool, default=False
        Whether the ids are the index of a data frame, which may have repeats; others name one row each.
    """

    bins: list[int]
    label: int | None
    id: int | None
    is_explicit: bool = False
    unknown: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    is_index: bool = False

    def aside(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the columns that are neither bins, labels nor ids."""
        return tuple(name for i, name in enumerate(names) if i not in {*self.bins, self.label, self.id})

    def notes(self, where: str, id: str | None) -> tuple[str, ...]:
        """Return a note for the user on the unknown columns; ``id`` is one of them that turned out to name the rows."""
        return (*ignored([name for name in self.unknown if name != id], where), *self.doubts)

    def id_candidate(self, names: Sequence[str], where: str, *, has_index: bool = False) -> IdCandidate | None:
        """Return the first column besides the labels, if it may name the rows or be an index; else None.

        ``has_index`` says that the table itself has names of its rows.
        """
        place = next((place for place in range(len(names)) if place != self.label), None)
        if self.id is not None or place is None:
            return None
        is_bin = place in self.bins
        if (has_index and not is_bin) or (self.is_explicit and is_bin):
            return None
        return IdCandidate(place, names[place], where, may_count=is_bin and len(self.bins) > 1)

    def named_by(self, first: IdCandidate) -> Roles:
        """Return the roles where the first column names the rows. Raises DataError if no bins are left."""
        bins = [place for place in self.bins if place != first.place]
        if not bins:
            text, molecules = readings_of(first.name)
            message = Message(
                "{}: no columns besides labels and ids. Give rows of bins; to count the words of a column of text use "
                "{}, for molecules {}.",
                first.where,
                text,
                molecules,
            )
            raise DataError(message)
        return replace(self, bins=bins, id=first.place)


class IdCandidate:
    """The first column of a table while it is read: text without repeats names the rows.

    Numbers that count the rows are refused among the bins, as they hold only the order of the rows.

    Parameters
    ----------
    place, name, where : int, str, str
        Position and name of the column, and the table, for messages.
    may_count : bool
        Whether it is refused that the column counts the rows.

    Examples
    --------
    >>> column = IdCandidate(0, "sample", "rows.csv", may_count=True)
    >>> column.add(np.array(["a", "b"])), column.add(np.array(["c"])), column.ids().tolist()
    (True, True, ['a', 'b', 'c'])
    """

    def __init__(self, place: int, name: str, where: str, *, may_count: bool) -> None:
        self.place, self.name, self.where = place, name, where
        self._may_count, self._is_open = may_count, True
        self._texts: list[np.ndarray] = []
        self._n_rows = 0

    def add(self, values: np.ndarray) -> bool:
        """Take the values of the next rows; return False if no more are needed."""
        if is_text(values):
            is_same_kind = bool(self._texts) or self._n_rows == 0
            self._is_open &= is_same_kind and all(isinstance(value, str) for value in values.tolist())
            self._texts.append(values)
        else:
            is_number = self._may_count and not self._texts and values.dtype.kind in "iuf"
            self._is_open &= is_number and enumerates_rows(values, self._n_rows)
        self._n_rows += values.size
        return self._is_open

    def ids(self) -> np.ndarray | None:
        """Return the ids of the rows, or None if the column holds none. Raises DataError if it counts the rows."""
        if self._is_open and self._texts:
            texts = texts_of(np.concatenate(self._texts))
            return texts if np.unique(texts).size == texts.size else None
        if self._is_open and self._n_rows:
            check_not_counting(self.name, self._n_rows, self.where)
        return None


def roles_of(
    names: Sequence[str],
    label: int | None,
    choice: ColumnChoice,
    where: str,
    *,
    index: Iterable[str] = (),
    has_names: bool = True,
) -> Roles:
    """Return the role of each column of a table.

    This is the one rule for all tables. What the caller names comes first. Then the rows are named by the first column
    that pandas writes for the index of a data frame, else by a column with one of ``ID_NAMES``; both are no bins. A
    reader that finds neither takes a first column of text without repeats. Groups of rows are never guessed.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    label : int or None
        Position of the labels.
    choice : ColumnChoice
        The caller's choice.
    where : str
        The file, for errors.
    index : iterable of str, default=()
        Further names of index columns, from metadata.
    has_names : bool, default=True
        Whether the names come from the file, rather than standing for positions.

    Raises
    ------
    DataError
        If a named column does not exist, or no bins are left.
    """
    names, indices = composed_names(names), {*index}
    aside = [
        i
        for i, name in enumerate(names)
        if has_names and i != label and (name in indices or (INDEX.fullmatch(name) and (name or i == 0)))
    ]
    if choice.id is not None:
        aside.insert(0, place_of(names, choice.id, where, "id"))
    is_index = bool(aside) and choice.id is None
    usual = choice.usual_id(names, where) if has_names else None
    if usual is not None and usual not in (label, *aside):
        aside.append(usual)
    id_place = aside[0] if aside else None
    aside += _present(names, choice.aside, has_names)
    taken = {label, *aside}
    candidates = [i for i in range(len(names)) if i not in taken]
    if choice.names is not None and has_names:
        return _roles_as_fitted(names, candidates, Roles([], label, id_place, True, is_index=is_index), choice, where)
    doubts: tuple[str, ...] = ()
    bins = candidates
    if choice.columns is not None:
        besides = {label, *_present(names, choice.aside, has_names)}
        bins = [i for i in places_of(names, choice.columns, where, "columns") if i not in besides]
    elif has_names:
        counters = counters_among(names, candidates)
        bins = [i for i in candidates if i not in counters]
        doubts = counters_note([names[i] for i in counters], where)
    excluded = choice.excluded(names, where)
    bins = [i for i in bins if i not in excluded]
    if choice.rank is not None:
        bins = [bins[i] for i in of_rank([names[i] for i in bins], choice.rank, where)]
    if not bins:
        raise DataError(f"{where}: no columns are left besides labels and ids. Give rows of bins.")
    if has_names and choice.columns is None:
        doubts = (*doubts, *(_like_labels(names[i], where) for i in bins if names[i] in LABEL_NAMES))
    return Roles(bins, label, id_place, choice.columns is not None, (), doubts, is_index)


def _roles_as_fitted(
    names: Sequence[str], candidates: Sequence[int], others: Roles, choice: ColumnChoice, where: str
) -> Roles:
    """Return the roles where the bins are the columns of a model."""
    assert choice.names is not None  # the caller asked
    wanted, free = {*composed_names(choice.names)}, {*candidates}
    among = [i for i, name in enumerate(names) if i in free or name in wanted]
    overlap = Overlap.of(choice.names, [names[i] for i in among], other_bins=choice.other_names)
    bins = [among[place] for place in overlap.places.tolist() if place >= 0]
    if not bins:
        overlap.refuse(where)
    return replace(others, bins=bins, unknown=tuple(names[i] for i in sorted(free.difference(bins))))


def _like_labels(name: str, where: str) -> Message:
    """Return the note on a bin that is called like labels."""
    return Message(
        "{}: {!r} is taken for a bin. If it holds labels, name it with {labels=}, or set it aside with {exclude=}.",
        where,
        name,
        name,
        name,
    )


def counters_among(names: Sequence[str], places: Iterable[int]) -> list[int]:
    """Return which of some columns count reads that belong to no gene, as HTSeq and STAR report them."""
    return [place for place in places if COUNTER.fullmatch(names[place])]


def counters_note(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the note on bins that count reads of no gene, if there are any."""
    if not names:
        return ()
    return (
        Message(
            "{}: counts of reads of no gene are left out: {}. To have them, name the bins with {columns}.",
            where,
            quoted_names(names),
        ),
    )


def only_label(names: Sequence[str], where: str) -> str | None:
    """Return the only name of columns or arrays that may hold the labels; None for none. Raises DataError for two."""
    if len(names) > 1:
        message = Message(
            "{}: {} may hold the labels. Name one of them with {labels}; in a table, set the other aside with "
            "{exclude}, or it is taken for a bin.",
            where,
            " and ".join(map(repr, names)),
        )
        raise DataError(message)
    return names[0] if names else None


def _present(names: Sequence[str], words: Iterable[str], has_names: bool) -> list[int]:
    """Return the positions of the named columns that the table has, by name, or by position where it has no names."""
    if not has_names:
        positions = [int(word) for word in words if word.removeprefix("-").isdecimal()]
        return [place % len(names) for place in positions if -len(names) <= place < len(names)]
    place = {name: i for i, name in enumerate(names)}
    return [place[word] for word in words if word in place]


def check_same_names(names: Sequence[str], first: Sequence[str], where: str) -> None:
    """Raise DataError if a batch or part of the rows has other columns than the first one, in whatever order."""
    ours, theirs = {*names}, {*first}
    unknown, missing = ([name for name in names if name not in theirs], [name for name in first if name not in ours])
    if unknown or missing:
        faults = [f"{what} {quoted_names(faulty)}" for what, faulty in (("has", unknown), ("lacks", missing)) if faulty]
        raise DataError(
            f"{where}: it {' and '.join(faults)}, unlike the first. Columns are matched by name, and all parts need "
            "the same ones."
        )


def ignored(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Return a note on columns that the model does not know, if there are any."""
    if not names:
        return ()
    what = "column" if len(names) == 1 else f"{len(names):,} columns"
    return (f"{where}: {what} {quoted_names(names, 4)} ignored: unknown to the fitted model.",)


def places_of(names: Sequence[str], words: Columns | Sequence[str | int], where: str, argument: str) -> list[int]:
    """Return the positions of the columns that some words mean, each once, in the order of the words.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    words : str, int, slice or sequence
        A text with commas between words, or a sequence of words. A word is a name, a glob ("otu_*"), a position (0 is
        the first), a range of positions ("0:300", without the last) or a range of names ("otu_1:otu_9", with the
        last). A slice is a range of positions.
    where, argument : str
        The file, and the argument that holds the words, for errors.

    Raises
    ------
    DataError
        If a word matches no column.

    Examples
    --------
    >>> places_of(["a", "b1", "b2", "c"], "b*,0", "rows.csv", "columns")
    [1, 2, 0]
    """
    first = {name: place for place, name in reversed([*enumerate(names)])}
    places: dict[int, None] = {}
    for word in words_of(words):
        places.update(dict.fromkeys(_matching(names, first, word, where, argument)))
    return [*places]


def place_of(names: Sequence[str], word: str | int, where: str, argument: str) -> int:
    """Return the position of the single column that a name or a position means. Raises DataError if there is none."""
    places = places_of(names, [word], where, argument)
    if len(places) != 1:
        raise DataError(f"{where}: {argument} {word!r} matches {len(places)} columns, expected one.")
    return places[0]


def words_of(words: Columns | Sequence[str | int]) -> list[Any]:
    """Return the words of a text with commas between them, or of a sequence; a slice or a number is a single word."""
    if isinstance(words, str):
        return [word.strip() for word in words.split(",") if word.strip()]
    return [words] if isinstance(words, slice | int) else [*words]


def _matching(
    names: Sequence[str], first: dict[str, int], word: str | int | slice, where: str, argument: str
) -> Iterable[int]:
    """Return the positions of the columns that one word means."""
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
        there = instead(str(word), names, f"there are {quoted_names(names)}")
        raise NoColumnError(f"{where}: no column {word!r} ({argument}){there}.")
    return places


def instead(word: str, names: Sequence[str], there: str) -> str:
    """Return what follows the report of a name that is not there: the names that it may be, and ``there``, a clause.

    >>> instead("diagnosos", ["age", "Diagnosis"], "there are 2"), instead("x", ["age"], "there are 1")
    (": did you mean 'Diagnosis'? There are 2", '; there are 1')
    """
    written = {name.lower(): name for name in names}
    near = get_close_matches(word.lower(), written, 2, _LEAST_LIKENESS)
    if not near:
        return f"; {there}"
    return f": did you mean {' or '.join(repr(written[name]) for name in near)}? {there[0].upper()}{there[1:]}"


def _span(first: dict[str, int], n: int, start: str, stop: str) -> Iterable[int]:
    """Return the range of positions between two positions or two names; empty if they are neither."""
    if all(end == "" or end.isdecimal() for end in (start, stop)):
        return range(int(start or 0), min(n, int(stop or n)))
    if start in first and stop in first:
        return range(first[start], first[stop] + 1)
    return []


def named_blocks(blocks: Blocks, names: Sequence[str] | None) -> Blocks:
    """Return blocks of columns with positions in place of names and globs; other blocks unchanged.

    Each block is a slice, positions, or names as ``places_of`` takes them; ``names`` are the names of the columns.

    >>> named_blocks({"sift": "sift_*", "hog": ["hog_0"]}, ["hog_0", "sift_0", "sift_1"])
    {'sift': [1, 2], 'hog': [0]}
    """
    if isinstance(blocks, Mapping):
        return {name: _block(block, names) for name, block in blocks.items()}
    return [_block(block, names) for block in blocks]


BLOCK_SIGN = "::"
"""What stands in the name of a column between that of its block and its own, such as "morgan::98513984"."""


def declared_blocks(names: Sequence[str] | None) -> dict[str, slice | list[int]] | None:
    """Return the blocks that the names of all columns declare, by ``BLOCK_SIGN``; None if there are not two of them.

    >>> declared_blocks(["morgan::7", "pair::1", "pair::2"]), declared_blocks(["morgan::7", "mass"])
    ({'morgan': slice(0, 1, None), 'pair': slice(1, 3, None)}, None)
    """
    blocks = dict[str, list[int]]()
    for place, name in enumerate(names or ()):
        block, sign, _ = name.partition(BLOCK_SIGN)
        if not sign:
            return None
        blocks.setdefault(block, []).append(place)
    if len(blocks) < 2:
        return None
    are_adjacent = all(places[-1] - places[0] == len(places) - 1 for places in blocks.values())
    if not are_adjacent:
        return {**blocks}
    return {block: slice(places[0], places[-1] + 1) for block, places in blocks.items()}


def _block(block: Any, names: Sequence[str] | None) -> Columns:
    is_named = isinstance(block, str) or (not isinstance(block, slice) and any(isinstance(each, str) for each in block))
    if not is_named:
        return block
    if names is None:
        raise InputError(f"blocks name columns, {block!r}, but the rows have no names; give positions, such as 0:300.")
    return places_of(names, block, "blocks", "blocks")


def as_names(names: Iterable[object]) -> tuple[str, ...] | None:
    """Return names of columns as a tuple of text, or None where two are the same."""
    plain = composed_names(names)
    return plain if len({*plain}) == len(plain) else None


def is_path(value: object) -> TypeIs[str | os.PathLike[str]]:
    """Return whether a value names a file."""
    return isinstance(value, str | os.PathLike)


def counting(kind: str, column: str) -> Setting:
    """Return the setting that counts the words of a column ("WordCounts") or its molecules ("MoleculeBlocks")."""
    return Setting("reading", (kind, column), f"{kind}({column!r})")


def readings_of(column: str) -> tuple[Setting, Setting]:
    """Return the settings that count the words of a column, and its molecules."""
    return counting("WordCounts", column), counting("MoleculeBlocks", column)


_FEWEST_COUNTED_ROWS = 3  # number of rows from which a counting column is no coincidence


def naming_note(name: str, where: str) -> str:
    """Return the note on a first column of text that was taken for ids by default."""
    return f"{where}: the first column, {name!r}, is text without repeats and names the rows."


def index_notes(name: str, ids: np.ndarray, where: str) -> tuple[str, ...]:
    """Return the note on a column that was taken for the index of a data frame, but does not name the rows."""
    if name.strip() or np.unique(ids).size == ids.size:
        return ()
    reason = "has no name and is set aside as the index of a data frame, although its values repeat"
    return (f"{where}: the first column {reason}. If it is a bin, give it a name in the first line.",)


def named_rows(
    roles: Roles, names: Sequence[str], where: str, ids: np.ndarray | None, candidate: IdCandidate | None
) -> tuple[Roles, np.ndarray | None, tuple[str, ...]]:
    """Return the roles of columns, the ids of the rows and notes, once the columns that may hold ids have been read.

    ``ids`` are the values, as text, of the column that ``roles`` says; ``candidate`` was given those of the first.
    """
    if roles.id is not None and ids is not None:
        name = names[roles.id]
        notes = (*roles.notes(where, name), *index_notes(name, ids, where))
        return roles, ids if roles.is_index else unique_ids(ids, f"{where}, column {name!r}"), notes
    ids = None if candidate is None else candidate.ids()
    if candidate is None or ids is None:
        return roles, None, roles.notes(where, None)
    return roles.named_by(candidate), ids, (*roles.notes(where, candidate.name), naming_note(candidate.name, where))


def check_not_counting(name: str, n_rows: int, where: str) -> None:
    """Refuse a first column that counts the rows from 0 or 1, unless there are few rows: it holds only their order."""
    if n_rows >= _FEWEST_COUNTED_ROWS:
        raise DataError(
            Message(
                "{}: the first column, {!r}, counts the rows, as the index of a table does. If it names the rows, "
                "use {id=}; to drop it, {exclude=}; if it is a bin, name all bins with {columns}.",
                where,
                name,
                name,
                name,
            )
        )


def enumerates_rows(values: np.ndarray, start: int = 0) -> bool:
    """Return whether the values of the rows from ``start`` on count the rows, from 0 or from 1.

    >>> enumerates_rows(np.array([1, 2, 3])), enumerates_rows(np.array([5, 6]), start=5)
    (True, True)
    >>> enumerates_rows(np.array([0, 2]))
    False
    """
    expected = np.arange(start, start + values.size)
    return any(np.array_equal(values, expected + shift) for shift in (0, 1))


def checked_ids(values: np.ndarray, where: str) -> np.ndarray:
    """Return the ids of rows, of shape (n,), as text. Raises DataError, naming the row, where one is missing."""
    missing = np.flatnonzero([is_missing(value) for value in values.tolist()])
    if missing.size:
        raise DataError(f"{where}, row {missing[0]}: no id. Each row needs one; fill it, or name another column.")
    return texts_of(values)


def unique_ids(ids: np.ndarray, where: str) -> np.ndarray:
    """Return the ids of rows, of shape (n,), if all differ; else raise DataError."""
    if (repeat := first_repeat(ids)) is not None:
        raise DataError(
            Message(
                "{}: the id {} comes twice, in rows {} and {}. Each id must name a single row: name another column, "
                "or remove one of the rows. For a column of groups of rows, use {groups}.",
                where,
                ids[repeat[0]],
                repeat[0],
                repeat[1],
            )
        )
    return ids


def first_repeat(ids: np.ndarray) -> tuple[int, int] | None:
    """Return the places of two ids, of shape (n,), that are the same, or None where all differ.

    >>> first_repeat(np.array(["b", "a", "b"])), first_repeat(np.array(["a", "b"]))
    ((0, 2), None)
    """
    order = np.argsort(ids, kind="stable")
    repeats = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if not repeats.size:
        return None
    first, second = sorted(order[repeats[0] : repeats[0] + 2].tolist())
    return first, second


def check_order(ids: np.ndarray, values: object, name: str, call: str, argument: str = "y") -> None:
    """Refuse labels, or other values of the rows, whose index holds the ids of the rows in another order.

    ``name`` stands for the rows in the message, ``call`` for the ids as an expression of the user, ``argument`` for
    the values. Values without an index, and with an index of other entries, are in the order of the rows.
    """
    index = getattr(values, "index", None)
    if index is None or callable(index) or len(index) != len(ids):
        return
    distinct = set(ids.tolist())
    if len(distinct) < len(ids) or distinct != set(index):
        return
    pairs = zip(ids, index, strict=True)
    row = next((i for i, (a, b) in enumerate(pairs) if a is not b and a != b), None)
    if row is not None:
        whose, where = ("its labels", "the labels") if argument == "y" else (argument, argument)
        raise DataError(
            f"{name} and {whose} have the same index in another order: row {row} is '{ids[row]}' in the rows and "
            f"'{index[row]}' in {where}. Align them, {argument}.loc[{call}], or drop the index, "
            f"{argument}.to_numpy()."
        )
