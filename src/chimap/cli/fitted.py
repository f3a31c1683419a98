"""What a fit says of itself: five lines on the terminal, all else with --verbose and by 'chimap info', and JSON."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from chimap._formatting import (
    bin_weights_in_words,
    blocks_in_words,
    class_weights_in_words,
    counted,
    covariates_in_words,
    depth_gain_in_words,
    kernel_in_words,
    left_out_in_words,
    measure_in_words,
    score_in_words,
)
from chimap.cli import show

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap._types import JSON
    from chimap.cli.training import FittedModel
    from chimap.data import Source
    from chimap.reports.measures import LeadingScore

_ROWS_WORTH_TIMING = 10_000  # rows that a machine keeps from which its predictions take a time worth a line
_ROWS_TIMED = 256  # rows that are predicted to time them
_CANDIDATES_LISTED = 5  # candidates of the race to show


def headline(fitted: FittedModel) -> dict[str, str | None]:
    """Return the lines that answer first: the score, the best linear model, what was chosen, and what to heed."""
    source, learned = fitted.source, fitted.model.fitted.learned
    unlearned, missing = learned.findings.n_unlearned, left_out_in_words(source.n_left_out, source.n_unreadable)
    limited = f"{unlearned:,} rows, as the work is limited: --time-limit allows more" if unlearned else ""
    return _score(fitted) | {
        "chosen": chosen_line(fitted.model),
        "left out": "; ".join(filter(None, [missing.removeprefix("; left out: "), limited])) or None,
        "shortcuts": shortcuts_line(fitted),
        "depth": depth_line(fitted.model),
    }


def _score(fitted: FittedModel) -> dict[str, str | None]:
    """Return the score with its interval, beside guessing, and that of the best linear model on the same rows."""
    lead, held_out, race = leading_score(fitted), fitted.held_out, fitted.model.fitted.learned.race
    if lead is None:
        chosen = fitted.model.selection_
        untold = "not measured; --test-fraction 0.2 keeps rows apart"
        return {"score": held_out.line if held_out is not None else untold if chosen is None else chosen.describe()}
    if held_out is not None:
        rows = f"{held_out.metrics.rows_in_words}{'' if held_out.metrics.n_groups else ' kept apart'}"
        linear = None if fitted.linear is None else fitted.linear.line
    else:
        assert race is not None
        rows, linear = f"{race.n_held_out:,} rows left out", race.linear_line
    told = lead.named(f"{lead.in_words} on {rows}{lead.guess_in_words}")
    return {name.replace("balanced accuracy", "balanced"): line for name, line in told.items()} | {
        "best linear": linear
    }


def leading_score(fitted: FittedModel) -> LeadingScore | None:
    """Return the score of the rows kept apart, or else that of the race; None without either."""
    from chimap.reports.measures import LeadingScore

    if fitted.held_out is not None:
        return fitted.held_out.lead
    race = fitted.model.fitted.learned.race
    if race is None:
        return None
    score, interval = race.promise
    return LeadingScore(race.measure, score, interval, _guess(fitted, race.measure))


def _guess(fitted: FittedModel, measure: str) -> float | None:
    """Return the score of guesses that look at no column; None where it is not known."""
    counts = [n for _, n in fitted.model.training_.get("class_counts", ())]
    scoring = measure.removeprefix("mean ").partition(" of ")[0].lower()
    known = {"r2": 0.0, "d2_poisson": 0.0, "d2_pinball": 0.0, "roc_auc": 0.5}
    if counts:
        known |= {"accuracy": max(counts) / sum(counts), "balanced_accuracy": 1 / len(counts)}
    if scoring in known:
        return known[scoring]
    from chimap.data.labelled import labels_of  # these load what most fits do not need
    from chimap.reports.leading import guessed_score, labelled

    return guessed_score(scoring, labelled(fitted.model.fitted, labels_of(fitted.parts.training)))


def chosen_line(model: BaseEstimator) -> str:
    """Return what was chosen, of how many machines; without a race the kernel that was named."""
    race = model.fitted.learned.race
    if race is not None:
        return f"{race.winner.linear_name or race.winner.name}, of {counted(len(race.trials), 'machine')}"
    about = model.describe()
    return f"{kernel_in_words(about['kernel'], about['gamma'])}, as asked for"


def fitted_line(model: BaseEstimator) -> str:
    """Return rows, columns, classes and seconds: '407 rows, 60 columns, 3 classes in 3.2 s'."""
    names, answers = model.fitted.task_names, model.fitted.answers
    what = "numbers" if answers.classes is None else counted(answers.classes.size, "class")
    what = what if names is None else counted(len(names), "quantile" if answers.loss.n_scores > 1 else "task")
    columns = counted(model.n_features_in_, "column")
    return f"{model.n_rows_:,} rows, {columns}, {what} in {show.duration(sum(model.stage_seconds_.values()))}"


def lines_to_keep(fitted: FittedModel) -> dict[str, str]:
    """Return all lines, which the model file keeps for 'chimap info'."""
    lines = headline(fitted) | details(fitted)
    return {name: line for name, line in lines.items() if line is not None}


def details(fitted: FittedModel) -> dict[str, str | None]:
    """Return the lines of --verbose: all that the headline leaves out."""
    model, source = fitted.model, fitted.source
    learned = model.fitted.learned
    held_out, absent = _not_learned_from(fitted)
    rows = f"{model.n_rows_:,}{blocks_in_words(learned.findings.block_rows)}"
    rows += f" plus {held_out:,} held out" if held_out else ""
    unlearned = learned.findings.n_unlearned
    rows += f"; {unlearned:,} left out, as the work is limited: --time-limit allows more" if unlearned else ""
    rows += f"; {absent:,} of weight 0" if absent > 0 else ""
    rows += left_out_in_words(source.n_left_out, source.n_unreadable)
    has_classes = model.fitted.recipe.is_classifier
    task = f"classification, {model.classes_.size:,} classes" if has_classes else "regression"
    if model.fitted.task_names is not None:
        kind = "tasks of two classes" if has_classes else "quantiles" if model.loss == "quantile" else "regressions"
        task = f"{model.n_outputs} {kind}"
    n_features = model.feature_coef_.shape[1]
    about = model.describe()
    in_precision = "" if model.precision == "float32" else f" in {model.precision_}"
    covariates = model.fitted.recipe.covariate_columns
    return {
        "data": source.name,
        "rows": rows,
        "bins": f"{source.n_features:,}",
        "histograms": None if model.histograms_ is None else model.histograms_.describe(),
        "task": f"{task} ({fitted.task_reason})",
        "race": race_lines(model),
        "kernel": kernel_in_words(about["kernel"], about["gamma"]),
        "features": f"{n_features:,}{in_precision}: {about['features']}",
        "loss": loss_line(model),
        "alpha": f"{model.alpha_:.4g} ({choice_of_alpha(model)})",
        "covariates": None if covariates is None else covariates_in_words(covariates.describe()),
        "bin weights": bin_weights_line(model),
        "weights": weights_line(fitted),
        "positive": None if model.positive_ is None else str(model.positive_),
        "threshold": threshold_line(model),
        "held out": fitted.held_out and fitted.held_out.line,
        "time": show.stages(model.stage_seconds_),
        "prediction": prediction_line(model, source),
        "peak memory": f"{show.size(show.peak_memory())}{of_budget(model)}",
    }


def shortcuts_line(fitted: FittedModel) -> str | None:
    """Return what tells the labels besides the counts, by more than two standard errors; None if nothing does."""
    if not fitted.shortcuts:
        return None
    from chimap.diagnostics.shortcuts import shortcuts_in_words

    return shortcuts_in_words(fitted.shortcuts, fitted.model.fitted.recipe.is_classifier)


def depth_line(model: BaseEstimator) -> str | None:
    """Return what thinned copies of the rows gain; None without any."""
    if not model.depth_robust:
        return None
    gain = model.fitted.learned.depth_gain
    return "too few rows to tell what thinned copies gain" if gain is None else depth_gain_in_words(gain)


def choice_of_alpha(model: BaseEstimator) -> str:
    """Return how the strength was chosen."""
    raced = model.fitted.learned.race
    if model.selection_ is None:
        if "alpha" in model.chosen_ and raced is not None:
            return f"chosen by the race, on {raced.trials[0].n_rows:,} rows"
        return "as given" if model.alpha != "auto" else "not cross-validated: too few rows, or all targets are equal"
    chosen = str(model.selection_.describe())
    if model.fitted.learned.findings.n_principal is not None:
        numbers = ", ".join(f"{n:,}" for n in sorted(set(model.selection_.settings["n_components"])))
        chosen += f", with {model.n_principal_:,} components in each block, chosen from {numbers}"
    return chosen


def of_budget(model: BaseEstimator) -> str:
    """Return ' of 2.0 GiB (automatic: up to half of what is free)', the budget of the fit."""
    from chimap._memory import format_bytes

    how = " (automatic: up to half of what is free)" if model.memory == "auto" else ""
    return f" of {format_bytes(model.fitted.recipe.budget)}{how}"


def prediction_line(model: BaseEstimator, source: Source) -> str | None:
    """Return how long a thousand predictions take, for machines of so many rows that it matters; else None."""
    if model.fitted.learned.findings.row_numbers is None or model.n_rows_ < _ROWS_WORTH_TIMING:
        return None
    import numpy as np

    from chimap.reports.rows import taken

    rows = taken(source, np.arange(min(_ROWS_TIMED, source.n_rows)))
    began = time.perf_counter()
    model.predict_source(rows)
    seconds = (time.perf_counter() - began) * 1000 / rows.n_rows
    return f"1,000 rows in {show.duration(seconds)}; chimap compress makes a smaller model"


def race_lines(model: BaseEstimator) -> str | None:
    """Return the best trials of the race, and a last line with the winner and the linear model; None without a race."""
    result = model.fitted.learned.race
    if result is None:
        return None
    from chimap.models.race_result import SAME

    best = result.trials[0]
    lines = [
        f"{score_in_words(t.score, result.measure)}  {t.candidate.name} ({t.n_rows:,} rows, {show.duration(t.seconds)})"
        for t in result.trials[:_CANDIDATES_LISTED]
    ]
    verdict = (
        f"{best.candidate.name} {score_in_words(best.score, result.measure)}{result.against_linear} "
        f"({measure_in_words(result.measure)} on {result.n_held_out:,} held-out rows)"
    )
    if result.expected is not None:
        verdict += f". Expect {result.promise_in_words} of unseen rows"
    if best.score < max(t.score for t in result.trials if t.n_rows == best.n_rows) - SAME:
        verdict += ". Others lead by no more than chance, and tables of the kind mostly prefer the winner"
    if any(trial.candidate.settings.get("bin_weights") == "learn" for trial in result.trials[1:]):
        verdict += ". Learned bins are taken only if they gain more than two standard errors"
    return "\n".join([*lines, verdict])


def _not_learned_from(fitted: FittedModel) -> tuple[int, int]:
    """Return the numbers of held-out rows and of rows with weight 0."""
    held_out = 0 if fitted.held_out is None else fitted.held_out.metrics.n_rows
    unlearned = fitted.model.fitted.learned.findings.n_unlearned or 0
    return held_out, fitted.source.n_rows - fitted.model.n_rows_ - unlearned - held_out


def bin_weights_line(model: BaseEstimator) -> str | None:
    """Return the heaviest bins, or why none could be learned; None for equal weights."""
    if isinstance(model.bin_weights, str) and model.bin_weights == "learn" and model.fitted.learned.race is None:
        return "equal, as --memory is too small to learn them"
    return bin_weights_in_words(model.bin_weights_, model.fitted.columns)


def weights_line(fitted: FittedModel) -> str | None:
    """Return 'rows by times; classes 0.52 (inactive), 12.3 (active)', or None if all rows count equally."""
    model, by = fitted.model, (fitted.model.training_["table"] or {}).get("sample_weight")
    names = model.fitted.task_names or (model.classes_ if model.fitted.recipe.is_classifier else None)
    by_class = class_weights_in_words(names, model.fitted.task.class_weight)
    of_rows = f"rows by {by}, numbers of equal rows" if model.weights == "frequency" else f"rows by {by}"
    kinds = [of_rows if by else None, f"classes {by_class}" if by_class else None]
    return "; ".join(kind for kind in kinds if kind) or None


def threshold_line(model: BaseEstimator) -> str | None:
    """Return '-0.42: scores above it mean active (chosen by f1 on held-out rows)', or None without a threshold.

    If the positive class was named, the line says on which side it is, and that the rule is about it.
    """
    from chimap.reports.classification import threshold_in_words

    answers = model.fitted.answers
    if not model.fitted.recipe.is_classifier or answers.threshold is None:
        return None
    rule = model.threshold if isinstance(model.threshold, str) else f"a cost of {model.threshold:g}"
    about = "" if model.positive_ is None else f" of {model.positive_}"
    meaning = threshold_in_words(answers.threshold, model.classes_, model.positive_)
    return f"{meaning} (chosen by {rule}{about} on held-out rows)"


def loss_line(model: BaseEstimator) -> str | None:
    """Return a line such as 'logistic, 59 passes', or None for the square loss, the default."""
    loss = model.chosen_.get("loss", model.loss)
    if loss == "square":
        return None
    if loss == "quantile":
        loss = f"{loss} {', '.join(f'{level:g}' for level in model.loss_.levels)}"
    if model.n_passes_ == 1:
        return str(loss)
    return f"{loss}, {model.n_passes_} passes" if model.n_passes_ else f"{loss}, by LIBLINEAR"


def fit_as_dict(fitted: FittedModel, output: Path) -> JSON:
    """Return the values of ``--json``."""
    model, source = fitted.model, fitted.source
    held_out, learned = fitted.held_out, model.fitted.learned
    covariates = model.fitted.recipe.covariate_columns
    return {
        "command": "fit",
        "model": str(output),
        "model_bytes": output.stat().st_size,
        "data": source.name,
        "rows": model.n_rows_,
        "block_rows": learned.findings.block_rows,
        "covariates": covariates and covariates.describe(),
        "rows_unlearned": learned.findings.n_unlearned or 0,
        "rows_held_out": _not_learned_from(fitted)[0],
        "rows_of_weight_0": _not_learned_from(fitted)[1],
        "rows_left_out": source.n_left_out,
        "rows_unreadable": source.n_unreadable,
        "bins": source.n_features,
        "task": model.training_["task"],
        "task_reason": fitted.task_reason,
        "classes": model.classes_ if model.fitted.recipe.is_classifier else None,
        "kernel": model.kernel_.name,
        "gamma": model.describe()["gamma"],
        "features": model.feature_coef_.shape[1],
        "precision": model.precision_,
        "race": learned.race and learned.race.rows(),
        "race_expected": learned.race and learned.race.expected,
        "bin_weights": model.bin_weights_,
        "loss": model.chosen_.get("loss", model.loss),
        "alpha": model.alpha_,
        "class_weight": model.fitted.task.class_weight,
        "positive": model.positive_,
        "threshold": model.fitted.answers.threshold if model.fitted.recipe.is_classifier else None,
        "depth_gain": learned.depth_gain,
        "cross_validated_r2": cross_validated_r2(model),
        "shortcuts": [vars(line) for line in fitted.shortcuts],
        "held_out": held_out and {**held_out.metrics.as_dict(), "baseline": held_out.baseline.as_dict()},
        "leading_score": (lead := leading_score(fitted)) and lead.as_dict(),
        "linear": fitted.linear and fitted.linear.as_dict(),
        "seconds": model.stage_seconds_,
        "peak_memory_bytes": show.peak_memory(),
        "settings": model.training_["settings"],
        "version": model.training_["version"],
    }


def cross_validated_r2(model: BaseEstimator) -> float | None:
    """Return R², 1 - error / total, at the chosen strength, or None if the strength was given."""
    scores = model.selection_
    if scores is None or not scores.baseline > 0:
        return None
    return float(scores.r2[scores.chosen])
