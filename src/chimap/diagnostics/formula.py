"""Formulas of metadata, such as ``site + age``: their terms, and orthonormal columns for what each adds.

The columns of the terms are made orthogonal one term after the other (Gram and Schmidt), after the mean, so that sums
of squares along them are sequential: what a term explains that the terms before it do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.linalg import qr

from chimap._errors import InputError, ParameterError
from chimap._formatting import counted
from chimap._messages import Message, shown
from chimap._validation import DataError
from chimap.data.covariates import unwrapped
from chimap.data.source import CovariateTable

_INTERACTION = re.compile(r"(?<!:):(?!:)")  # "::" stands between a table and its column
_NEW_SHARE = 1e-7  # of the length of a column, below which what it adds to the columns before is rounding


def terms_of(formula: str) -> list[tuple[str, ...]]:
    """Return the terms of a formula, each the names of the columns whose product it is.

    ``a + b`` has two terms, ``a:b`` is the interaction of two columns, and ``a * b`` stands for ``a + b + a:b``.

    Raises
    ------
    InputError
        For a formula without a term, with an empty one, or with a term twice.

    Examples
    --------
    >>> terms_of("site + age"), terms_of("site * C(year)")
    ([('site',), ('age',)], [('site',), ('C(year)',), ('site', 'C(year)')])
    """
    terms: list[tuple[str, ...]] = []
    for word in formula.split("+"):
        factors = [tuple(name.strip() for name in _INTERACTION.split(part)) for part in word.split("*")]
        if not all(name for names in factors for name in names):
            raise ParameterError("formula", formula, "columns joined by '+', ':' or '*', such as 'site + age'")
        for size in range(1, len(factors) + 1):
            terms += [sum(some, ()) for some in combinations(factors, size)]
    repeated = [term for i, term in enumerate(terms) if term in terms[:i]]
    if repeated:
        raise InputError(Message("{formula} has the term {!r} twice: leave one out.", ":".join(repeated[0])))
    return terms


def columns_in(terms: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the columns that terms name, each once, in their order.

    >>> columns_in([("site",), ("age",), ("site", "age")])
    ['site', 'age']
    """
    return list(dict.fromkeys(name for term in terms for name in term))


@dataclass(frozen=True, eq=False)
class DesignTerm:
    """A term of a design.

    Parameters
    ----------
    name : str
        Its name, such as "site" or "site:age".
    columns : ndarray of shape (n, df)
        Orthonormal columns: what it adds to the mean and the terms before it.
    levels : ndarray of text, or None
        The levels of a single category; None for numbers and interactions.
    codes : ndarray of shape (n,), or None
        The level of each row, as its place in ``levels``.
    is_covariate : bool
        Whether it is taken out before the terms that are asked about.
    """

    name: str
    columns: np.ndarray
    levels: np.ndarray | None
    codes: np.ndarray | None
    is_covariate: bool

    @property
    def df(self) -> int:
        """Degrees of freedom: the columns that it adds."""
        return int(self.columns.shape[1])


@dataclass(frozen=True, eq=False)
class Design:
    """The terms of a formula for n rows, orthogonal to the mean and to each other.

    Parameters
    ----------
    terms : tuple of DesignTerm
        Covariates first, then the terms of the formula, in their order.
    notes : tuple of str
        What the user should know of them.
    """

    terms: tuple[DesignTerm, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, covariates: Sequence[tuple[str, ...]], formula: Sequence[tuple[str, ...]], table: CovariateTable
    ) -> Design:
        """Return the design of covariates and terms for the rows of a table without gaps.

        Raises
        ------
        DataError
            If a term is constant, adds nothing to those before it, or leaves no degree of freedom to the residuals.
        """
        values = dict(zip(table.words or table.names, table.values, strict=True))
        n, taken = table.n_rows, np.full((table.n_rows, 1), 1 / np.sqrt(table.n_rows))
        terms: list[DesignTerm] = []
        notes: list[str] = []
        for names in [*covariates, *(term for term in formula if term not in covariates)]:
            for name in names:
                _check_varies(name, values[name])
            raw = _columns_of([values[name] for name in names], n)
            added = _new_directions(raw, taken)
            name, before = ":".join(map(_plain, names)), [term.name for term in terms]
            if not added.shape[1]:
                raise DataError(
                    Message(
                        "{formula}: {!r} tells nothing that {} does not: leave one of them out.",
                        name,
                        " and ".join(map(repr, before)) or "the mean",
                    )
                )
            is_category = len(names) == 1 and values[names[0]].dtype.kind == "U"
            levels, codes = np.unique(values[names[0]].data, return_inverse=True) if is_category else (None, None)
            if levels is not None and added.shape[1] < levels.size - 1:
                told = f"{added.shape[1]:,} of its {levels.size - 1:,} degrees of freedom"
                notes.append(f"{name!r} shares levels with terms before it: {told} are left.")
            terms.append(DesignTerm(name, added, levels, codes, names in covariates))
            taken = np.hstack([taken, added])
            if taken.shape[1] >= n:
                raise DataError(_too_many(name, levels, n))
        return cls(tuple(terms), tuple(notes))

    @property
    def n_rows(self) -> int:
        """Number of rows, n."""
        return int(self.terms[0].columns.shape[0])

    @property
    def residual_df(self) -> int:
        """Degrees of freedom that the mean and all terms leave."""
        return self.n_rows - 1 - sum(term.df for term in self.terms)

    @property
    def columns(self) -> np.ndarray:
        """The columns of all terms side by side, (n, sum of df)."""
        return np.hstack([term.columns for term in self.terms])


def design_of_category(name: str, levels: np.ndarray, codes: np.ndarray) -> Design:
    """Return the design of a single category."""
    indicators = (codes[:, None] == np.arange(levels.size)).astype(np.float64)
    mean = np.full((codes.size, 1), 1 / np.sqrt(codes.size))
    return Design((DesignTerm(name, _new_directions(indicators, mean), levels, codes, False),), ())


def _plain(name: str) -> str:
    return unwrapped(name)[0].rpartition("::")[2]


def _check_varies(name: str, values: np.ma.MaskedArray) -> None:
    """Raise DataError for a column that has one value in all rows."""
    different = np.unique(values.data)
    if different.size < 2:
        value = f"{different[0]:g}" if values.dtype.kind == "f" else repr(str(different[0]))
        kind = "number" if values.dtype.kind == "f" else "group"
        raise DataError(
            Message(
                "{formula}: {!r} is {} in all {} rows, one {}: there is nothing to compare. Leave it out, or check the "
                "column.",
                name,
                value,
                f"{values.size:,}",
                kind,
            )
        )


def _columns_of(factors: list[np.ma.MaskedArray], n: int) -> np.ndarray:
    """Return the products of the columns of factors, (n, k): indicators of levels, and standardised numbers."""
    product = np.ones((n, 1))
    for values in factors:
        if values.dtype.kind == "U":
            levels, codes = np.unique(values.data, return_inverse=True)
            if product.shape[1] * levels.size > max(n, 2):
                raise DataError(_too_many(shown(levels[:3].tolist()), levels, n))
            own = (codes[:, None] == np.arange(levels.size)).astype(np.float64)
        else:
            own = ((values.data - values.data.mean()) / values.data.std())[:, None]
        product = (product[:, :, None] * own[:, None, :]).reshape(n, -1)
    return product


def _new_directions(columns: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (n, df) of what columns add to the orthonormal columns ``taken``."""
    lengths = np.linalg.norm(columns, axis=0)
    for _ in range(2):  # once leaves rounding of the size of what was taken out
        columns = columns - taken @ (taken.T @ columns)
    basis, triangle, _ = qr(columns / np.where(lengths > 0, lengths, 1), mode="economic", pivoting=True)
    return np.ascontiguousarray(basis[:, np.abs(np.diag(triangle)) > _NEW_SHARE])


def _too_many(name: str, levels: np.ndarray | None, n: int) -> Message:
    of_levels = "" if levels is None else f" ({counted(levels.size, 'level')})"
    return Message(
        "{formula}: its terms up to {!r}{} take every degree of freedom of {} rows, so that nothing is left to compare "
        "with. Name fewer terms, or columns with fewer levels; numbers with a word among them are levels.",
        name,
        of_levels,
        f"{n:,}",
    )
