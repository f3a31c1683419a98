"""Linear models from sums over rows, which need the rows no more: ridge, the LASSO, and the LASSO of groups.

The sums are those of ``Moments``. If they are given fold by fold, exact cross-validation chooses what is open: the
moments of a training set are those of all rows less those of the fold. All folds need the same features and targets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._validation import AUTO, check_positive
from chimap.backends import check_device
from chimap.features.principal import PCA
from chimap.moments import FoldMoments, Moments
from chimap.penalties import check_groups
from chimap.penalties.groups import Group
from chimap.selection.base import OpenSettings, SelectionResult, checked_alpha
from chimap.selection.components import DECADES, score_principal
from chimap.selection.folds import choose_alpha, score_path
from chimap.selection.gcv import choose_by_gcv
from chimap.solvers.groups import group_lasso_path, largest_group_alpha
from chimap.solvers.principal import PrincipalRidge
from chimap.solvers.ridge import LinearSolution
from chimap.solvers.ridge import ridge as ridge_at
from chimap.solvers.sparse import PATH_END, SparsePath, elastic_net, largest_alpha


@dataclass(frozen=True)
class SumsModel:
    """A linear model f(z) = z'coef + intercept from sums over rows.

    Parameters
    ----------
    coef : ndarray of shape (D, t)
        Weights of the features.
    intercept : ndarray of shape (t,)
        Intercepts of the targets.
    alpha : float
        The strength used.
    n_rows : int
        Number of rows learned from.
    selection : SelectionResult or None
        Errors of what was compared; None where nothing was open.
    path : SparsePath or None, default=None
        Solutions, numbers of features used, and optimality residuals at all strengths of a LASSO.
    pca : PCA or None, default=None
        The principal components used, if the weights are in their span.

    Examples
    --------
    >>> import chimap
    >>> z = np.arange(6.0)[:, None]
    >>> fitted = chimap.ridge([chimap.Moments(1, 1).update(z, 2 * z)], alpha=1e-9)
    >>> type(fitted).__name__, fitted.n_rows, round(float(fitted.coef[0, 0]), 3)
    ('SumsModel', 6, 2.0)
    """

    coef: np.ndarray
    intercept: np.ndarray
    alpha: float
    n_rows: int
    selection: SelectionResult | None
    path: SparsePath | None = None
    pca: PCA | None = None


def ridge(
    folds: Sequence[Moments],
    alpha: str | float | Sequence[float] = AUTO,
    n_components: int | Sequence[int] | None = None,
    device: str = "cpu",
) -> SumsModel:
    """Return ridge regression on all features or on their leading principal components.

        minimise over w, b:  sum_n (z_n'w + b - y_n)^2 / 2 + alpha/2 |w|^2,

    with w in the span of the first ``n_components`` components of the rows.

    Parameters
    ----------
    folds : sequence of Moments
        Moments of each fold, or one of all rows.
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty, ``alpha`` of scikit-learn's ``Ridge``: a number, several to choose from, or "auto".
        Folds choose; of the moments of all rows, generalised cross-validation does.
    n_components : int, sequence of int or None, default=None
        Number of principal components, or several to choose from by exact folds, with components and weights computed
        anew for each fold. None takes all features as they are.
    device : str, default="cpu"
        "cpu", or "cuda" (needs torch), where the eigenproblems of ``n_components`` are solved if they fit there.

    Returns
    -------
    SumsModel
        The model.

    Raises
    ------
    DataError
        If a fold has no rows, or every strength is too small.
    ValueError
        If a parameter is out of range, or one fold is to choose components.

    References
    ----------
    Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel, sec. 6, Algorithms 3 and 4.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.random((200, 10))
    >>> y = Z[:, 0] + 2 * Z[:, 1]
    >>> folds = [Moments(10, 1).update(Z[k::5], y[k::5]) for k in range(5)]
    >>> model = ridge(folds, n_components=[5, 10])
    >>> model.pca.components.shape[1], bool(np.abs(Z @ model.coef[:, 0] + model.intercept - y).max() < 0.1)
    (10, True)
    """
    (moments, whole), given = _of(folds), checked_alpha(alpha)
    alphas = None if given is None else np.atleast_1d(given)
    if n_components is not None:
        return _on_components(moments, whole, alphas, np.atleast_1d(n_components).tolist(), device)
    if isinstance(given, float):
        return _model(ridge_at(whole, given), whole, None)
    if len(folds) > 1:
        selection = choose_alpha(moments, whole, AUTO if alphas is None else alphas)
        return _model(ridge_at(whole, selection.best["alpha"]), whole, selection)
    solution, selection, _ = choose_by_gcv(whole, None if alphas is None else alphas.tolist())
    return _model(solution, whole, selection)


def lasso(
    folds: Sequence[Moments], alpha: str | float | Sequence[float] = AUTO, l1_ratio: float = 1.0, n_alphas: int = 30
) -> SumsModel:
    """Return the LASSO or elastic net.

        minimise over w, b:  sum_n (z_n'w + b - y_n)^2 / (2N) + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2),

    with N rows, or N the sum of their weights. The loss is a mean, as in scikit-learn, so alpha does not grow with the
    rows; the strength beside the sum of the losses, as in ``ridge``, is N alpha.

    Parameters
    ----------
    folds : sequence of Moments
        Moments of each fold, or one of all rows.
    alpha : float, sequence of float or "auto", default="auto"
        Strength beside the mean loss, ``alpha`` of scikit-learn's ``ElasticNet``: a number, several to choose from, or
        "auto", a path of ``n_alphas`` strengths. Folds choose; without folds, the middle of the path is taken.
    l1_ratio : float, default=1.0
        Share of the l1 norm, in (0, 1]; 1 is the LASSO.
    n_alphas : int, default=30
        Number of strengths on the automatic path.

    Returns
    -------
    SumsModel
        The model, with its path.

    Raises
    ------
    DataError
        If a fold has no rows.
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.standard_normal((300, 20))
    >>> y = Z[:, 3] - Z[:, 7]
    >>> model = lasso([Moments(20, 1).update(Z[k::5], y[k::5]) for k in range(5)])
    >>> sorted(np.argsort(-np.abs(model.coef[:, 0]))[:2].tolist())
    [3, 7]
    """
    check_positive(l1_ratio, "l1_ratio")
    if l1_ratio > 1:
        raise InputError(f"l1_ratio must be in (0, 1]; got {l1_ratio!r}.")
    return _along_path(
        folds,
        alpha,
        n_alphas,
        lambda moments: largest_alpha(moments, l1_ratio),
        lambda moments, alphas: elastic_net(moments, alphas, l1_ratio),
    )


def group_lasso(
    folds: Sequence[Moments], groups: Sequence[Group], alpha: str | float | Sequence[float] = AUTO, n_alphas: int = 30
) -> SumsModel:
    """Return the group LASSO: whole groups of features are used or left out.

        minimise over w, b:  sum_n (z_n'w + b - y_n)^2 / (2N) + alpha sum_g sqrt(|g|) |w_g|_2,

    with N rows, or N the sum of their weights, and |g| columns in group g. The loss is a mean, as in ``lasso``.

    Parameters
    ----------
    folds : sequence of Moments
        Moments of each fold, or one of all rows.
    groups : sequence of lists or slices
        Columns of each group; each column must be in exactly one.
    alpha : float, sequence of float or "auto", default="auto"
        Strength beside the mean loss. See ``lasso``.
    n_alphas : int, default=30
        Number of strengths on the automatic path.

    Returns
    -------
    SumsModel
        The model, with its path.

    Raises
    ------
    DataError
        If a fold has no rows.
    ValueError
        If groups overlap or leave features out, or a parameter is out of range.

    References
    ----------
    Yuan and Lin, Model selection and estimation in regression with grouped variables (2006).

    Examples
    --------
    >>> Z = np.random.default_rng(0).standard_normal((300, 6))
    >>> sums = Moments(6, 1).update(Z, Z[:, 2] - Z[:, 3])
    >>> np.flatnonzero(group_lasso([sums], [[0, 1], [2, 3], [4, 5]], alpha=0.1).coef).tolist()
    [2, 3]
    """
    members = check_groups(groups, folds[0].n_features)
    return _along_path(
        folds,
        alpha,
        n_alphas,
        lambda moments: largest_group_alpha(moments, members),
        lambda moments, alphas: group_lasso_path(moments, alphas, members),
    )


def _of(folds: Sequence[Moments]) -> tuple[FoldMoments, Moments]:
    """Return the folds about the shifts of the first, and their sum."""
    for fold in folds:
        folds[0].check_alike(fold)
    shifts = folds[0].shifts
    moments = FoldMoments.of([fold.about(*shifts) for fold in folds], np.dtype(np.float64))
    whole = moments.whole()
    whole.check_rows()
    return moments, whole


def _on_components(
    moments: FoldMoments, whole: Moments, alphas: np.ndarray | None, numbers: list[int], device: str
) -> SumsModel:
    """Return ridge on principal components, of which ``numbers`` are compared at all strengths (None for decades)."""
    check_device(device)
    for number in numbers:
        check_positive(number, "n_components", integer=True)
        if number > whole.n_features:
            raise InputError(Message("{n_components=!s}, but there are {} features.", number, whole.n_features))
    if alphas is None:
        alphas = (float(whole.scatter_diagonal().mean()) or 1.0) * DECADES
    if len(numbers) == alphas.size == 1:
        selection, number, alpha = None, numbers[0], float(alphas[0])
    else:
        if len(moments.folds) == 1:
            raise InputError("one fold chooses no components or strength: give the moments of two folds or more.")
        selection = score_principal(moments, whole, numbers, alphas, device=device)
        number, alpha = selection.best["n_components"], selection.best["alpha"]
    found = PrincipalRidge.of(whole, number, device)
    return _model(found.solution(number, alpha), whole, selection, pca=found.pca)


def _along_path(
    folds: Sequence[Moments],
    alpha: str | float | Sequence[float],
    n_alphas: int,
    largest_of: Callable[[Moments], float],
    path_of: Callable[[Moments, np.ndarray], SparsePath],
) -> SumsModel:
    """Return the solution that the folds choose on a path of strengths; its middle if there is one fold."""
    check_positive(n_alphas, "n_alphas", integer=True)
    (moments, whole), open = _of(folds), OpenSettings(checked_alpha(alpha), n_alphas=n_alphas)
    alphas = open.path_below(largest_of(whole), PATH_END)
    compares = alphas.size > 1 and len(folds) > 1
    selection = score_path(moments, whole, alphas, path_of) if compares else None
    path = path_of(whole, alphas)
    return _model(path.solutions[alphas.size // 2 if selection is None else selection.chosen], whole, selection, path)


def _model(
    solution: LinearSolution,
    whole: Moments,
    selection: SelectionResult | None,
    path: SparsePath | None = None,
    pca: PCA | None = None,
) -> SumsModel:
    return SumsModel(solution.coef, solution.intercept, solution.alpha, whole.n_rows, selection, path, pca)
