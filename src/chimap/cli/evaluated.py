"""The result of evaluating a model on rows, and the report page made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from chimap.cli.held_out_rows import Chosen
    from chimap.cli.score import Score
    from chimap.report import Evaluation, Insight, SplitScores


class Evaluated(NamedTuple):
    """A model, the rows it was evaluated on, and its score."""

    model: Any
    chosen: Chosen
    score: Score
    splits: SplitScores | None = None
    insight: Insight | None = None


def page_of(evaluated: Evaluated) -> Evaluation:
    """Return everything that the page and ``--json`` show."""
    from chimap.report import Evaluation

    model, source = evaluated.model, evaluated.chosen.source
    # for a compiled model: the model that it was made from, if it was kept
    fitted = getattr(model, "exact_", model)
    training = getattr(model, "training_", None) or {}
    seconds = {f"fit: {name}": time for name, time in getattr(fitted, "stage_seconds_", {}).items()}
    data = {
        "file": source.name.partition(",")[0],
        "rows": source.n_rows,
        "which rows": evaluated.chosen.which,
        "rows left out, without a label": source.n_left_out or None,
        "bins": source.n_features,
        "rows trained on": getattr(fitted, "n_rows_", None),
        "trained on": training.get("file"),
        "trained at": training.get("date"),
    }
    return Evaluation(
        title=f"{model.describe()['kernel']} on {data['file']}",
        model_name=type(model).__name__,
        data={name: value for name, value in data.items() if value is not None},
        metrics=evaluated.score.metrics,
        baseline=evaluated.score.baseline,
        curve=None if fitted is None else strength_curve(fitted),
        components=None if fitted is None else component_scores(fitted),
        stages=seconds | {"predict": evaluated.score.seconds},
        settings=model.get_params(deep=False) if fitted is None else _settings(fitted),
        ranking=evaluated.score.ranking,
        examples=_examples(evaluated),
        splits=evaluated.splits,
        insight=evaluated.insight,
        reliability=evaluated.score.reliability,
    )


def _examples(evaluated: Evaluated) -> Any:
    """Return the most confused images and the top-ranked images of each class, or None if the rows are not images."""
    from chimap.cli.image_rows import images_of
    from chimap.report import examples

    score, images = evaluated.score, images_of(evaluated.chosen.source)
    if score.ranking is None or score.outcome is None or images is None:
        return None
    return examples(score.metrics, score.ranking, *score.outcome, read=images.read)  # type: ignore[arg-type]


def strength_curve(model: Any) -> Any:
    """Return the scores from which the strength was chosen, or None if it was given."""
    from chimap.report import StrengthCurve

    return StrengthCurve.of(model.selection_, isinstance(model.alpha, str))


def component_scores(model: Any) -> Any:
    """Return the scores from which the number of principal components was chosen, or None if it was given."""
    from chimap.report import ComponentScores

    return ComponentScores.of(model.selection_)


def _settings(model: Any) -> dict[str, Any]:
    """Return the parameters of the estimator, with learned values in place of instructions such as "auto"."""
    parameters = model.get_params(deep=False)
    left_out = ("verbose", "kernel", "gamma", "alpha", "map")
    learned = {
        "kernel": model.kernel_.name,
        "gamma": getattr(model.kernel_, "gamma", None),
        "alpha": model.alpha_,
        "features": model.coef_.shape[1],
    }
    return learned | {name: value for name, value in parameters.items() if name not in left_out}
