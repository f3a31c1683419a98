"""How strengths and numbers of components were chosen: the scores, their figures, and the page of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap._errors import InputError
from chimap._formatting import measure_in_words, number, percent, plain
from chimap._messages import Message
from chimap._types import JSON
from chimap._validation import DataError
from chimap.reports.figures import BAD, GOOD, LINES, MUTED, at_most_one, drawing, log_axis, to_svg
from chimap.reports.page import Page, now, package_versions
from chimap.reports.section import Figure, Section
from chimap.selection.base import SelectionResult
from chimap.selection.sums import SumsModel
from chimap.solvers.sparse import SparsePath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


_MEASURES = {"squared error": "mean held-out squared error", "gcv": "generalised cross-validation error"}
_OTHER_SETTINGS = {"n_components", "gamma", "n_rows"}  # settings that may be chosen together with the strength


@dataclass(frozen=True, eq=False)
class StrengthCurve:
    """Scores over the strength of the penalty.

    Parameters
    ----------
    alphas : array-like of shape (n,)
        The strengths that were tried, positive. The arrays are sorted by them.
    errors : array-like of shape (n,)
        The score at each strength, by default the mean held-out squared error.
    standard_errors : array-like of shape (n,)
        Standard errors of ``errors`` over the folds.
    chosen : float
        The strength that the model uses.
    measure : str, default="mean held-out squared error"
        Name of the score.
    method : str, default="cross-validated"
        How the scores were computed, in words.
    is_searched : bool, default=False
        Whether the strengths come from a search, which continues until it has seen both sides of the best one.

    Raises
    ------
    ValueError
        If the arrays differ in length, are empty, or if a strength is not positive.
    """

    alphas: np.ndarray
    errors: np.ndarray
    standard_errors: np.ndarray
    chosen: float
    measure: str = "mean held-out squared error"
    method: str = "cross-validated"
    is_searched: bool = False

    def __post_init__(self) -> None:
        arrays = [np.asarray(a, np.float64) for a in (self.alphas, self.errors, self.standard_errors)]
        if arrays[0].ndim != 1 or len({a.shape for a in arrays}) != 1 or arrays[0].size == 0:
            shapes = ", ".join(str(a.shape) for a in arrays)
            raise InputError(f"alphas, errors and standard_errors must have one shape (n,), n >= 1; got {shapes}.")
        if not (np.all(arrays[0] > 0) and self.chosen > 0):
            raise InputError("alphas and chosen must be positive: the curve is drawn over their logarithm.")
        order = np.argsort(arrays[0], kind="stable")
        for name, values in zip(("alphas", "errors", "standard_errors"), arrays, strict=True):
            object.__setattr__(self, name, values[order])

    @property
    def error_at_chosen(self) -> float:
        """Error at the chosen strength, interpolated over log(strength) if that strength was not tried."""
        return float(np.interp(np.log(self.chosen), np.log(self.alphas), self.errors))

    @property
    def is_error(self) -> bool:
        """Whether the score is an error, which has no largest value."""
        return self.measure in _MEASURES.values()

    @property
    def at_border(self) -> bool:
        """Whether the chosen strength is the first or the last of at least three that were given, not searched."""
        ends = self.alphas[[0, -1]]
        return (
            not self.is_searched
            and self.alphas.size > 2
            and bool(np.any(np.isclose(self.chosen, ends, rtol=1e-6, atol=0)))
        )

    @classmethod
    def of(cls, result: SelectionResult | None, is_searched: bool = False) -> StrengthCurve | None:
        """Return the curve of a selection, with its other settings fixed at the chosen values.

        Parameters
        ----------
        result : SelectionResult or None
            The selection.
        is_searched : bool, default=False
            Whether the strengths come from a search.

        Returns
        -------
        StrengthCurve or None
            None if there is no selection, or if its measure is a loss other than squared error or the error of
            generalised cross-validation.
        """
        if result is None or (result.measure not in _MEASURES and not result.greater_is_better):
            return None
        for name in _OTHER_SETTINGS & result.settings.keys():
            values = result.settings[name]
            result = result.of(np.flatnonzero(values == values[result.chosen]))
        return cls(
            result.alphas,
            result.means,
            result.standard_errors,
            result.best["alpha"],
            _MEASURES.get(result.measure, f"{measure_in_words(result.measure)} on held-out rows"),
            _chosen_by(result),
            is_searched,
        )

    def as_dict(self) -> JSON:
        """Return strengths, scores and choice as JSON types."""
        names = ("alphas", "errors", "standard_errors", "chosen")
        return {name: plain(getattr(self, name)) for name in names}


def _chosen_by(result: SelectionResult) -> str:
    """Return how the strengths were scored, or the score that decided if it is another one."""
    scores = [name for name in result.settings if name not in {"alpha", "df", *_OTHER_SETTINGS}]
    if result.rule != "gcv" or not scores:
        return result.method
    return f"the strength was chosen by {scores[0].replace('_', ' ')} on held-out rows"


@dataclass(frozen=True, eq=False)
class ComponentScores:
    """Cross-validation scores over the number of principal components and the strength of the penalty.

    Parameters
    ----------
    n_components : ndarray of shape (P,)
        Numbers of components, ascending.
    alphas : ndarray of shape (S,)
        Strengths, ascending.
    r2 : ndarray of shape (P, S)
        Held-out R² of each pair.
    chosen : tuple of int and float
        The number of components and the strength that the model uses.

    Raises
    ------
    ValueError
        If ``r2`` has another shape.
    """

    n_components: np.ndarray
    alphas: np.ndarray
    r2: np.ndarray
    chosen: tuple[int, float]

    @classmethod
    def of(cls, result: SelectionResult | None) -> ComponentScores | None:
        """Return the scores of a selection of components and strength, or None for any other selection.

        Parameters
        ----------
        result : SelectionResult or None
            The selection.
        """
        if result is None or "n_components" not in result.settings:
            return None
        n_components, alphas, places = result.grid("n_components", "alpha")
        best = result.best
        return cls(n_components, alphas, result.r2[places], (best["n_components"], best["alpha"]))

    def __post_init__(self) -> None:
        expected = (np.size(self.n_components), np.size(self.alphas))
        if np.shape(self.r2) != expected:
            raise InputError(
                f"r2 must have shape {expected}, one row per number of components; got {np.shape(self.r2)}."
            )

    def as_dict(self) -> JSON:
        """Return the scores as JSON types."""
        return {name: plain(getattr(self, name)) for name in ("n_components", "alphas", "r2", "chosen")}


def strength_curve(curve: StrengthCurve) -> str:
    """Draw held-out error over the strength (logarithmic), with a band of one standard error and the choice marked."""
    with drawing(350, 230) as (figure, axes):
        low, high = curve.errors - curve.standard_errors, curve.errors + curve.standard_errors
        first, last = min(curve.alphas[0], curve.chosen), max(curve.alphas[-1], curve.chosen)
        margin = max(1.2, (last / first) ** 0.04)
        axes.set(xscale="log", xlim=(first / margin, last * margin))
        if curve.errors.min() > 0 and np.nanmax(curve.errors) > 20 * np.nanmin(curve.errors):
            axes.set_yscale("log", nonpositive="clip")
        axes.axvline(curve.chosen, color=BAD, linewidth=1.2, dashes=(4, 3), zorder=1)
        axes.fill_between(curve.alphas, low, high, color=GOOD, alpha=0.2, linewidth=0)
        axes.plot(curve.alphas, curve.errors, color=GOOD, linewidth=2, marker="o", markersize=4)
        axes.plot([curve.chosen], [curve.error_at_chosen], "o", markersize=9, color=BAD, zorder=5)
        if not curve.is_error:
            at_most_one(axes)
        _label_choice(axes, curve)
        log_axis(axes.xaxis, *axes.get_xlim())
        if axes.get_yscale() == "log":
            log_axis(axes.yaxis, *axes.get_ylim())
        axes.grid(axis="y")
        axes.set(xlabel="strength of the penalty", ylabel=curve.measure)
        alt = (
            f"{curve.measure[0].upper()}{curve.measure[1:]} at {curve.alphas.size} strengths from "
            f"{number(curve.alphas[0])} to {number(curve.alphas[-1])}. The chosen strength is {number(curve.chosen)}, "
            f"with a value of {number(curve.error_at_chosen)}."
        )
        return to_svg(figure, "strength", alt)


def _label_choice(axes: Axes, curve: StrengthCurve) -> None:
    left, right = np.log(axes.get_xlim())
    near_right = (np.log(curve.chosen) - left) / (right - left) > 0.6
    axes.annotate(
        f"chosen: {number(curve.chosen, 3)}",
        (curve.chosen, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-7 if near_right else 7, 0),
        textcoords="offset points",
        ha="right" if near_right else "left",
        va="top",
        color=BAD,
        weight="bold",
    )


_MOST_LINES = len(LINES)
_SMALLEST_DRAWN = 1e-17  # drawn instead of zero on a logarithmic axis


def scores_by_components(
    n_components: np.ndarray, alphas: np.ndarray, scores: np.ndarray, name: str, chosen: tuple[int, float]
) -> str:
    """Draw one line per strength over the number of components (logarithmic), with a ring around the chosen pair.

    ``scores`` (P, S) are those of the numbers of components (P,) and strengths (S,), both ascending; greater is better,
    and ``name`` is their name, such as 'held-out R²'. If there are more strengths than colours, evenly spaced ones are
    drawn, the chosen one among them.
    """
    best = int(np.argmin(np.abs(alphas - chosen[1])))
    with drawing(380, 250) as (figure, axes):
        for colour, s in zip(LINES, _drawn(alphas.size, best), strict=False):
            width = 2.6 if s == best else 1.6
            axes.plot(
                n_components,
                scores[:, s],
                color=colour,
                linewidth=width,
                marker="o",
                markersize=4,
                label=number(alphas[s], 2),
            )
        p = int(np.argmin(np.abs(n_components - chosen[0])))
        axes.plot([n_components[p]], [scores[p, best]], "o", markersize=12, markerfacecolor="none", color=BAD)
        shown = scores[:, _drawn(alphas.size, best)]
        top = float(shown.max())
        # Without this limit, pairs that fail entirely would compress all others into a line.
        bottom = max(float(shown.min()), top - max(0.05, 4 * float(top - np.median(shown))))
        axes.set(ylim=(bottom - 0.04 * (top - bottom + 1e-9), top + 0.06 * (top - bottom + 1e-9)))
        if n_components.size > 1:
            axes.set(xscale="log", xlim=(n_components[0] / 1.1, n_components[-1] * 1.1))
            log_axis(axes.xaxis, *axes.get_xlim())
        axes.grid(axis="y")
        axes.set(xlabel="principal components", ylabel=name)
        axes.legend(title="alpha", loc="upper left", bbox_to_anchor=(1.01, 1.02), labelcolor=MUTED)
        alt = (
            f"{name} over {n_components.size} numbers of components at {alphas.size} strengths. Chosen: {chosen[0]} "
            f"components at strength {number(chosen[1], 3)}."
        )
        return to_svg(figure, "components", alt)


def along_path(
    alphas: np.ndarray,
    values: np.ndarray,
    name: str,
    chosen: float,
    *,
    band: np.ndarray | None = None,
    logarithmic: bool = False,
    id: str = "path",
) -> str:
    """Draw values (S,) over strengths (S,), with ``band`` (S,) to either side; a dashed line marks the choice."""
    order = np.argsort(alphas)
    x, y = alphas[order], np.maximum(values[order], _SMALLEST_DRAWN) if logarithmic else values[order]
    with drawing(330, 220) as (figure, axes):
        axes.axvline(chosen, color=BAD, linewidth=1.2, dashes=(4, 3), zorder=1)
        if band is not None:
            axes.fill_between(x, y - band[order], y + band[order], color=GOOD, alpha=0.2, linewidth=0)
        axes.plot(x, y, color=GOOD, linewidth=2, marker="o", markersize=4)
        axes.set(xscale="log", xlim=(x[0] / 1.2, x[-1] * 1.2))
        log_axis(axes.xaxis, *axes.get_xlim())
        if logarithmic:
            axes.set(yscale="log", ylim=(y.min() / 3, y.max() * 3))
            log_axis(axes.yaxis, *axes.get_ylim())
        axes.grid(axis="y")
        axes.set(xlabel="strength of the penalty", ylabel=name)
        alt = f"{name} at {x.size} strengths from {number(x[0])} to {number(x[-1])}; {number(chosen, 3)} is chosen."
        return to_svg(figure, id, alt)


def _drawn(count: int, kept: int) -> Sequence[int]:
    """Return at most as many indices as there are colours, evenly spaced, ``kept`` among them."""
    if count <= _MOST_LINES:
        return range(count)
    places = np.unique(np.linspace(0, count - 1, _MOST_LINES).round().astype(int)).tolist()
    if kept not in places:
        places[int(np.argmin(np.abs(np.array(places) - kept)))] = kept
    return places


@dataclass(frozen=True, eq=False)
class SelectionPage(Page):
    """The cross-validation of a fitted model, as a page.

    Parameters
    ----------
    title : str
        Title of the page.
    name : str
        Name of the estimator.
    facts : dict
        What was learned, by name.
    settings : dict
        Parameters of the estimator, as text.
    selection : SelectionResult or None
        How numbers of components or strengths were chosen.
    path : SparsePath or None, default=None
        The models along a path of strengths.
    alpha : float, default=1.0
        The strength that is chosen on the path.
    versions : mapping of str to str, optional
        Versions of packages by name; by default ``package_versions()``.
    created : datetime, optional
        Time of the page, with its time zone; by default now.
    """

    kind: ClassVar[str] = "selection"

    title: str
    name: str
    facts: dict[str, str]
    settings: JSON
    selection: SelectionResult | None
    path: SparsePath | None = None
    alpha: float = 1.0
    versions: Mapping[str, str] = field(default_factory=package_versions)
    created: datetime = field(default_factory=now)

    @classmethod
    def of(cls, model: BaseEstimator, *, title: str | None = None) -> SelectionPage:
        """Return the page on the held-out R² of each number of components and strength.

        Parameters
        ----------
        model : estimator
            A fitted estimator whose ``PrincipalFeatures`` were given several numbers of components.
        title : str or None, default=None
            Title of the page; None takes the name of the estimator.

        Returns
        -------
        SelectionPage

        Raises
        ------
        DataError
            If the model chose no number of components.
        """
        name, scores = type(model).__name__, ComponentScores.of(model.selection_)
        if scores is None:
            raise DataError(
                Message(
                    "this {} has chosen no number of components by folds: fit it with PrincipalFeatures of several.",
                    name,
                )
            )
        facts = _facts(model.n_rows_, model.feature_coef_.shape[1], model.alpha_, model.selection_)
        facts["components per block"] = f"{model.n_principal_:,}"
        settings = plain({k: str(v) for k, v in model.get_params(deep=False).items()})
        return cls(title or name, name, facts, settings, model.selection_)

    @classmethod
    def of_sums(cls, model: SumsModel, title: str) -> SelectionPage:
        """Return the page on how a model from sums was chosen.

        For ridge on principal components, it shows the held-out R² of each number of components and strength. For LASSO
        and group LASSO, it shows held-out error, number of used features and residuals of the optimality conditions
        along the path of strengths.

        Parameters
        ----------
        model : SumsModel
            What ``chimap.ridge``, ``chimap.lasso`` or ``chimap.group_lasso`` returns.
        title : str
            Title of the page.

        Returns
        -------
        SelectionPage

        Raises
        ------
        DataError
            If the model has no path, and chose no number of components by folds.

        Examples
        --------
        >>> import tempfile
        >>> import chimap
        >>> Z = np.random.default_rng(0).standard_normal((300, 20))
        >>> sums = [chimap.Moments(20, 1).update(Z[k::3], Z[k::3, 3] - Z[k::3, 7]) for k in range(3)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     SelectionPage.of_sums(chimap.lasso(sums), "LASSO").save(f"{folder}/lasso.html").name
        'lasso.html'
        """
        facts = _facts(model.n_rows, model.coef.shape[0], model.alpha, model.selection)
        scores = ComponentScores.of(model.selection)
        if model.path is not None:
            facts["used features"] = f"{int(np.any(model.coef != 0, axis=1).sum()):,}"
            residual = model.path.residuals[np.argmin(np.abs(model.path.alphas - model.alpha))]
            facts["optimality residual"] = number(float(residual), 2)
        elif model.pca is not None and scores is not None:
            facts["components"] = f"{model.pca.components.shape[1]:,}"
            facts["explained variance"] = percent(float(model.pca.shares.sum()))
        else:
            raise DataError("this model has no path, and has chosen no number of components by folds.")
        return cls(title, "linear model from sums", facts, {}, model.selection, model.path, model.alpha)

    @property
    def subject(self) -> str:
        """The name of the estimator."""
        return self.name

    def details(self) -> dict[str, Mapping[str, object]]:
        """Return what was learned, the settings, and the versions."""
        return {"Model": self.facts, "Settings": self.settings, "Versions": self.versions}


def components_figure(scores: ComponentScores) -> str:
    """Draw the cross-validated scores, with the chosen pair marked."""
    return scores_by_components(scores.n_components, scores.alphas, scores.r2, "held-out R²", scores.chosen)


def components_by_folds(page: SelectionPage) -> Section | None:
    """Return the cross-validated scores of numbers of components and strengths."""
    scores = ComponentScores.of(page.selection)
    if scores is None:
        return None
    learned = "components and weights" if "components" in page.facts else "weights"
    summary = (
        f"Each fold is predicted with {learned} learned from the other folds. The result is exact and is computed from "
        "moments alone."
    )
    return Section("Cross-validated R²", summary, (Figure(lambda: components_figure(scores)),))


def error_along_path(page: SelectionPage) -> Section | None:
    """Return the held-out error along the path."""
    path, selection = page.path, page.selection
    if path is None or selection is None:
        return None

    def draw() -> str:
        mean, band = selection.scores.mean(axis=1), selection.standard_errors
        return along_path(path.alphas, mean, "held-out squared error", page.alpha, band=band, id="error")

    summary = "Mean over the held-out folds. The band is one standard error."
    return Section("Cross-validated error", summary, (Figure(draw),))


def used_along_path(page: SelectionPage) -> Section | None:
    """Return the number of used features along the path."""
    path = page.path
    if path is None:
        return None

    def draw() -> str:
        return along_path(path.alphas, path.n_used.astype(float), "used features", page.alpha, id="used")

    return Section("Used features", "Number of features with a non-zero weight.", (Figure(draw),))


def optimality_along_path(page: SelectionPage) -> Section | None:
    """Return how well each model along the path is solved."""
    path = page.path
    if path is None:
        return None

    def draw() -> str:
        return along_path(path.alphas, path.residuals, "residual", page.alpha, logarithmic=True, id="residual")

    summary = "Largest violation of the optimality conditions (Karush, Kuhn, Tucker), as a share of the strength."
    return Section("Optimality", summary, (Figure(draw),))


def _facts(n_rows: int, n_features: int, alpha: float, selection: SelectionResult | None) -> dict[str, str]:
    facts = {"rows": f"{n_rows:,}", "features": f"{n_features:,}", "alpha": number(alpha)}
    if selection is not None and ComponentScores.of(selection) is not None:
        facts["held-out R²"] = number(float(selection.r2.max()))
    return facts
