"""Render the cross-validation scores of a linear model from moments as a single self-contained HTML page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chimap._messages import Message
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
    """Write a page on the cross-validation of a fitted ``MomentsRidge``, ``MomentsLasso`` or related model.

    For ridge on principal components, the page shows the held-out R² of each number of components and strength, and R²
    and accuracy on other rows if ``curves`` is given. For LASSO and group LASSO, it shows held-out error, number of
    used features and residuals of the optimality conditions along the path of strengths.

    Parameters
    ----------
    model : estimator
        A fitted model from moments, or a ``HistogramClassifier`` that chose among several ``n_principal``.
    path : path-like
        The file to write.
    curves : ComponentCurves or None, default=None
        Scores on other rows, the result of ``model.curves(X, y)``.
    title : str or None, default=None
        Title of the page; None takes the name of the estimator.
    overwrite : bool, default=False
        Whether to replace an existing file.

    Returns
    -------
    Path
        The path of the page.

    Raises
    ------
    DataError
        If the model chose nothing by folds and there are no ``curves``.
    FileExistsError
        If ``path`` exists and ``overwrite`` is False.
    FileNotFoundError
        If the folder of ``path`` does not exist.

    Examples
    --------
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
            Message(
                "this {} has chosen nothing by folds, and there are no curves to show: fit it with several "
                "{n_components} ({n_principal}) or alphas, or pass curves=model.curves(X, y).",
                type(model).__name__,
            )
        )
    return write_page(
        lambda: render(
            "selection.html",
            title=title or type(model).__name__,
            name=type(model).__name__,
            facts=_facts(model),
            figures=[{"title": t, "caption": caption, "svg": as_markup(svg)} for t, caption, svg in figures],
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
        learned = "components and weights" if hasattr(model, "n_components_") else "weights"
        fold_caption = (
            f"Each fold is predicted with {learned} learned from the other folds. The result is exact and is computed "
            "from moments alone."
        )
        svg = scores_by_components(scores.n_components, scores.alphas, scores.r2, "held-out R²", chosen)
        figures.append(("Cross-validated R²", fold_caption, svg))
    if curves is not None:
        row_caption = (
            f"Scores on {curves.n_rows:,} other rows, with components and weights from all rows of the fit."
        )
        for name, values in (("R²", curves.r2), ("accuracy", curves.accuracy)):
            if values is not None:
                svg = scores_by_components(curves.n_components, curves.alphas, values, name, chosen)
                figures.append((f"{name[0].upper()}{name[1:]} on other rows", row_caption, svg))
    return figures


def _path_figures(model: BaseEstimator) -> list[tuple[str, str, str]]:
    path, figures = model.path_, []
    if model.selection_ is not None:
        band, mean = model.selection_.standard_errors, model.selection_.scores.mean(axis=1)
        svg = along_path(path.alphas, mean, "held-out squared error", model.alpha_, band=band, id="error")
        figures.append(
            ("Cross-validated error", "Mean over the held-out folds. The band is one standard error.", svg)
        )
    used = along_path(path.alphas, path.n_used.astype(float), "used features", model.alpha_, id="used")
    figures.append(("Used features", "Number of features with a non-zero weight.", used))
    residuals = along_path(
        path.alphas, path.residuals, "residual", model.alpha_, logarithmic=True, id="residual"
    )
    caption = (
        "Largest violation of the optimality conditions (Karush, Kuhn, Tucker), as a share of the strength."
    )
    figures.append(("Optimality", caption, residuals))
    return figures


def _facts(model: BaseEstimator) -> dict[str, str]:
    facts = {
        "rows": f"{model.n_rows_:,}",
        "features": f"{model.coef_.shape[1]:,}",
        "alpha": number(model.alpha_),
    }
    if hasattr(model, "n_principal_"):
        facts["components per block"] = f"{model.n_principal_:,}"
    if hasattr(model, "n_components_"):
        facts["components"] = f"{model.n_components_:,}"
        facts["explained variance"] = percent(float(model.pca_.shares.sum()))
    if ComponentScores.of(model.selection_) is not None:
        facts["held-out R²"] = number(float(model.selection_.r2.max()))
    if hasattr(model, "path_"):
        facts["used features"] = f"{int(np.any(model.coef_ != 0, axis=0).sum()):,}"
        facts["optimality residual"] = number(model.kkt_residual_, 2)
    return facts
