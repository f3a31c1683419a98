"""What looks wrong in rows of a fit: columns that are no counts, bins that give the label away, rows that repeat.

The rows can be used all the same, so each doubt is a sentence for the user, a ``DataWarning``. It is said only where
the data leave no other reading: a note that accuses good data is not read the second time.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from chimap import _arrays
from chimap._messages import Message
from chimap._types import Rows
from chimap._validation import DataError
from chimap.data.clades import has_several_ranks, ranks_in_words
from chimap.data.label_kinds import is_real, label_type
from chimap.data.rows import digest
from chimap.data.source import Source
from chimap.data.table import COUNTER
from chimap.data.totals import doubts_of_margins
from chimap.data.units import FEWEST_ROWS

LOOK_ROWS, LOOK_BYTES = 2000, 2**24  # rows that are looked at, and their bytes
_RUNS = 8  # parts of the source that these rows come from
_FEWEST_ROWS_OF_CLASS = 5
_MOST_CLASSES = 50
_FEWEST_NUMBERS = 100  # fewer distinct whole numbers are no surprise
_FEWEST_PARENTS = 3  # groups of columns that add up to another column
_LARGEST_DEVIATION_OF_SUMS = 0.01  # how far the sum of columns may be from the column that holds it, as a share
_MOST_ROWS_SEARCHED = 200_000  # rows of a file whose contents are compared


class DataWarning(UserWarning):
    """The rows can be used, but look wrong; the message says how, and what to do."""


def say(doubts: Iterable[str], stacklevel: int = 3) -> None:
    """Warn of each doubt."""
    for doubt in doubts:
        warnings.warn(DataWarning(doubt), stacklevel=stacklevel + 1)


def first_look(source: Source, most_bytes: float = LOOK_BYTES) -> tuple[Rows, np.ndarray | None]:
    """Return some rows of a source, and their labels, without reading all of it.

    They take at most ``most_bytes``, unless even a few take more, and are spread over the source in runs where it can
    seek and rows are not stored in large groups.
    """
    n = int(min(source.n_rows, LOOK_ROWS, max(FEWEST_ROWS, min(LOOK_BYTES, most_bytes) / max(1.0, source.row_bytes))))
    if not source.can_seek or source.stored_rows > n or n == source.n_rows:
        chunk = next(iter(source.chunks(n)))
        return chunk.X, chunk.y
    size = -(-n // _RUNS)
    starts = np.linspace(0, source.n_rows - size, _RUNS).astype(np.intp).tolist()
    blocks = [source.block(start, start + size) for start in starts]
    labels = [block.y for block in blocks if block.y is not None]
    return _arrays.stack_rows([block.X for block in blocks]), np.concatenate(labels) if labels else None


def doubts_at_fit(
    source: Source,
    rows: Rows,
    y: np.ndarray | None,
    normalize: str | Sequence[str | None] | None,
    is_classification: bool,
) -> Iterator[str]:
    """Yield what looks wrong in rows to fit on; ``rows`` and ``y`` are those of ``first_look``."""
    names = source.column_names
    is_signed = bool(_arrays.stored_values(rows).min(initial=0) < 0)
    counts = [name for name in source.matrices if name == "raw/X" or "counts" in name]
    if is_signed and counts:
        yield Message(
            "{}: entries are negative, so these are no counts; the file has others: {}.",
            source.name,
            f"{source.name}::{counts[0].removesuffix('/X')}",
        )
    if source.is_logged and normalize is not None:
        yield Message(
            "{}: uns['log1p'] says that the rows are logarithms already; {normalize=} takes them for counts.",
            source.name,
            normalize,
        )
    if names is not None:
        yield from _reports(names, source.name)
        if not is_signed:
            yield from _sums_of_others(names, rows, source.name)
    yield from doubts_of_margins(rows, names, source.name, are_all=rows.shape[0] == source.n_rows)
    yield from _numbering(rows, names, source)
    if y is not None and y.ndim == 1:
        giving = _bins_that_tell(rows, y) if is_classification else _bins_that_are(rows, y)
        if giving.size:
            which = "the bins" if giving.size > 1 else "the bin"
            yield Message(
                "{}: {} {} alone {} every label exactly. If it was made from the labels, leave it out with {exclude=}.",
                source.name,
                which,
                _shown(giving, names),
                "tell" if giving.size > 1 else "tells",
                _name(giving[0], names),
            )


def _reports(names: Sequence[str], where: str) -> Iterator[str]:
    found = [name for name in names if COUNTER.fullmatch(name)]
    if found:
        yield Message(
            "{}: {} count reads that belong to no bin, as HTSeq and STAR report them. Leave them out with {exclude=}.",
            where,
            ", ".join(map(repr, found)),
            ",".join(found),
        )


def _sums_of_others(names: Sequence[str], rows: Rows, where: str) -> Iterator[str]:
    """Yield a note where columns, named as ranks of a tree, hold sums of those below, as k__A those of k__A|p__B.

    Else yield one where they are clades of several ranks.
    """
    place = {name: i for i, name in enumerate(names)}
    below: dict[int, list[int]] = defaultdict(list)
    for name, column in place.items():
        cut = max(name.rfind("|"), name.rfind(";"))
        parent = place.get(name[:cut].rstrip()) if cut > 0 else None
        if parent is not None:
            below[parent].append(column)
    parents = [parent for parent, columns in below.items() if columns]
    n_sums = 0
    for parent in parents:
        whole = _column(rows, parent)
        parts = np.asarray(rows[:, below[parent]].sum(axis=1, dtype=np.float64)).reshape(-1)
        n_sums += bool(np.abs(parts - whole).sum() <= _LARGEST_DEVIATION_OF_SUMS * whole.sum())
    ranks = ranks_in_words(names) if has_several_ranks(names) else None
    kept = Message("{columns}") if ranks is None else Message("{rank='s__'}: there are {}", ranks)
    if len(parents) >= _FEWEST_PARENTS and n_sums >= len(parents) / 2:
        yield Message(
            "{}: {:,} columns, such as {!r}, are the sums of the columns below them in the tree of their names, so "
            "each count stands in several bins. Keep one rank with {}.",
            where,
            n_sums,
            names[parents[0]],
            kept,
        )
    elif ranks is not None:
        yield Message("{}: bins are clades of several ranks. To keep one, say {}.", where, kept)


def _numbering(rows: Rows, names: Sequence[str] | None, source: Source) -> Iterator[str]:
    """Yield a note on columns of distinct whole numbers that count the rows, or grow from each row to the next."""
    n = rows.shape[0]
    if n < _FEWEST_NUMBERS:
        return
    found = []
    candidates = np.flatnonzero(_arrays.n_nonzero(rows) >= n - 1)
    for column in candidates.tolist():
        values = _column(rows, column)
        if np.unique(values[: _FEWEST_NUMBERS // 2]).size < min(n, _FEWEST_NUMBERS // 2):
            continue
        if np.any(values != np.rint(values)) or np.unique(values).size < n:
            continue
        is_dense = values.max() - values.min() < 2 * source.n_rows
        if is_dense or np.all(np.diff(values) > 0):
            found.append(column)
    if found:
        yield Message(
            "{}: {} {} another whole number in every row, as ids and times do. If it is no count, leave it out with "
            "{exclude=}.",
            source.name,
            f"column {_shown(found, names)}" if len(found) == 1 else f"columns {_shown(found, names)}",
            "has" if len(found) == 1 else "have",
            _name(found[0], names),
        )


def _bins_that_tell(rows: Rows, y: np.ndarray) -> np.ndarray:
    """Return the bins whose values tell every class: no two classes share a part of their range."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if not 2 <= classes.size <= _MOST_CLASSES or counts.min() < _FEWEST_ROWS_OF_CLASS or y.size < 2 * FEWEST_ROWS:
        return np.zeros(0, np.intp)
    lowest, highest = (
        np.stack([_extreme(_arrays.take_rows(rows, np.flatnonzero(codes == k)), way) for k in range(classes.size)])
        for way in ("min", "max")
    )
    order = np.argsort(lowest, axis=0, kind="stable")
    lowest, highest = np.take_along_axis(lowest, order, 0), np.take_along_axis(highest, order, 0)
    return np.flatnonzero(np.all(highest[:-1] < lowest[1:], axis=0))


def _bins_that_are(rows: Rows, y: np.ndarray) -> np.ndarray:
    """Return the bins that are the targets themselves, or a multiple of them."""
    if y.size < 2 * FEWEST_ROWS or y.dtype.kind not in "iuf" or np.unique(y).size < FEWEST_ROWS:
        return np.zeros(0, np.intp)
    centred = y - y.mean()
    products = np.asarray(rows.T @ centred).reshape(-1)
    squares = np.asarray((rows.multiply(rows) if _arrays.is_sparse(rows) else np.square(rows)).sum(axis=0)).reshape(-1)
    variances = squares - y.size * np.square(_arrays.column_means(rows))
    scale = np.sqrt(np.maximum(variances, 0) * (centred @ centred))
    likely = np.flatnonzero((scale > 0) & (np.abs(products) > 0.9999 * scale))
    exact = [column for column in likely.tolist() if abs(np.corrcoef(_column(rows, column), y)[0, 1]) > 1 - 1e-9]
    return np.array(exact, dtype=np.intp)


def repeated_rows(training: Source, held_out: Source) -> int | None:
    """Return how many held-out rows also occur in training, without empty ones; None where there are too many rows."""
    if training.n_rows + held_out.n_rows > _MOST_ROWS_SEARCHED:
        return None
    known = {content for content in _contents(training) if content}
    return sum(content in known for content in _contents(held_out) if content)


def _contents(source: Source) -> Iterator[str]:
    for chunk in source.chunks(4096):
        rows = _arrays.without_zeros(chunk.X) if _arrays.is_sparse(chunk.X) else chunk.X
        largest, least = (_extreme(rows, way, axis=1) for way in ("max", "min"))
        is_empty = (largest == 0) & (least == 0)
        for row in range(rows.shape[0]):
            yield "" if is_empty[row] else digest(np.frombuffer(_arrays.row_content(rows, row), np.uint8))


def _extreme(rows: Rows, way: str, axis: int = 0) -> np.ndarray:
    """Return the smallest or largest entry, ``way``, of each column, or along another axis."""
    found = getattr(rows, way)(axis=axis)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64).reshape(-1)


def _column(rows: Rows, column: int) -> np.ndarray:
    return np.asarray(_arrays.to_dense(rows[:, [column]]), dtype=np.float64).reshape(-1)


def _name(column: int, names: Sequence[str] | None) -> str:
    return str(column) if names is None else names[column]


def _shown(columns: Sequence[int] | np.ndarray, names: Sequence[str] | None, most: int = 4) -> str:
    shown = ", ".join(repr(_name(column, names)) if names else str(column) for column in list(columns)[:most])
    return shown + (", ..." if len(columns) > most else "")


_MOST_ROWS_COMPARED = 2000  # most rows that are compared with each other
_MOST_COLUMNS_TESTED = 4  # most columns that are tested; each is another pass over the file
_FEWEST_VALUES = 5
_FEWEST_VALUES_COMPARED = 20  # at least so many values are compared, if there are as many
# How far the share of rows whose nearest row has the same value must exceed chance, as a share of 1 - chance.
_LEAST_EXCESS = 0.5
# Largest median ratio of the distance to the nearest row of the same value to that of another value.
_LARGEST_DISTANCE_RATIO = 0.5
_LARGEST_RATIO_OF_SMALL_GROUPS, _SHARE_OF_SMALL_GROUPS = (
    0.72,
    0.08,
)  # the same ratio where a value covers at most this share of its class; kinds within a class are larger


# By these, .97 and more of the rows of films are near others, at most .2 of those of the shared sets, and .7 of those
# of random rows of two bins.
_MOST_NEIGHBOURS_LOOKED_AT, _FEWEST_NEIGHBOURS = 300, 40
_NEIGHBOURS = 31
_SAME = 1e-7
_GAP = 2.0  # how many times farther the next neighbour is
_NEAR_NEIGHBOUR = 0.25  # the distance to the nearest row as a share of the median distance
_MOST_ARE_NEAR = 0.8


def group_column(source: Source) -> str | None:
    """Return the first column set aside that looks like a group, see ``looks_like_groups``; None if none does."""
    tasks = {*(source.task_names or ())}
    for name in [name for name in source.columns_aside if name not in tasks][:_MOST_COLUMNS_TESTED]:
        try:
            codes = _codes(source.column(name))
        except (DataError, ValueError):
            continue  # groups have one value a row, this column does not
        if codes is None:
            continue
        places = _whole_groups(codes)
        rows, y = source.take(places), source.labels()
        kinds = y[places] if y is not None and y.ndim == 1 and _may_be_classes(y) else None
        if looks_like_groups(rows, codes[places], kinds):
            return name
    return None


def doubts_of_groups(source: Source, rows: Rows | None = None) -> Iterator[str]:
    """Yield a sentence on the column that looks like a group, or else on rows that are nearly equal, if there are any.

    ``rows`` are those of ``first_look``; None reads them.
    """
    name = group_column(source)
    if name is not None:
        yield Message(
            "column {!r} looks like a group: rows that share its value are nearly equal. Name it with {groups=}, or "
            "scores will be too optimistic.",
            name,
            name,
        )
    elif are_nearly_equal(first_look(source)[0] if rows is None else rows):
        yield Message(
            "{}: most rows are nearly equal to a few others, like the frames of a film or the repeats of a sample. If "
            "these belong together, hold them out together with {groups}, or scores will be too optimistic.",
            source.name,
        )


def are_nearly_equal(rows: Rows) -> bool:
    """Return whether most rows (n, bins) have a few others nearby, and then none for more than twice as far.

    A gap among the nearest neighbours tells repeats from rows that are merely dense, as with few bins. Rows that are
    exactly equal do not count: those of small counts often are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> films = rng.random((30, 8))[np.repeat(np.arange(30), 5)]
    >>> are_nearly_equal(films + 0.01 * rng.random((150, 8))), are_nearly_equal(rng.random((150, 8)))
    (True, False)
    """
    rows = _arrays.take_rows(rows, slice(_MOST_NEIGHBOURS_LOOKED_AT))
    n = rows.shape[0]
    if n < _FEWEST_NEIGHBOURS or not np.isfinite(_arrays.stored_values(rows)).all():
        return False
    distances = _distances(rows)
    distances[distances < _SAME] = np.nan  # a row itself, and those that are equal to it
    distances.sort(axis=1)  # NaN last
    nearest, n_others = (distances[:, : min(_NEIGHBOURS, n // 4)], np.count_nonzero(~np.isnan(distances), axis=1))
    typical = distances[np.arange(n), n_others // 2]
    with np.errstate(invalid="ignore"):
        has_gap = np.any(nearest[:, 1:] > _GAP * nearest[:, :-1], axis=1)
        is_near = nearest[:, 0] < _NEAR_NEIGHBOUR * typical
    return bool(np.mean(has_gap & is_near) >= _MOST_ARE_NEAR)


def looks_like_groups(rows: Rows, values: np.ndarray, classes: np.ndarray | None = None) -> bool:
    """Return whether rows that share a value are nearly equal.

    Two conditions must hold. The nearest row has the same value far more often than by chance. And it is far nearer
    than the nearest row of another value: twice as near, or somewhat less where a value covers few rows of its class.
    Distances are taken between the square roots of shares, or for signed rows between directions.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n, bins)
        The rows.
    values : ndarray of shape (n,)
        The column to test.
    classes : ndarray of shape (n,), default=None
        Classes of the rows: rows are then compared within their class, so that a column that follows from the label
        does not count as a group.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> films = np.repeat(np.arange(30), 5)
    >>> frames = rng.random((30, 8))[films] + 0.01 * rng.random((150, 8))
    >>> looks_like_groups(frames, films), looks_like_groups(frames, rng.permutation(films))
    (True, False)
    """
    if not np.isfinite(_arrays.stored_values(rows)).all():
        return False  # the fit will report the value that is not finite
    distances = _distances(rows)
    np.fill_diagonal(distances, np.inf)
    same_value = values[:, None] == values[None, :]
    same_class = np.ones_like(same_value) if classes is None else classes[:, None] == classes[None, :]
    within = np.where(same_value & same_class, distances, np.inf).min(axis=1)
    beyond = np.where(~same_value & same_class, distances, np.inf).min(axis=1)
    has_both = np.isfinite(within) & np.isfinite(beyond)
    if np.count_nonzero(has_both) < FEWEST_ROWS:
        return False
    shares = ((same_value & same_class).sum(axis=1) - 1) / (same_class.sum(axis=1) - 1).clip(1)
    chance, nearer = float(shares[has_both].mean()), float((within < beyond)[has_both].mean())
    distance_ratio = float(np.median(within[has_both] / beyond[has_both].clip(np.finfo(np.float64).tiny)))
    is_near = distance_ratio <= _LARGEST_DISTANCE_RATIO or (
        distance_ratio <= _LARGEST_RATIO_OF_SMALL_GROUPS and chance <= _SHARE_OF_SMALL_GROUPS
    )
    return nearer - chance >= _LEAST_EXCESS * (1 - chance) and is_near


def _codes(values: np.ndarray) -> np.ndarray | None:
    """Return codes from 0 on for text or whole numbers with enough distinct values and repeats; otherwise None."""
    if is_real(values):
        return None
    distinct, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    repeated = counts[counts > 1].sum()
    return None if distinct.size < _FEWEST_VALUES or repeated < values.size / 2 else codes


def _may_be_classes(y: np.ndarray) -> bool:
    return label_type(y) != "numbers" and np.unique(y).size <= y.size / 2


def _whole_groups(codes: np.ndarray) -> np.ndarray:
    """Return the sorted positions of the rows that are compared: groups in random order, the last one cut short.

    Groups are whole, but for long ones: their first rows are taken, neighbours in the file, so that all chosen rows
    cannot come from one or two groups.
    """
    counts = np.bincount(codes)
    order = np.random.default_rng(0).permutation(counts.size)
    rank = np.empty(order.size, dtype=np.intp)
    rank[order] = np.arange(order.size)
    by_group = np.argsort(rank[codes], kind="stable")
    first = np.concatenate([[0], np.cumsum(counts[order])[:-1]])  # place of the first row of each group
    place_in_group = np.arange(codes.size) - np.repeat(first, counts[order])
    most = _MOST_ROWS_COMPARED // min(counts.size, _FEWEST_VALUES_COMPARED)
    return np.sort(by_group[place_in_group < most][:_MOST_ROWS_COMPARED])


def _distances(rows: Rows) -> np.ndarray:
    """Return the Euclidean distances, of shape (n, n), between rows scaled to length 1."""
    values = _arrays.stored_values(rows)
    is_signed = bool(values.min(initial=0) < 0)
    rows = _arrays.as_rows(rows, np.float64)
    if not is_signed:
        rows = _arrays.map_values(rows, np.sqrt)
    product = rows @ rows.T
    product = _arrays.to_dense(product)
    lengths = np.sqrt(np.diagonal(product).clip(np.finfo(np.float64).tiny))
    return np.sqrt((2 - 2 * product / lengths[:, None] / lengths[None, :]).clip(0))
