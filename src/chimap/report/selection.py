"""How a linear model from moments was chosen, as one page of HTML that needs nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chimap._validation import DataError
from chimap.estimators.component_curves import ComponentCurves
from chimap.report._plain import number, percent, plain
from chimap.report.evaluation import now, package_versions
from chimap.report.html import as_markup, date_in_words, render, write_page
from chimap.report.selection_curves import along_path, scores_by_components
from chimap.report.selection_scores import ComponentScores

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def write_selection(
    model: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    curves: ComponentCurves | None = None,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a page on what the folds of a fitted ``MomentsRidge``, ``MomentsLasso`` or one of their kin say; its path.

    A ``HistogramClassifier`` that chose among several ``n_principal`` has such folds too.

    Ridge on components: held-out R² of every number of components and strength, and R² and accuracy on other rows where
    ``curves`` holds what ``model.curves(X, y)`` gave. LASSO and group LASSO: held-out error, features in use and
    residuals of the optimality conditions along the path.

    Raises DataError for a model that chose nothing and a call without curves, FileExistsError if ``path`` exists and
    ``overwrite`` is False.

    >>> import tempfile
    >>> from chimap import MomentsLasso
    >>> Z = np.random.default_rng(0).standard_normal((300, 20))
    >>> model = MomentsLasso(n_alphas=8, random_state=0).fit(Z, Z[:, 3] - Z[:, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_selection(model, f"{folder}/lasso.html").name
    'lasso.html'
    """
    figures = _path_figures(model) if hasattr(model, "path_") else _component_figures(model, curves)
    if not figures:
        raise DataError(
            f"this {type(model).__name__} has chosen nothing by folds, and there are no curves to show: fit it with "
            "several n_components (n_principal) or alphas, or give curves=model.curves(X, y)."
        )
    return write_page(
        lambda: render(
            "selection.html",
            title=title or type(model).__name__,
            name=type(model).__name__,
            facts=_facts(model),
            figures=[{"title": t, "said": said, "svg": as_markup(svg)} for t, said, svg in figures],
            settings=plain({k: str(v) for k, v in model.get_params(deep=False).items() if k != "groups"}),
            versions=plain(package_versions()),
            created=date_in_words(now()),
        ),
        path,
        overwrite,
    )


def _component_figures(model: BaseEstimator, curves: ComponentCurves | None) -> list[tuple[str, str, str]]:
    figures = []
    scores = ComponentScores.of(model.selection_)
    number = getattr(model, "n_components_", getattr(model, "n_principal_", None))
    chosen = None if number is None else (number, model.alpha_)
    if scores is not None:
        found_by = "components and weights" if hasattr(model, "n_components_") else "weights"
        said = f"Of the rows of each fold, {found_by} from the others; exact, from moments alone."
        svg = scores_by_components(scores.n_components, scores.alphas, scores.r2, "held-out R²", chosen)
        figures.append(("R² by folds", said, svg))
    if curves is not None:
        on = f"On {curves.n_rows:,} rows given for it, components and weights from all rows of the fit."
        for name, values in (("R²", curves.r2), ("accuracy", curves.accuracy)):
            if values is not None:
                svg = scores_by_components(curves.n_components, curves.alphas, values, name, chosen)
                figures.append((f"{name[0].upper()}{name[1:]} on other rows", on, svg))
    return figures


def _path_figures(model: BaseEstimator) -> list[tuple[str, str, str]]:
    path, figures = model.path_, []
    if model.selection_ is not None:
        band, mean = model.selection_.standard_errors, model.selection_.scores.mean(axis=1)
        svg = along_path(path.alphas, mean, "held-out squared error", model.alpha_, band=band, id="error")
        figures.append(("Error by folds", "Mean of the folds held out; the band is one standard error.", svg))
    used = along_path(path.alphas, path.n_used.astype(float), "features in use", model.alpha_, id="used")
    figures.append(("Features in use", "With a weight that is not zero.", used))
    residuals = along_path(
        path.alphas, path.residuals, "residual", model.alpha_, logarithmic=True, id="residual"
    )
    said = (
        "Largest violation of the optimality conditions (Karush, Kuhn, Tucker), as a share of the strength."
    )
    figures.append(("Optimality", said, residuals))
    return figures


def _facts(model: BaseEstimator) -> dict[str, str]:
    facts = {
        "rows": f"{model.n_rows_:,}",
        "features": f"{model.coef_.shape[1]:,}",
        "alpha": number(model.alpha_),
    }
    if hasattr(model, "n_principal_"):
        facts["components a block"] = f"{model.n_principal_:,}"
    if hasattr(model, "n_components_"):
        facts["components"] = f"{model.n_components_:,}"
        facts["share of the variance in them"] = percent(float(model.pca_.shares.sum()))
    if ComponentScores.of(model.selection_) is not None:
        facts["held-out R²"] = number(float(model.selection_.r2.max()))
    if hasattr(model, "path_"):
        facts["features in use"] = f"{int(np.any(model.coef_ != 0, axis=0).sum()):,}"
        facts["optimality residual"] = number(model.kkt_residual_, 2)
    return facts
