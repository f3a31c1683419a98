"""Rows leave a model: the fit without them at the same choices, and a receipt of what they have chosen.

The settings of the model, with what a race and its strength have become, are fitted to the rows that are left: nothing
in the file is of the others but what the receipt names. Whether these are the rows of the model is seen by the same fit
to all of them, which must give its outputs.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chimap._errors import DataError, InputError
from chimap._formatting import counted, kernel_in_words, number, plain
from chimap._messages import Message
from chimap._types import JSON, ArrayLike, Rows
from chimap._validation import AUTO
from chimap.data.doubts import DataWarning
from chimap.data.labels import Labels, check_labels
from chimap.data.views import ChosenRows
from chimap.models.model import Model
from chimap.readers import open_source
from chimap.recipe import Recipe
from chimap.reports.score import about_labels, true_answers

if TYPE_CHECKING:
    from chimap.estimators.base import HistogramModel

_SAME = 1e-2  # share of the spread of outputs by which those of the same fit may differ
_ROWS = 2048  # whose outputs are compared
_OF_ALL_ROWS = ("held_out", "linear", "lines")  # what the command line has kept that is true of the model of all rows


@dataclass(frozen=True, eq=False)
class Forgotten:
    """A model without some of its rows, and the receipt.

    Parameters
    ----------
    model : estimator
        The model, as an estimator.
    n_forgotten, n_left : int
        Rows that have left, and those that it is learned from.
    chosen_with_them : dict of str to str
        What the rows took part in choosing, and the model still has, by name.
    alpha, alpha_before : float
        The strength of the penalty, now and before.
    moved : float
        Largest change of an output of the rows that are left, in deviations of outputs.
    """

    model: HistogramModel
    n_forgotten: int
    n_left: int
    chosen_with_them: dict[str, str]
    alpha: float
    alpha_before: float
    moved: float

    def lines(self) -> dict[str, str | None]:
        """Return the receipt in lines of text by name."""
        is_again = "alpha" not in self.chosen_with_them
        return {
            "forgotten": f"{counted(self.n_forgotten, 'row')}; {self.n_left:,} are left",
            "outputs": f"move by at most {number(self.moved, 3)} deviations",
            "chosen with them": "\n".join(f"{name}: {value}" for name, value in self.chosen_with_them.items()),
            "chosen again": f"alpha {self.alpha:.4g}, before {self.alpha_before:.4g}" if is_again else None,
        }

    def as_dict(self) -> JSON:
        """Return the receipt as JSON types."""
        names = {"n_forgotten": "forgotten", "n_left": "left", "moved": "largest_change"}
        fields = {name: value for name, value in vars(self).items() if name != "model"}
        return {names.get(name, name): plain(value) for name, value in fields.items()}


def forget(
    model: HistogramModel,
    X: object,
    y: Labels = None,
    *,
    rows: ArrayLike,
    groups: ArrayLike | None = None,
    choose_again: bool = False,
) -> Forgotten:
    """Return a model without some of the rows that it was fitted on: the fit without them, at the same choices.

    Parameters
    ----------
    model : estimator
        A fitted ``HistogramClassifier`` or ``HistogramRegressor``.
    X : array, sparse matrix, data frame, path or Source of n rows
        All rows of the fit, in their order.
    y : array of shape (n,), str or None, default=None
        Their labels, or the name of the column that has them; None for those that the rows bring with them.
    rows : array of bool of shape (n,), or of int
        The rows to forget, or their places.
    groups : array of shape (n,) or None, default=None
        The groups of the rows, if they were given to the fit.
    choose_again : bool, default=False
        Whether the strength is chosen again by the rows that are left.

    Returns
    -------
    Forgotten

    Raises
    ------
    InputError
        If the model is none of these estimators.
    DataError
        If these are not the rows of the fit, or if no row of a class would be left.

    Examples
    --------
    >>> from chimap import HistogramRegressor
    >>> X = np.random.default_rng(0).dirichlet(np.ones(6), 50)
    >>> settings = {"alpha": 0.1, "precision": "float64", "random_state": 0}
    >>> whole = HistogramRegressor("hellinger", **settings).fit(X, X[:, 0])
    >>> found = forget(whole, X, X[:, 0], rows=[3, 7])
    >>> without = HistogramRegressor("hellinger", **settings).fit(np.delete(X, [3, 7], 0), np.delete(X[:, 0], [3, 7]))
    >>> bool(np.allclose(found.model.predict(X), without.predict(X), atol=1e-10))
    True
    """
    if not hasattr(model, "with_model"):
        raise InputError(
            f"rows leave a fitted HistogramClassifier or HistogramRegressor; got a {type(model).__name__}. Give the "
            "model that it was made from, and make it again."
        )
    before: Model = model.fitted
    source = open_source(X, y, like=model, with_labels=True)
    is_gone = np.zeros(source.n_rows, dtype=bool)
    is_gone[np.asarray(rows)] = True
    kept, labels = np.flatnonzero(~is_gone), true_answers(before, source)
    _check_rows(before, labels, is_gone, source.name)
    known = None if groups is None else check_labels(groups, source.n_rows, "groups")
    recipe, learned = _choices(before), before.learned

    def fitted(places: np.ndarray, recipe: Recipe) -> Model:
        some = ChosenRows(source, places, labels[places])
        with warnings.catch_warnings():  # what there is to say of the rows was said when the model was fitted
            warnings.simplefilter("ignore", DataWarning)
            return copy(model).fit_source(some, groups=None if known is None else known[places], recipe=recipe).fitted

    some = before.schema.rows(ChosenRows(source, kept[:_ROWS], None)).take(np.arange(min(_ROWS, kept.size)))
    outputs = _outputs(before, some)
    spread = max(float(outputs.std()), 1e-30)
    if np.abs(_outputs(fitted(np.arange(source.n_rows), recipe), some) - outputs).max() > _SAME * spread:
        raise DataError(
            Message(
                "{}: a fit to these rows is not this model, so they are not the rows that it was fitted on, or they "
                "had a {sample_weight} or {covariates} that the data do not bring. Give all rows of the fit, in their "
                "order and without those that it has forgotten.",
                source.name,
            )
        )
    after = fitted(kept, replace(recipe, alpha=AUTO) if choose_again else recipe)
    n_gone, training = int(is_gone.sum()), learned.training
    if training is not None:
        training = {name: value for name, value in training.items() if name not in _OF_ALL_ROWS}
        training |= about_labels(labels[kept], before.answers.classes is not None)
        training["n_forgotten"] = n_gone + training.get("n_forgotten", 0)
    after = replace(
        after, learned=replace(after.learned, race=learned.race, training=training, histograms=learned.histograms)
    )
    moved = float(np.abs(_outputs(after, some) - outputs).max() / spread)
    told = _chosen_with(after, choose_again)
    return Forgotten(model.with_model(after), n_gone, kept.size, told, after.learned.alpha, learned.alpha, moved)


def _choices(model: Model) -> Recipe:
    """Return the settings of a model, with values in place of what its rows have chosen."""
    recipe = model.recipe
    gamma = model.gamma if isinstance(recipe.gamma, str) and model.gamma is not None else recipe.gamma
    raced = recipe.raced - {"alpha", "gamma", "covariate_columns"}  # columns beside the bins are made again
    return replace(recipe, alpha=model.learned.alpha, gamma=gamma, covariate_columns=None, raced=raced)


def _outputs(model: Model, rows: Rows) -> np.ndarray:
    return model.outputs_of_all(model.preparation(rows, 0, "X"))


def _check_rows(model: Model, y: np.ndarray, is_gone: np.ndarray, name: str) -> None:
    if not is_gone.any():
        raise DataError(f"{name}: no row to forget is among the rows of the fit.")
    lost = np.setdiff1d(y, y[~is_gone]) if model.task.classes is not None and y.ndim == 1 else np.zeros(0)
    if lost.size or (~is_gone).sum() < 3:
        which = f"class {lost[0]!s}" if lost.size else "the fit"
        raise DataError(f"{name}: no rows of {which} would be left. Fit again without it.")


def _chosen_with(model: Model, chooses_again: bool) -> dict[str, str]:
    """Return what the forgotten rows took part in choosing, and the model still has."""
    about, raced = model.describe(), model.learned.race is not None
    found = {"kernel": kernel_in_words(about["kernel"], about["gamma"])} if raced or about["gamma"] is not None else {}
    found |= {"features": str(about["features"])}
    if model.normalization is not None:
        found["normalisation"] = model.normalization.name
    if model.learned.histograms is not None:
        found["histograms"] = "made as before"
    if model.recipe.given_bin_weights is not None:
        found["bin weights"] = "learned or given"
    if not chooses_again:
        found["alpha"] = f"{model.learned.alpha:.4g}"
    return found
