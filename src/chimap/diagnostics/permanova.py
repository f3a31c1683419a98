"""PERMANOVA in the space of a kernel: do groups of rows differ, by more than permuted rows would?

Rows are vectors z about their mean whose products are the kernel. A term of the formula has orthonormal columns Q,
which are orthogonal to the mean and to the terms before it, and

    SS = |Q'Z|^2 = trace(Q'G Q),    F = (SS / df) / (SS_residual / df_residual),    R2 = SS / SS_total,    G = Z Z':

sequential sums of squares, as of ``adonis2(by = "terms")`` of vegan. Each term is tested by permuting the rows without
what the terms before it explain (Freedman and Lane, 1983), within strata: B permutations are one product of Z' with the
columns in B orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from chimap._errors import InputError
from chimap._formatting import number, one_line, percent
from chimap._messages import Message
from chimap._progress import Progress
from chimap._validation import DataError, check_positive
from chimap.diagnostics.answer import Answer
from chimap.diagnostics.coordinates import KernelCoordinates, RowsInKernel, permuted_squares, square_lengths
from chimap.diagnostics.difference import TwoGroups, two_groups
from chimap.diagnostics.formula import Design, DesignTerm, columns_in, design_of_category, terms_of
from chimap.diagnostics.metadata import Data, Metadata, columns_of, complete_rows, opened
from chimap.kernels import Kernel
from chimap.reports.figures import BAD, GOOD, drawing, horizontal_bars, to_svg
from chimap.reports.section import Figure, Section, Table, folded, text_table
from chimap.selection.shuffles import Shuffles, p_value

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap.models.predictor import Predictor

FloatOrArray = TypeVar("FloatOrArray", float, np.ndarray)


@dataclass(frozen=True)
class TestedTerm:
    """A line of the table: a term, and how much of the sum of squares it explains.

    Parameters
    ----------
    name : str
        The term.
    df : int
        Degrees of freedom.
    ss : float
        Sum of squares, sequential: what it adds to the terms before it.
    r2 : float
        Its share of the total sum of squares.
    f : float
        Pseudo-F: the mean square of the term divided by that of the residuals.
    p : float
        Share of permutations with as large an F, the rows as they are included. NaN for covariates that no
        permutation within strata changes.
    is_covariate : bool
        Whether it was taken out before the terms of the formula.
    """

    name: str
    df: int
    ss: float
    r2: float
    f: float
    p: float
    is_covariate: bool = False


@dataclass(frozen=True)
class Dispersion:
    """Whether the groups of a term are spread alike: a test of the distances to their means (PERMDISP).

    A difference in spread, and not in place, may be what PERMANOVA finds, above all with groups of other sizes.

    Parameters
    ----------
    term : str
        The term.
    groups : tuple of str
        Its levels.
    counts : tuple of int
        Rows of each.
    distances : tuple of float
        Mean distance of the rows of each group to the mean row of the group, times sqrt(n / (n - 1)), as
        ``betadisper(bias.adjust = TRUE)`` of vegan: a mean of few rows lies too close to them.
    f : float
        F of the distances between groups.
    p : float
        Share of permutations with as large an F.

    References
    ----------
    Anderson, Distance-based tests for homogeneity of multivariate dispersions (2006). Stier, Geange, Hanson and Bolker,
    Predator density and timing of arrival affect reef fish community assembly (2013), for the factor.
    """

    term: str
    groups: tuple[str, ...]
    counts: tuple[int, ...]
    distances: tuple[float, ...]
    f: float
    p: float

    @property
    def in_words(self) -> str:
        """The test, and the groups that are spread most and least."""
        order = np.argsort(self.distances)
        most, least = order[-1], order[0]
        return (
            f"F = {number(self.f, 3)}, p = {number(self.p, 3)}: {number(self.distances[most], 3)} in "
            f"{one_line(self.groups[most])}, {number(self.distances[least], 3)} in {one_line(self.groups[least])}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Permanova(Answer):
    """A permutational analysis of variance in the space of a kernel.

    Parameters
    ----------
    formula : str
        The formula.
    terms : tuple of TestedTerm
        Its terms in their order, covariates first.
    residual_df : int
        Degrees of freedom of what no term explains.
    residual_ss, total_ss : float
        Sums of squares of what no term explains, and about the mean.
    dispersions : tuple of Dispersion
        A test for each category of the formula.
    difference : TwoGroups or None
        How two groups differ, and by which bins.
    **about
        What every ``Answer`` holds.
    """

    kind: ClassVar[str] = "permanova"

    formula: str
    terms: tuple[TestedTerm, ...]
    residual_df: int
    residual_ss: float
    total_ss: float
    dispersions: tuple[Dispersion, ...]
    difference: TwoGroups | None

    @property
    def sentence(self) -> str:
        """What the first term of the formula explains, and whether by more than chance."""
        first = next(term for term in self.terms if not term.is_covariate)
        given = [term.name for term in self.terms if term.is_covariate]
        after = f", given {', '.join(given)}" if given else ""
        return (
            f"{first.name} explains {percent(first.r2)} of the variation{after}: F = {number(first.f, 3)}, "
            f"p = {number(first.p, 3)}."
        )

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the table of terms as text: its heads and lines, those of residuals and total last."""
        lines: list[tuple[str, ...]] = [
            (term.name, f"{term.df:,}", number(term.ss), percent(term.r2), number(term.f), number(term.p, 3))
            for term in self.terms
        ]
        rest, total = self.residual_ss, self.total_ss
        df = self.residual_df + sum(term.df for term in self.terms)
        lines.append(("residuals", f"{self.residual_df:,}", number(rest), percent(rest / (total or 1.0)), "", ""))
        lines.append(("total", f"{df:,}", number(total), percent(1.0), "", ""))
        return ("term", "df", "sum of squares", "R²", "F", "p"), lines


def permanova(
    X: Data,
    formula: str,
    metadata: Metadata = None,
    *,
    covariates: str | Sequence[str] | None = None,
    strata: str | np.ndarray | None = None,
    between: tuple[str, str] | None = None,
    kernel: str | Kernel = "chi2",
    normalize: str | None = "l1",
    gamma: float | str = "mean",
    model: Predictor | BaseEstimator | None = None,
    permutations: int = 999,
    landmarks: int | None = None,
    memory: str | int = "1GiB",
    random_state: int = 0,
    progress: Progress | None = None,
) -> Permanova:
    """Test whether rows differ by columns of their metadata, in the space of a kernel.

        F = (SS / df) / (SS_residual / df_residual),    R2 = SS / SS_total,

    with sequential sums of squares of the kernel about its mean: each term explains what those before it do not, as
    ``adonis2(by = "terms")`` of vegan. With one term, F and R2 are those of scikit-bio's ``permanova`` of the distances
    sqrt(K(x, x) + K(y, y) - 2 K(x, y)). The rows without what the terms before it explain are permuted for each term.

    Parameters
    ----------
    X : array, sparse matrix, data frame, path or Source of n rows
        The counts.
    formula : str
        Terms of columns of the metadata: ``"site + age"``, ``"site:age"`` for an interaction, ``"site * age"`` for
        both and their interaction. Text is a category and numbers are numbers; ``C(year)`` is a category.
    metadata : data frame, mapping, path or None, default=None
        Where the columns are: values in the order of the rows; a table joined by ids; None for columns of X.
        Rows without a value are left out.
    covariates : str or sequence of str, default=None
        Columns, or terms, that are taken out first.
    strata : str or array of shape (n,), default=None
        Column, or values, within which rows are permuted, such as subjects.
    between : tuple of two str, default=None
        Two groups of the first category of the formula whose difference is shown by bin. None takes those of a
        category with two.
    kernel : str or Kernel, default="chi2"
        The kernel. With ``"intersection"`` of shares D^2 is twice the dissimilarity of Bray and Curtis.
    normalize : str or None, default="l1"
        Normalisation of the rows: "l1" makes shares.
    gamma : float or str, default="mean"
        Bandwidth of exponential kernels.
    model : fitted model or None, default=None
        Takes the kernel and the normalisation of a model instead.
    permutations : int, default=999
        Number of permutations.
    landmarks : int or None, default=None
        Landmarks that stand for the rows; None for the exact kernel of up to 4,096 rows, and 512 landmarks of more.
    memory : str or int, default="1GiB"
        Memory of the coordinates.
    random_state : int, default=0
        Seed of permutations and landmarks.
    progress : Progress or None, default=None
        Informed of each stage and step.

    Returns
    -------
    Permanova
        The table of terms, tests of dispersion, and the difference of two groups.

    Raises
    ------
    DataError
        If a column is missing or constant, if a term adds nothing to those before it, or if no permutation within
        strata changes it.

    References
    ----------
    Anderson, A new method for non-parametric multivariate analysis of variance (2001). McArdle and Anderson, Fitting
    multivariate models to community data (2001). Freedman and Lane, A nonstochastic interpretation of reported
    significance levels (1983).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(5, (40, 6))
    >>> X[:20, 2] += 4
    >>> found = permanova(X, "site + age", {"site": ["a"] * 20 + ["b"] * 20, "age": rng.random(40)}, permutations=199)
    >>> [(term.name, term.df, term.p < 0.05) for term in found.terms], str(found.difference.bins[0])
    ([('site', 1, True), ('age', 1, False)], 'bin 2')
    """
    check_positive(permutations, "permutations", integer=True)
    first, asked, roles = covariate_terms(covariates), terms_of(formula), columns_asked(formula, covariates, strata)
    machine = None if model is None else getattr(model, "fitted", model).exact
    source = opened(X, [name for names in roles.values() for name in names], machine)
    given = {} if strata is None or isinstance(strata, str) else {"strata": strata}
    source, table, notes = complete_rows(source, columns_of(source, roles, metadata, given))
    values = dict(zip(table.names, table.values, strict=True))
    within = None if strata is None else values[strata if isinstance(strata, str) else "strata"].data
    design, shuffles = Design.of(first, asked, table), Shuffles.within(within, source.n_rows)
    notes += design.notes + _notes_on_orders(design, shuffles, permutations)
    categories = [term for term in design.terms if term.levels is not None and not term.is_covariate]
    groups = _groups(between, categories)
    with progress or Progress() as shown:
        rows = RowsInKernel.of(source, machine, kernel, normalize, gamma, random_state)
        coordinates = KernelCoordinates.of(rows, landmarks, memory, random_state, shown)
        Z, drawn = coordinates.Z, (shuffles, permutations, random_state, shown)
        shown.stage("permuting", permutations * (1 + len(categories) + (groups is not None)), "permutations")
        terms, residual, total = table_of_terms(design, Z, *drawn)
        spreads = tuple(dispersion_of(term, Z, *drawn) for term in categories)
        difference = None
        if groups is not None:
            difference = two_groups(rows, coordinates, *groups, within, permutations, random_state, shown)
    settings = {
        "formula": formula,
        "covariates": ", ".join(columns_in(first)) or None,
        "strata": strata if strata is None or isinstance(strata, str) else "given",
        "permutations": permutations,
        "random_state": random_state,
    }
    data = rows.facts() | {"rows left out": source.n_left_out or None, "landmarks": coordinates.n_landmarks}
    return Permanova(
        formula,
        terms,
        design.residual_df,
        residual,
        total,
        spreads,
        difference,
        data=data,
        settings=settings,
        notes=notes,
    )


def columns_asked(
    formula: str, covariates: str | Sequence[str] | None, strata: str | np.ndarray | None
) -> dict[str, list[str]]:
    """Return the columns that are named, by the parameter that names them."""
    return {
        "covariates": columns_in(covariate_terms(covariates)),
        "formula": columns_in(terms_of(formula)),
        "strata": [strata] if isinstance(strata, str) else [],
    }


def covariate_terms(covariates: str | Sequence[str] | None) -> list[tuple[str, ...]]:
    """Return the terms of covariates: names in a list or a text with commas, or a formula."""
    if covariates is None:
        return []
    return terms_of(covariates.replace(",", "+") if isinstance(covariates, str) else "+".join(covariates))


def _notes_on_orders(design: Design, shuffles: Shuffles, n_permutations: int) -> tuple[str, ...]:
    """Return what to say of terms that few orders change. Raise DataError for a term that none does."""
    notes = []
    for term in design.terms:
        if shuffles.leave(term.columns):
            if term.is_covariate:
                notes.append(f"{term.name} is the same within each stratum: it is taken out, and not tested.")
                continue
            raise DataError(
                Message(
                    "{formula}: every stratum of {strata} has one value of {!r}, so that no permutation within strata "
                    "changes it. Leave {strata} out after taking the mean of each stratum's rows, or test terms that "
                    "vary within strata.",
                    term.name,
                )
            )
        if term.codes is not None and (n := shuffles.n_different(term.codes)) <= n_permutations:
            notes.append(f"Permutations give {term.name} {n:,.0f} different orders, so that p is at least {1 / n:.2g}.")
    return tuple(notes)


def _groups(between: tuple[str, str] | None, categories: list[DesignTerm]) -> tuple[DesignTerm, tuple[str, str]] | None:
    """Return the category and the two of its groups whose difference is shown; None for none."""
    if between is not None:
        if not categories:
            raise InputError(Message("{between} names groups, but no term of {formula} is a category: C(name) is one."))
        return categories[0], between
    pairs = (term for term in categories if term.levels is not None and term.levels.size == 2)
    term = next(pairs, None)
    return None if term is None or term.levels is None else (term, (str(term.levels[0]), str(term.levels[1])))


def table_of_terms(
    design: Design, Z: np.ndarray, shuffles: Shuffles, n_permutations: int, seed: int, progress: Progress
) -> tuple[tuple[TestedTerm, ...], float, float]:
    """Return the terms for rows Z (n, r) about their mean, and the sums of squares of the residuals and of all.

    Examples
    --------
    >>> from chimap.diagnostics.formula import design_of_category
    >>> design = design_of_category("site", np.array(["a", "b"]), np.array([0, 0, 1, 1]))
    >>> Z = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> lines, residual, total = table_of_terms(design, Z, Shuffles.within(None, 4), 9, 0, Progress())
    >>> round(lines[0].ss, 9), round(lines[0].f, 9), round(lines[0].r2, 9)
    (9.0, 18.0, 0.9)
    """
    Q, left = design.columns, design.residual_df
    ends = np.cumsum([term.df for term in design.terms]).tolist()
    total, squares = float(square_lengths(Z).sum()), square_lengths(Q.T @ Z)
    residual = max(total - float(squares.sum()), 0.0)
    starts = [0, *ends[:-1]]
    permuted = permuted_squares(Z, Q, shuffles, n_permutations, [seed, 0], progress, starts)
    lines = []
    for i, term in enumerate(design.terms):
        own = slice(starts[i], ends[i])
        ss, rest = float(squares[own].sum()), total - float(squares[: own.start].sum())
        f, p = float(_f(ss, term.df, residual, left)), np.nan
        if not shuffles.leave(term.columns):
            of_term = permuted[:, i, own].sum(axis=1)
            p = p_value(f, _f(of_term, term.df, rest - permuted[:, i].sum(axis=1), left))
        lines.append(TestedTerm(term.name, term.df, ss, ss / (total or 1.0), f, p, term.is_covariate))
    return tuple(lines), residual, total


def _f(ss: FloatOrArray, df: int, residual: FloatOrArray, residual_df: int) -> FloatOrArray:
    """Return the mean square of a term divided by that of the residuals."""
    return (ss / df) / np.maximum(residual / residual_df, np.finfo(np.float64).tiny)


def dispersion_of(
    term: DesignTerm, Z: np.ndarray, shuffles: Shuffles, n_permutations: int, seed: int, progress: Progress
) -> Dispersion:
    """Return the test of the distances of rows to the mean rows of their groups."""
    assert term.levels is not None
    assert term.codes is not None
    counts, distances = np.bincount(term.codes), np.empty(Z.shape[0])
    for group, n in enumerate(counts):
        own = term.codes == group
        about = Z[own] - Z[own].mean(axis=0, dtype=np.float64)
        distances[own] = np.sqrt(square_lengths(about) * n / max(1, n - 1))
    means = np.bincount(term.codes, distances) / counts
    design = design_of_category(term.name, term.levels, term.codes)
    about_mean = (distances - distances.mean())[:, None]
    lines, _, _ = table_of_terms(design, about_mean, shuffles, n_permutations, seed + 1, progress)
    names, sizes = tuple(map(str, term.levels)), tuple(map(int, counts))
    return Dispersion(term.name, names, sizes, tuple(map(float, means)), lines[0].f, lines[0].p)


# --- the sections of the page


def terms(found: Permanova) -> Section:
    """Return the table of terms."""
    heads, lines = found.table()
    strata = found.settings.get("strata")
    within = "" if strata is None else f" within strata ({strata})"
    covariates = [term.name for term in found.terms if term.is_covariate]
    given = f" Covariates come first: {', '.join(covariates)}." if covariates else ""
    return Section(
        "Terms",
        "What each term explains of the squared distances between rows that the terms before it do not (sequential "
        f"sums of squares).{given} p is the share of {found.settings['permutations']:,} permutations{within} of the "
        "rows, without what earlier terms explain, with as large an F.",
        (Figure(lambda: explained_figure(found)),),
        (Table(["Term", "Df", "Sum of squares", *heads[3:]], lines, ("text", "extra", "extra", *["number"] * 3)),),
        " ".join(found.notes),
        lines={"kernel": str(found.data["kernel"]), "terms": text_table([heads, *lines])},
        lead=found.sentence,
        layout="stack",
    )


def explained_figure(found: Permanova) -> str:
    """Draw the share of the variation that each term explains."""
    names, shares = [term.name for term in found.terms], np.array([term.r2 for term in found.terms])
    told = [f"{one_line(name)} {percent(share)}" for name, share in zip(names, shares, strict=True)]
    texts = [percent(term.r2) + ("" if np.isnan(term.p) else f", p = {number(term.p, 2)}") for term in found.terms]
    with drawing(380, 34 * len(names)) as (figure, axes):
        horizontal_bars(axes, names, shares, texts, room=1.5)
        return to_svg(figure, "permanova-terms", f"Share of the variation that each term explains: {'; '.join(told)}.")


def dispersion(found: Permanova) -> Section | None:
    """Return the tests of dispersion."""
    if not found.dispersions:
        return None
    tables: list[Table] = []
    for each in found.dispersions:
        pairs = sorted(zip(each.groups, each.counts, each.distances, strict=True), key=lambda line: -line[2])
        lines = [(one_line(group), f"{n:,}", number(distance)) for group, n, distance in pairs]
        caption = f"{each.term}: F = {number(each.f, 3)}, p = {number(each.p, 3)}"
        heads, kinds = ("Group", "Rows", "Mean distance to its mean row"), ("text", "extra", "number")
        tables += folded(heads, lines, "groups", kinds, caption=caption, whole=caption)
    return Section(
        "Dispersion",
        "Are the groups spread alike? Where they are not, p of the terms may tell of spread and not of place, above "
        "all with groups of unequal numbers of rows.",
        tables=tuple(tables),
        lines={f"spread of {each.term}": each.in_words for each in found.dispersions},
        layout="stack",
    )


_BINS_SHOWN, _BINS_IN_TERMINAL = 15, 10


def difference(found: Permanova) -> Section | None:
    """Return the difference of two groups, with the bins that make most of it."""
    two = found.difference
    if two is None:
        return None
    a, b = map(one_line, two.groups)
    more_in = two.more_in(_BINS_IN_TERMINAL)
    told = [f"{one_line(name, 40)}: {text}" for name, text in zip(two.bins, more_in, strict=False)]
    heads, kinds = ["Bin", f"Mean in {a}", f"Mean in {b}", "Correlation"], ["text", "extra", "extra", "number"]
    lines = [
        [one_line(name), *(number(float(mean), 3) for mean in means), number(float(r), 2)]
        for name, means, r in zip(two.bins, two.means, two.correlations, strict=True)
    ][: 10 * _BINS_SHOWN]
    if two.shares is not None:
        shares = ("Share of MMD²", "number", *map(percent, two.shares))
        for line, share in zip((heads, kinds, *lines), shares, strict=False):
            line.insert(1, share)
    way = (
        "Bins are sorted by their correlation with the witness function, as the kernel is no sum over bins."
        if two.shares is None
        else "The kernel is a sum over bins, so that each has its "
        + ("exact share." if two.is_exact else "share, by a map of each bin with errors below a hundredth of it.")
    )
    return Section(
        f"{a} and {b}",
        f"The mean rows of {two.counts[0]:,} and {two.counts[1]:,} rows have the squared distance "
        f"{number(two.mmd2, 3)} (maximum mean discrepancy, MMD²), p = {number(two.p, 3)}. {way} The correlation is "
        f"that with the witness function: positive for bins that are larger in {a}.",
        (Figure(lambda: difference_figure(two)),),
        folded(heads, lines, "bins", kinds),
        lines={"difference": two.in_words, "bins": "\n".join(told)},
        layout="stack",
    )


def difference_figure(two: TwoGroups) -> str:
    """Draw the bins that make most of the difference, in the colour of the group that has more of them."""
    names = [one_line(name) for name in two.bins[:_BINS_SHOWN]]
    values = (np.abs(two.correlations) if two.shares is None else two.shares)[: len(names)]
    colours = [GOOD if means[0] >= means[1] else BAD for means in two.means[: len(names)]]
    what = "Correlation with the witness function" if two.shares is None else "Share of the difference"
    with drawing(380, 26 * len(names)) as (figure, axes):
        horizontal_bars(axes, names, values, two.more_in(len(names), 20), room=1.6, colours=colours)
        return to_svg(figure, "permanova-bins", f"{what}: {', '.join(names)}.")
