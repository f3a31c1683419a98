"""``ModelExplanation``: everything that a page of explanations shows, how it is found for a model, and its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap._errors import DataError
from chimap._formatting import bin_weights_in_words, kernel_in_words, number, one_line, plain, words
from chimap._types import JSON
from chimap.data.split import name_of_whole
from chimap.explain.effects import BinEffect
from chimap.explain.importance import Importance
from chimap.explain.stability import Stability
from chimap.models.explain import effects
from chimap.reports.explained_rows import ExplainedRow
from chimap.reports.page import Page, now, package_versions
from chimap.reports.pictures import painted

if TYPE_CHECKING:
    from chimap.data import Source
    from chimap.models.model import Model
    from chimap.models.predictor import Predictor


BINS_LISTED = 20  # bins that the page ranks
_BINS_IN_SENTENCE = 3


@dataclass(frozen=True, eq=False)
class ModelExplanation(Page):
    """Everything that a page of ``chimap explain`` shows.

    Parameters
    ----------
    title : str
        Title of the page.
    model_name : str
        Name of the estimator.
    data : dict
        Facts about the model and the rows by name.
    importance : Importance
        Importance of all bins.
    is_additive : bool
        Whether the model is a sum of functions of single bins, which ``effects`` then shows.
    output_names : tuple
        The classes, or the names of what is predicted.
    bin_names : ndarray of shape (bins,)
        Names of the bins, in their order.
    classes : tuple or None, default=None
        The classes of which one is predicted; None for numbers and for several tasks.
    effects : tuple of BinEffect, default=()
        Scores over the values of single bins, those of the most important bins first.
    rows : tuple of ExplainedRow, default=()
        Explanations of single rows.
    which_rows : str, default=""
        Which rows were chosen, in words.
    painted : str or None, default=None
        The importance as an image (a data URL), if the bins are pixels.
    covariates : dict or None, default=None
        What covariates and counts add to each other; see ``Covariates.describe``.
    stability : Stability or None, default=None
        Which bins halves of the rows choose, if it was asked for.
    scale : str, default=""
        What values of bins are, such as "shares of the row"; empty where they are those of rows as they are given.
    versions : mapping of str to str, optional
        Versions of packages by name; by default ``package_versions()``.
    created : datetime, optional
        Time of the explanation, with its time zone; by default now.
    """

    kind: ClassVar[str] = "explanation"

    title: str
    model_name: str
    data: JSON
    importance: Importance
    is_additive: bool
    output_names: tuple[object, ...]
    bin_names: np.ndarray
    classes: tuple[object, ...] | None = None
    effects: tuple[BinEffect, ...] = ()
    rows: tuple[ExplainedRow, ...] = ()
    which_rows: str = ""
    painted: str | None = None
    covariates: JSON | None = None
    stability: Stability | None = None
    scale: str = ""
    versions: Mapping[str, str] = field(default_factory=package_versions)
    created: datetime = field(default_factory=now)

    @property
    def subject(self) -> str:
        """The name of the estimator."""
        return self.model_name

    def details(self) -> dict[str, Mapping[str, object]]:
        """Return facts about the model and the rows, and the versions."""
        return {"Data": self.data, "Versions": self.versions}

    def speaks_for(self, effect: BinEffect) -> str:
        """Return what high values of a bin speak for: a class, "not" a class, or "more" or "less" of a target.

        Parameters
        ----------
        effect : BinEffect
            One of ``effects``.
        """
        (output, change, _), n_outputs = effect.direction, effect.effects.shape[1]
        if self.classes is not None and n_outputs == 1:
            return words(self.classes[int(change > 0)])
        name = words(self.output_names[output])
        if self.classes is not None:
            return name if change > 0 else f"not {name}"
        return ("more" if change > 0 else "less") + ("" if n_outputs == 1 else f" {name}")

    @property
    def sentence(self) -> str:
        """What the most important bins point to; empty if their effects are not known.

        "species_3 points to bog (more than 20), species_24 to meadow (more than 3)."
        """
        said = list[str]()
        for effect in self.effects[:_BINS_IN_SENTENCE]:
            above = f" (more than {number(effect.direction.above, 2)})" if effect.direction.above > 0 else ""
            verb = "to" if said else "points to"
            said.append(f"{one_line(effect.name)} {verb} {self.speaks_for(effect)}{above}")
        return f"{', '.join(said)}." if said else ""

    def as_dict(self, k: int = 20) -> JSON:
        """Return the explanation as JSON types.

        Parameters
        ----------
        k : int, default=20
            Number of bins, and of contributions per row, to include.
        """
        ranked = zip(self.importance.bins[:k], self.importance.top(k), strict=True)
        return {
            "title": self.title,
            "sentence": self.sentence,
            "model": self.model_name,
            "data": plain(self.data),
            "importance": {
                "kind": self.importance.kind,
                "bins": [{"bin": int(i), "name": name, "importance": value} for i, (name, value) in ranked],
            },
            "additive": self.is_additive,
            "outputs": plain(list(self.output_names)),
            "functions": [
                {
                    "bin": e.bin,
                    "name": e.name,
                    "values": plain(e.values),
                    "effects": plain(e.effects),
                    "speaks_for": self.speaks_for(e),
                    "above": e.direction.above,
                }
                for e in self.effects
            ],
            "rows": [row.as_dict(self.bin_names, k) for row in self.rows],
            "covariates": plain(self.covariates),
            "stability": self.stability and self.stability.as_dict(),
            "versions": plain(self.versions),
        }


def explainable(model: Predictor) -> Model:
    """Return the model, or the one that a compiled model was made from. Raise DataError if neither explains."""
    exact = model.exact
    if exact is None:
        raise DataError(
            f"a {model.schema.owner} cannot be explained. Explain the model that it was made from, or a model of "
            "'chimap fit'."
        )
    return exact


def explanation_of(
    model: Model,
    file: str,
    source: Source | None,
    sample: Source | None,
    importance: Importance,
    rows: list[ExplainedRow],
    which_rows: str,
    shape: tuple[int, int] | None,
    stability: Stability | None = None,
) -> ModelExplanation:
    """Return everything that the page of an explanation of the model in ``file`` shows."""
    about, learned, covariates, answers = model.describe(), model.learned, model.recipe.covariate_columns, model.answers
    facts = {
        "model": file,
        "kernel": kernel_in_words(about["kernel"], about["gamma"]),
        "features": about["features"],
        "bin weights": bin_weights_in_words(model.recipe.given_bin_weights, model.bin_names.tolist()),
        "rows trained on": learned.n_rows,
        "file": None if source is None else name_of_whole(source.name),
        "rows looked at": None if sample is None else sample.n_rows,
    }
    return ModelExplanation(
        title=f"{about['kernel']}: {file}",
        model_name=model.schema.owner,
        data={name: fact for name, fact in facts.items() if fact is not None},
        importance=importance,
        is_additive=model.is_additive,
        output_names=tuple(model.output_names.tolist()),
        bin_names=model.bin_names,
        classes=None if answers.classes is None or model.task_names is not None else tuple(answers.classes.tolist()),
        effects=tuple(effects(model, importance.bins[:BINS_LISTED].tolist(), sample)),
        rows=tuple(rows),
        which_rows=which_rows,
        painted=None if shape is None else painted(importance.by_bin, shape),
        covariates=None if covariates is None else covariates.describe(),
        stability=stability,
        scale="" if model.normalization is None else model.normalization.scale,
    )
