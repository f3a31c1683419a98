"""Which rows of a pool to label next: those that would tell the most about all of it; or to sequence deeper.

Outputs of the pool have the covariance of ridge as a Gaussian process, given the labelled rows l (Rasmussen and
Williams, 2006, sec. 2.2),

    C = K_pp - K_pl (K_ll + alpha)^-1 K_lp,

whatever their labels. A set S that is labelled removes trace-like uncertainty

    G(S) = sum_x w_x [C_xS (C_SS + alpha)^-1 C_Sx],    w_x = 1 / (1 + (m_x / median m)^2),

where m_x is the margin between the two largest scores of row x: what is certain needs no label. Rows are chosen one
after the other, and C is that of all rows chosen before: two copies are never both worth their cost. Without weights,
cells of the blood are no better than random ones from 80 labels on; the smallest margins alone are worse there at
first, since they are alike (``benchmarks/accuracy/suggest.py`` has what the weights gain).

References
----------
Cohn, Neural network exploration using optimal experiment design, 1996. Seo, Wallat, Graepel and Obermayer, Gaussian
process regression: active data selection and test point rejection, 2000.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from chimap import _arrays
from chimap._catalogue import Catalogue
from chimap._errors import InputError
from chimap._formatting import number, percent, words
from chimap._messages import Message
from chimap._threads import threads
from chimap._types import ArrayLike, Rows
from chimap._validation import DataError
from chimap.data import Source
from chimap.data.split import name_of_whole
from chimap.data.views import ChosenRows
from chimap.diagnostics.answer import Answer
from chimap.models.answers import ClassAnswers, class_scores
from chimap.models.model import Model
from chimap.models.row_values import RowValues
from chimap.readers import open_source
from chimap.reports.figures import GOOD, drawing, to_svg
from chimap.reports.rows import row_names
from chimap.reports.section import Figure, Section, folded, text_table

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_MOST_LABELLED, _MOST_OF_POOL = 4000, 2000  # rows whose kernel values are in memory together
_FREE = 1e4  # variance of the intercept, which has no prior, over the scatter of a row


class Words(NamedTuple):
    """How a rule is told: what is asked, why rows are chosen, what they take away, and the axis of their number."""

    title: str
    about: str
    removed: str
    axis: str


class Suggested(NamedTuple):
    """Places of the units that are chosen, the share removed by each and all before it, outputs, facts and words."""

    order: Sequence[int]
    removed: np.ndarray
    outputs: np.ndarray
    facts: Mapping[str, object]
    words: Words


@dataclass(frozen=True, eq=False, kw_only=True)
class Suggestion(Answer):
    """Rows or groups of a pool in the order in which to label them, or to sequence them deeper.

    See ``Answer`` for the other fields.

    Parameters
    ----------
    chosen : tuple of str
        Names of the rows or groups, the first one first.
    places : tuple of ndarray of int
        Places of their rows in the pool.
    removed : ndarray of shape (n,)
        Share of the uncertainty about the pool that is gone once each and all before it are labelled, or are deeper.
    answers : tuple
        What the model answers today; None for groups.
    are_groups : bool
        Whether groups are chosen.
    words : Words
        What was asked, in words.
    """

    kind: ClassVar[str] = "suggestion"

    chosen: tuple[str, ...]
    places: tuple[np.ndarray, ...]
    removed: np.ndarray
    answers: tuple[object, ...]
    are_groups: bool
    words: Words

    @property
    def noun(self) -> str:
        """What is chosen."""
        return "groups" if self.are_groups else "rows"

    @property
    def sentence(self) -> str:
        """How much the suggestion tells."""
        return f"{len(self.chosen)} {self.noun} remove {percent(self.removed[-1])} of {self.words.removed}"

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return heads and cells of the table."""
        heads = ("No.", self.noun[:-1].capitalize(), "Rows" if self.are_groups else "Answer today", "Removed")
        told = [f"{rows.size:,}" for rows in self.places] if self.are_groups else [words(one) for one in self.answers]
        listed = zip(self.chosen, told, self.removed, strict=True)
        return heads, [(f"{i}", name, about, percent(share)) for i, (name, about, share) in enumerate(listed, 1)]


def suggest(
    model: BaseEstimator,
    pool: object,
    n: int = 20,
    *,
    groups: ArrayLike | str | None = None,
    cost: ArrayLike | str | None = None,
    labelled: object = None,
    deeper: float | None = None,
    random_state: int = 0,
) -> Suggestion:
    """Return the rows of a pool that are worth a label, or more counts, the first one first; see the module.

    Parameters
    ----------
    model : HistogramClassifier or HistogramRegressor
        A fitted model.
    pool : array, sparse matrix, data frame, path or Source of m rows
        Rows without labels, of which at most 2000 are drawn.
    n : int, default=20
        Number of rows, or of groups, to suggest.
    groups : array of shape (m,) or str, default=None
        The group of each row, or the name of its column: groups are labelled as a whole, such as the cells of a donor.
    cost : array of shape (m,) or str, default=None
        What a label of each row costs, above 0, or the name of its column; a group costs the sum of its rows.
    labelled : rows as ``pool``, default=None
        Rows that have a label. None takes those that an exact machine keeps.
    deeper : float, default=None
        In place of labels, suggest rows of counts to sequence this many times as deep; see ``diagnostics.deeper``.
    random_state : int, default=0
        Seed of the rows that are drawn.

    Returns
    -------
    Suggestion

    Raises
    ------
    DataError
        If the pool is smaller than n, a cost is not above 0, or the model keeps no rows and ``labelled`` is not given;
        with ``deeper``, if rows are no counts.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier("exp-chi2", features="exact", alpha=0.1).fit(X[:100], y[:100])
    >>> found = suggest(model, X[100:400], n=5)
    >>> len(found.chosen), bool(found.removed[0] < found.removed[-1] < 1)
    (5, True)
    """
    fitted: Model | None = getattr(getattr(model, "exact_", None), "fitted", None)
    if fitted is None:
        raise InputError(f"a suggestion takes a fitted HistogramClassifier or HistogramRegressor; got {model!r}.")
    aside = [name for name in (groups, cost) if isinstance(name, str)]
    source = open_source(pool, like=model, aside=aside)
    rng = np.random.default_rng(random_state)
    drawn = np.sort(rng.permutation(source.n_rows)[:_MOST_OF_POOL])
    units, names = _units(source, groups, drawn)
    noun = "rows" if groups is None else "groups"
    if not 1 <= n <= len(units):
        raise DataError(Message("{n=}: {} has {:,} {} to choose from.", n, source.name, len(units), noun))
    prices = _prices(source, cost, drawn)
    if deeper is not None and labelled is not None:
        raise InputError(
            Message("{labelled} is for rows to label, and {deeper} for rows that have none: leave one out.")
        )
    rows = ChosenRows(fitted.schema.rows(source), drawn, None)
    with threads(fitted.n_jobs):
        rule, asked = ("label", labelled) if deeper is None else ("deeper", deeper)
        found = RULES[rule](fitted, rows, asked, units, prices, n, rng)
    predicted = np.asarray(fitted.answers.predicted(found.outputs))
    facts = {
        "file": name_of_whole(source.name),
        "rows of the pool": source.n_rows,
        "rows looked at": drawn.size if drawn.size < source.n_rows else None,
        **found.facts,
        "model": f"{type(model).__name__} ({fitted.describe()['kernel']})",
    }
    return Suggestion(
        chosen=tuple(names[i] for i in found.order),
        places=tuple(drawn[units[i]] for i in found.order),
        removed=found.removed,
        answers=tuple(predicted[units[i][0]] if groups is None else None for i in found.order),
        are_groups=groups is not None,
        words=found.words,
        data={name: fact for name, fact in facts.items() if fact is not None},
        settings={"n": n, "deeper": deeper, "random_state": random_state},
    )


def label_next(
    model: Model,
    rows: Source,
    labelled: object,
    units: Sequence[np.ndarray],
    prices: np.ndarray,
    n: int,
    rng: np.random.Generator,
) -> Suggested:
    """Return n units of the rows (m,), each of which has a price, whose labels tell the most about all of them.

    ``labelled`` are rows that have one, see ``suggest``.
    """
    X = rows.take(np.arange(rows.n_rows))
    known = None
    if labelled is not None:
        given = model.schema.rows(open_source(labelled, like=model))
        known = given.take(np.sort(rng.permutation(given.n_rows)[:_MOST_LABELLED]))
    square, n_known = _kernel(rng, model, X, known)
    outputs = model.outputs_of_all(model.preparation(X, 0, rows.name))
    alpha = float(model.learned.alpha or 1.0)
    order, removed = _greedy(_posterior(square, n_known, alpha), alpha, _weights(model, outputs), units, prices, n)
    words = Words(
        "What to label next",
        "In this order: each is chosen for what it removes after all before it. Certain answers count less, and a copy "
        "of a labelled row removes next to nothing.",
        "what is uncertain in the pool",
        "Labelled",
    )
    return Suggested(order, removed, outputs, {"labelled rows": n_known}, words)


RULES: Catalogue[Callable[..., Suggested]] = Catalogue(
    {"label": label_next, "deeper": "chimap.diagnostics.deeper:sequence_deeper"}
)
"""What rows may be suggested for; see ``label_next`` for the arguments."""


def _greedy(
    covariance: np.ndarray, noise: float, weights: np.ndarray, units: Sequence[np.ndarray], prices: np.ndarray, n: int
) -> tuple[list[int], np.ndarray]:
    """Return the places of n units that remove the most weighted variance for their price, and the share removed.

    The covariance (m, m) is that of the outputs of the pool, the noise the variance of a label, and each row has a
    weight and a price, (m,).
    """
    C, total = covariance.copy(), float(weights @ covariance.diagonal())
    left = list(range(len(units)))
    order: list[int] = []
    removed: list[float] = []
    are_rows = all(rows.size == 1 for rows in units)
    for _ in range(n):
        if are_rows:
            rows = np.concatenate([units[i] for i in left])
            gains = (weights @ np.square(C[:, rows])) / (C[rows, rows] + noise) / prices[rows]
        else:
            gains = np.array([weights @ _taken(C, units[i], noise)[1] / prices[units[i]].sum() for i in left])
        order.append(left.pop(int(np.argmax(gains))))
        C -= _taken(C, units[order[-1]], noise)[0]
        removed.append(1 - float(weights @ C.diagonal()) / total)
    return order, np.array(removed)


def _taken(C: np.ndarray, rows: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return what labels of some rows take from the covariance (m, m), and its diagonal (m,)."""
    inner = C[np.ix_(rows, rows)] + noise * np.eye(rows.size)
    across = C[:, rows]
    half = solve_triangular(cho_factor(inner, lower=True)[0], across.T, lower=True)
    return half.T @ half, np.square(half).sum(axis=0)


def _kernel(rng: np.random.Generator, model: Model, X: Rows, known: Rows | None) -> tuple[np.ndarray, int]:
    """Return kernel values among labelled rows and then those of the pool, and the number of labelled ones."""
    kernel = model.features.row_kernel
    if known is not None:
        values, n_known = RowValues.of(model, _arrays.stack_rows([known, X])), known.shape[0]
    elif kernel is not None:
        n_rows = int(model.coef.shape[0])
        n_known = min(n_rows, _MOST_LABELLED)
        values = RowValues.of(model, X, kernel.take(np.sort(rng.permutation(n_rows)[:n_known])))
    else:
        raise DataError(
            Message(
                "the model keeps none of the rows that it was fitted on, so it does not know what is known: give them "
                "as {labelled}."
            )
        )
    return values.values if values.is_matrix else values.values @ values.values.T, n_known


def _posterior(square: np.ndarray, n_known: int, alpha: float) -> np.ndarray:
    """Return the covariance C of the pool, the rows from ``n_known`` on, with a free intercept."""
    square = square + _FREE * max(float(square.diagonal().mean()), np.finfo(np.float64).tiny)
    inner = square[:n_known, :n_known] + alpha * np.eye(n_known)
    across = square[:n_known, n_known:]
    return np.asarray(square[n_known:, n_known:] - across.T @ cho_solve(cho_factor(inner, lower=True), across))


def _weights(model: Model, outputs: np.ndarray) -> np.ndarray:
    """Return how much each row of the pool counts (m,): less, the more certain its answer is."""
    answers = model.answers
    if not isinstance(answers, ClassAnswers):
        return np.ones(len(outputs))
    if answers.is_multilabel:
        margins = np.abs(outputs).mean(axis=1)
    else:
        best = np.partition(class_scores(outputs), -2, axis=1)
        margins = best[:, -1] - best[:, -2]
    return np.asarray(1 / (1 + np.square(margins / max(float(np.median(margins)), 1e-300))))


def _units(source: Source, groups: ArrayLike | str | None, drawn: np.ndarray) -> tuple[list[np.ndarray], list[str]]:
    """Return what is chosen from, as places among the rows that are drawn, and their names."""
    if groups is None:
        return [np.array([i]) for i in range(drawn.size)], [str(name) for name in row_names(source)[drawn]]
    column = source.column(groups) if isinstance(groups, str) else np.asarray(groups)
    if column.shape != (source.n_rows,):
        raise DataError(
            Message("{groups}: expected a group for each of {:,} rows; got {}.", source.n_rows, column.shape)
        )
    names, members = np.unique(column[drawn].astype(str), return_inverse=True)
    return [np.flatnonzero(members == i) for i in range(names.size)], names.tolist()


def _prices(source: Source, cost: ArrayLike | str | None, drawn: np.ndarray) -> np.ndarray:
    if cost is None:
        return np.ones(drawn.size)
    try:
        prices = np.asarray(source.column(cost) if isinstance(cost, str) else cost, dtype=np.float64)
    except ValueError as error:
        raise DataError(Message("{cost}: expected numbers: {}.", error)) from None
    if prices.shape != (source.n_rows,) or not (prices > 0).all():
        raise DataError(Message("{cost}: expected a number above 0 for each of {:,} rows.", source.n_rows))
    return prices[drawn]


def choices(suggestion: Suggestion) -> Section:
    """Return the suggestion as a curve and a table."""
    heads, cells = suggestion.table()
    return Section(
        suggestion.words.title,
        suggestion.words.about,
        (Figure(lambda: curve(suggestion)),),
        folded(heads, cells, suggestion.noun, ("number", "text", "text", "number"), listed=20),
        lines={suggestion.noun: text_table([line[1:] for line in (heads, *cells)])},
        lead=suggestion.sentence,
    )


def curve(suggestion: Suggestion) -> str:
    """Draw the uncertainty that is removed by the number of rows or groups."""
    removed = np.append(0, suggestion.removed)
    with drawing(330, 200) as (figure, axes):
        axes.plot(range(removed.size), 100 * removed, color=GOOD, marker="o", markersize=3)
        axes.set(xlabel=f"{suggestion.words.axis} {suggestion.noun}", ylabel="Uncertainty removed, %", ylim=(0, None))
        axes.grid(axis="y")
        last = f"{len(suggestion.chosen)} {suggestion.noun} remove {number(100 * suggestion.removed[-1], 3)} %"
        return to_svg(figure, "suggestion", f"Uncertainty removed: {last}.")
