"""Bins in a tree: rows summed over the clades of every rank, a block of columns for each rank.

Leaves are read once; the sums are the product of the rows and a sparse matrix of leaves by clades. A clade is named by
its rank and its whole lineage, ``genus::k__Bacteria|...|g__Dorea``, so that names alone say what a model was fitted on:
leaves of new rows that it has not seen count in the clades above them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chimap import _sparse as sp
from chimap._formatting import counted
from chimap._messages import Message
from chimap._types import JSON, Rows
from chimap._validation import DataError
from chimap.data.clades import ALL_RANKS, are_ranks, by_rank, leaves_of, prefix_of, rank_word, steps_of
from chimap.data.rows import digest
from chimap.data.source import Chunk, Source
from chimap.data.table import BLOCK_SIGN
from chimap.data.views import View


class CladeSums(View):
    """Rows summed over clades.

    Parameters
    ----------
    source : Source
        The source to read.
    clades : dict of str to list of int
        Positions of the leaves of each clade, by the name of its column.

    Examples
    --------
    >>> from chimap.data import ArraySource
    >>> view = CladeSums(ArraySource(np.array([[1.0, 2.0, 4.0]])), {"genus::g__A": [0, 1], "genus::g__B": [2]})
    >>> view.column_names, view.block(0, 1).X.tolist()
    (('genus::g__A', 'genus::g__B'), [[3.0, 4.0]])
    """

    def __init__(self, source: Source, clades: dict[str, list[int]]) -> None:
        super().__init__(source)
        self.column_names, self.other_names, self.lineages = tuple(clades), None, None
        self.n_features, self.n_optional = len(clades), 0
        self.dtype = np.result_type(source.dtype, np.float32)  # sums of narrow whole numbers do not fit
        leaves = np.concatenate([np.array(each, dtype=np.int64) for each in clades.values()])
        starts = np.cumsum([0, *map(len, clades.values())])
        shape = (source.n_features, self.n_features)
        self._sums = sp.csc_matrix((np.ones(leaves.size, self.dtype), leaves, starts), shape=shape).tocsr()
        n_ranks = int(np.diff(self._sums.indptr).max(initial=1))
        self.row_bytes = source.row_bytes * (n_ranks if self.is_sparse else self.n_features / source.n_features)
        self.held_bytes = source.held_bytes + source.row_bytes

    def take(self, rows: np.ndarray) -> Rows:
        return self._summed(self.whole.take(rows))

    def fingerprint(self) -> JSON:
        """Return the fingerprint of the whole, together with the clades."""
        shape = [self.n_rows, self.n_features]
        return {**self.whole.fingerprint(), "shape": shape, "clades": digest(self._sums.indices)}

    def _changed(self, chunk: Chunk) -> Chunk:
        return replace(chunk, X=self._summed(chunk.X))

    def _summed(self, X: Rows) -> Rows:
        summed = X.astype(self.dtype) @ self._sums
        if self.is_sparse:
            summed.sort_indices()
        return summed


def over_ranks(source: Source, asked: str = ALL_RANKS) -> Source:
    """Return rows of leaves summed over one rank, or over each that divides them as no higher one does, with a note.

    Raises DataError if their lineages have no such rank.
    """
    ranks = _clades(source)
    if asked != ALL_RANKS:
        word = rank_word(prefix_of(asked))
        if word not in ranks:
            there = ", ".join(by_rank(ranks))
            raise DataError(Message("{}: no clade of {rank=}; lineages have {}.", source.name, asked, there))
        ranks = {word: ranks[word]}
    kept: dict[str, dict[str, list[int]]] = {}
    for rank in by_rank(ranks):
        clades = ranks[rank]
        if len(clades) > 1 and not any([*clades.values()] == [*other.values()] for other in kept.values()):
            kept[rank] = clades
    if not kept:
        raise DataError(Message("{}: {rank=}: all bins are of one clade. Leave {rank} out.", source.name, asked))
    view = CladeSums(source, {name: leaves for clades in kept.values() for name, leaves in clades.items()})
    told = ", ".join(f"{len(clades):,} of rank {rank}" for rank, clades in kept.items())
    n_out = source.n_features - len({leaf for clades in kept.values() for leaves in clades.values() for leaf in leaves})
    if source.lineages is not None and n_out:
        told += f". {counted(n_out, 'bin')} that no such clade holds, left out"
    left = [rank for rank in by_rank(ranks) if rank not in kept]
    why = f" Ranks of one clade, or divided as a higher one, are left out: {', '.join(left)}." if left else ""
    view.notes = (*source.notes, f"{source.name}: bins are summed over clades: {told}.{why}")
    return view


def are_sums(names: Sequence[str] | None) -> bool:
    """Return whether the names of all columns are those of clades by rank.

    >>> are_sums(["genus::k__A|g__B", "species::k__A|g__B|s__C"]), are_sums(["k__A|g__B"]), are_sums(["morgan::7"])
    (True, False, False)
    """
    return bool(names) and are_ranks(name.partition(BLOCK_SIGN)[0] for name in names or ())


def check_no_sums(names: Sequence[str] | None, where: str) -> None:
    """Raise DataError for sums over several ranks: each count is in several bins, none of which is thinned alone."""
    if are_sums(names) and len({name.partition(BLOCK_SIGN)[0] for name in names or ()}) > 1:
        raise DataError(
            Message(
                "{}: bins are sums over ranks, which hold each count several times, and cannot be drawn one by one. "
                "Depth takes models of one rank: fit on {rank='s__'}.",
                where,
            )
        )


def summed_as(source: Source, names: Sequence[str] | None) -> Source:
    """Return rows of leaves, summed over those clades of a model that they have; of other models, the rows.

    Raises DataError if the rows have no clade of a rank.
    """
    if names is None or source.column_names is None or not are_sums(names):
        return source
    view, wanted = source, {name.casefold() for name in names}
    wanted_ranks = by_rank({name.partition(BLOCK_SIGN)[0] for name in names})
    if not are_sums(source.column_names):
        ranks = _clades(source)
        clades = {name: leaves for rank in wanted_ranks for name, leaves in ranks.get(rank, {}).items()}
        known = {name: leaves for name, leaves in clades.items() if name.casefold() in wanted}
        finest = {leaf: name for name, leaves in clades.items() for leaf in leaves}
        n_above = sum(name.casefold() not in wanted for name in finest.values())
        n_out = len(finest) - len({leaf for leaves in known.values() for leaf in leaves})
        view = CladeSums(source, known) if known else source
        if n_above > n_out:
            told = f"{counted(n_above - n_out, 'bin')} unknown to the fitted model"
            verb = "counts in the clades above it" if n_above - n_out == 1 else "count in the clades above them"
            view.notes = (*view.notes, f"{source.name}: {told} {verb}.")
    there = {name.partition(BLOCK_SIGN)[0] for name in view.column_names or ()}
    if missing := [rank for rank in wanted_ranks if rank not in there]:
        raise DataError(
            f"{source.name}: no clade of rank {' and '.join(missing)} that the model knows; it was fitted on sums over "
            f"{', '.join(wanted_ranks)}. Give bins with lineages down to {wanted_ranks[-1]}, as in its table, and as "
            "they are: the model sums them."
        )
    return view


def _clades(source: Source) -> dict[str, dict[str, list[int]]]:
    """Return the positions of the leaves of each clade by the name of its column, by rank."""
    ranks: dict[str, dict[str, list[int]]] = {}
    names = source.lineages or source.column_names or ()
    for place in leaves_of(names, source.name):
        steps, seen = steps_of(names[place]), set[str]()
        for n, (prefix, step) in enumerate(steps, 1):
            if step == prefix or prefix in seen:  # unnamed, or divided twice at a rank
                continue
            seen.add(prefix)
            rank, lineage = rank_word(prefix), "|".join(step for _, step in steps[:n])
            ranks.setdefault(rank, {}).setdefault(f"{rank}{BLOCK_SIGN}{lineage}", []).append(place)
    return ranks
