"""Fits that hold for shallow rows: thinned copies of the rows are learned from.

The race sees the rows as they are, so that what it chooses is chosen by scores of these. The machine that it chose then
learns again from each row and two copies with fewer counts (``data.depth``), which are a group: they are held out
together where its strength is chosen and its probabilities are calibrated, which are those of rows of all these depths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike
from chimap.data import Source
from chimap.data.clade_sums import check_no_sums
from chimap.data.depth import WithThinnedCopies, counts_of
from chimap.models.model import Model
from chimap.recipe import Recipe
from chimap.recipe.task import checked_groups

N_COPIES = 2  # of each row


def check_depth_robust(source: Source, has_checkpoint: bool, has_unlabelled: bool) -> None:
    """Raise InputError for what copies do not go with, and DataError for rows that are no counts."""
    if has_checkpoint or has_unlabelled:
        raise InputError(
            Message(
                "{depth_robust=} fits twice, and takes neither {} nor {}: leave it out, or these.",
                True,
                Message("{checkpoint}"),
                Message("{unlabelled}"),
            )
        )
    check_no_sums(source.column_names, source.name)
    first = next(iter(source.chunks(256)))
    counts_of(first.X, source.name, first.start)


def with_thinned_copies(
    plain: Model,
    recipe: Recipe,
    source: Source,
    groups: ArrayLike | None,
    fit: Callable[[Recipe, Source, np.ndarray], Model],
) -> Model:
    """Return the machine of a model, learned again from the rows and thinned copies of them.

    Parameters
    ----------
    plain : Model
        The model of the rows as they are, by a fit with a race.
    recipe : Recipe
        The settings that were asked for.
    source : Source
        Rows of counts.
    groups : array of shape (n,) or None
        Group of each row.
    fit : callable
        Fits a recipe to a source with groups, without a race.
    """
    chosen = {name: value for name, value in plain.recipe.raced_settings.items() if name != "alpha"}
    of_rows = np.arange(source.n_rows) if groups is None else checked_groups(groups, source.n_rows)
    copies = WithThinnedCopies(source, N_COPIES, recipe.seed)
    model = fit(recipe.with_raced(**chosen), copies, np.repeat(of_rows, N_COPIES + 1))
    return replace(model, learned=replace(model.learned, race=plain.learned.race))
