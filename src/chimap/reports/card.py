"""Model cards: what a model was fitted on, how it scored, what it rests on and what limits it, as Markdown.

Everything is read from the model; what it does not hold is left out. The header is the YAML by which hubs list models:
https://huggingface.co/docs/hub/model-cards, after Mitchell and others, Model Cards for Model Reporting, FAT* 2019.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chimap._errors import InputError
from chimap._formatting import (
    class_weights_in_words,
    counted,
    interval_in_words,
    kernel_in_words,
    measure_in_words,
    number,
    one_line,
    score_in_words,
)
from chimap._types import JSON
from chimap.data.units import TELLS
from chimap.models.answers import ClassAnswers
from chimap.reports.importance import importance_of

if TYPE_CHECKING:
    from chimap.models.model import Model
    from chimap.models.predictor import Predictor

_BINS = 10  # that are listed
_CLASSES = 30  # whose rows are listed, those with the fewest
_IN_WORDS = {"auc": "roc_auc", "macro_f1": "macro F1", "rmse": "RMSE", "mae": "MAE"}
_OF_HUBS = {"auc": "roc_auc", "macro_f1": "f1", "r2": "r_squared"}  # names of measures, where a hub has others


def card(model: Predictor, name: str = "model") -> str:
    """Return the card of a fitted model, as Markdown with a YAML header.

    Parameters
    ----------
    model : Model
        The model; one of tables is described by the model that it was compiled from.
    name : str, default="model"
        What to call it: the name of its file.

    Returns
    -------
    str

    Raises
    ------
    InputError
        If the model was compiled from codes, and holds no model that was fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(n_class=3, return_X_y=True)
    >>> text = HistogramClassifier("chi2", random_state=0).fit(X, y).card("digits")
    >>> print(text[text.index("# digits") : text.index("## Data")])
    # digits
    <BLANKLINE>
    A classifier of 3 classes (0, 1, 2), by the kernel chi2 on rows of 64 bins.
    <BLANKLINE>
    """
    fitted: Model | None = model.exact
    if fitted is None:
        raise InputError("a model of codes says nothing of its fit: make the card of the model that it was made from.")
    sections = {
        "Data": _pairs(_data(fitted)) + _class_rows(fitted),
        "Scores": _scores(fitted),
        "Model": _pairs(_machine(fitted)),
        "What it rests on": _bins(fitted),
        "Limits": [f"- {line}" for line in _limits(fitted)],
        "Versions": _pairs(_versions(fitted)),
    }
    lines = [*_header(fitted, name), "", f"# {one_line(name)}", "", _sentence(fitted), ""]
    for title, section in sections.items():
        lines += [f"## {title}", "", *section, ""] if section else []
    return "\n".join(lines)


def _header(model: Model, name: str) -> list[str]:
    """Return the YAML header; JSON is YAML, so that texts of any kind are quoted as they have to be."""
    kind = "tabular-classification" if model.recipe.is_classifier else "tabular-regression"
    measures = {_OF_HUBS.get(key, key): value for key, value, _ in _measured(model)}
    header: JSON = {"library_name": "chimap", "pipeline_tag": kind}
    header["tags"] = [kind, "chimap", "kernel-machine", "histograms", *([] if not model.task_names else ["multi-task"])]
    if measures:
        results = {
            "task": {"type": kind},
            "dataset": {"type": "tabular", "name": model.training["file"]},
            "metrics": [{"type": key, "value": value} for key, value in measures.items()],
        }
        header |= {"metrics": list(measures), "model-index": [{"name": name, "results": [results]}]}
    return ["---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items()), "---"]


def _sentence(model: Model) -> str:
    """Return what the model predicts, from what."""
    answers, tasks = model.answers, model.task_names
    if tasks is not None:
        what = f"{'classifier of two classes' if model.recipe.is_classifier else 'regression'} for each of {len(tasks)}"
        what = f"{what} tasks ({_listed(tasks)})"
    elif isinstance(answers, ClassAnswers):
        what = f"classifier of {counted(answers.classes.size, 'class')} ({_listed(answers.classes.tolist())})"
    else:
        what = "regression"
    return f"A {what}, by the kernel {model.describe()['kernel']} on rows of {counted(model.schema.n_features, 'bin')}."


def _data(model: Model) -> dict[str, object]:
    """Return the rows of the fit."""
    about = model.training
    split, table = about.get("split") or {}, about.get("table") or {}
    apart = {"column": "the test rows of {}", "time": "the latest by {}", "groups": "whole groups of {}"}
    held = next((text.format(split[key]) for key, text in apart.items() if key in split), "drawn at random")
    n_held_out = (about.get("held_out") or {}).get("rows")
    ends = about.get("target_range")
    covariates = model.recipe.covariate_columns
    return {
        "File": about.get("file"),
        "Rows in it": about.get("rows_in_file"),
        "Rows learned from": model.learned.n_rows,
        "Rows held out": n_held_out and f"{n_held_out:,}, {held}",
        "Bins": model.schema.n_features,
        "Names of bins": model.schema.names and _listed(model.schema.names),
        "Labels": about.get("labels"),
        "Labels range": ends and f"{number(ends[0])} to {number(ends[1])}, mean {number(about['target_mean'])}",
        "Groups": table.get("groups"),
        "Covariates": None if covariates is None else ", ".join(covariates.names),
        "Weights of rows": table.get("sample_weight"),
        "Fitted on": about.get("date"),
    }


def _class_rows(model: Model) -> list[str]:
    """Return a table of the rows of each class, those with the fewest first."""
    counts = sorted(model.training.get("class_counts") or [], key=lambda pair: pair[1])
    if not counts:
        return []
    table = ["", *_table(("Class", "Rows learned from"), counts[:_CLASSES])]
    n_more = len(counts) - _CLASSES
    return [*table, "", f"and {n_more:,} more classes, of as many rows or more"] if n_more > 0 else table


def _measured(model: Model) -> list[tuple[str, float, Sequence[float] | None]]:
    """Return name, value and interval of each measure of the held-out rows."""
    held: JSON = model.training.get("held_out") or {}
    found = {name: value for name, value in (held | (held.get("means") or {})).items() if isinstance(value, float)}
    return [(name, value, held.get(f"{name}_interval")) for name, value in found.items() if name != "confidence"]


def _scores(model: Model) -> list[str]:
    """Return the scores of held-out rows, and those by which the fit chose."""
    about, learned, lines = model.training, model.learned, []
    measured = _measured(model)
    if measured:
        held = about["held_out"]
        level = f"{100 * held['confidence']:g} % interval" if "confidence" in held else "Interval"
        rows = [
            (measure_in_words(_IN_WORDS.get(name, name)), _told(value, name), _interval(ends, name))
            for name, value, ends in measured
        ]
        of_groups = "" if not held.get("groups") else f" of {held['groups']:,} groups"
        lines += [f"Of {held['rows']:,} rows{of_groups} that the fit has not seen:", ""]
        lines += _table(("Mean over the tasks" if "tasks" in held else "Measure", "Value", level), rows)
        lines += _of_tasks(held, measured[0][0], level)
        guess, leads = held["baseline"], measured[0][0] if model.recipe.is_classifier else "rmse"
        of = measure_in_words(_IN_WORDS.get(leads, leads))
        lines += ["", f"Without a model, {guess['name']}: {of} {_told(guess['value'], leads)}."]
        rival = about.get("linear")
        if rival and not rival["is_own"]:
            score = f"{measure_in_words(rival['measure'])} {score_in_words(rival['score'], rival['measure'])}"
            tie = "; a tie within the error" if rival.get("ties") else ""
            lines += ["", f"The best linear model, {rival['name']}: {score}{tie}."]
    if (race := learned.race) is not None:
        won = f"Of {counted(len(race.trials), 'candidate')}, {race.winner.name} won: expect {race.promise_in_words}"
        lines += ["", f"{won}, the {measure_in_words(race.measure)} of unseen rows."]
    if (chosen := learned.selection) is not None and chosen.baseline > 0:
        lines += ["", f"R² of rows left out, which chose the strength: {number(float(chosen.r2[chosen.chosen]))}."]
    return lines[1:] if lines and not lines[0] else lines


def _of_tasks(held: JSON, leading: str, level: str) -> list[str]:
    """Return a table of the leading measure of each of several tasks, the lowest first; empty for one."""
    known = [task for task in held.get("tasks", ()) if task[leading] is not None]
    known.sort(key=lambda task: task[leading])
    rows = [
        (task["name"], task["rows"], _told(task[leading], leading), _interval(task.get(f"{leading}_interval"), leading))
        for task in known[:_CLASSES]
    ]
    return ["", *_table(("Task", "Rows", measure_in_words(leading), level), rows)] if rows else []


def _told(value: float, measure: str) -> str:
    """Return a score as pages and terminals show it; errors in the unit of the target have no decimals of their own."""
    return number(value) if measure in ("rmse", "mae") else score_in_words(value, measure)


def _interval(ends: Sequence[float] | None, measure: str) -> str:
    if ends is None or measure in ("rmse", "mae"):
        return " to ".join(map(number, ends or ()))
    return interval_in_words((ends[0], ends[1]), measure)


def _machine(model: Model) -> dict[str, object]:
    """Return the settings of the machine, as they were chosen."""
    recipe, about = model.recipe, model.describe()
    names = model.task_names or (model.answers.classes if isinstance(model.answers, ClassAnswers) else None)
    return {
        "Kernel": kernel_in_words(about["kernel"], about["gamma"]),
        "Features": about["features"],
        "Normalisation": model.normalization and recipe.normalize,
        "Loss": recipe.requested_loss,
        "Strength alpha": f"{model.learned.alpha:.4g}",
        "Class weights": class_weights_in_words(names, model.task.class_weight),
        "Positive class": model.positive,
        "Threshold": getattr(model.answers, "threshold", None),
    }


def _bins(model: Model) -> list[str]:
    """Return a table of the bins that matter most, over rows like those of the fit."""
    if model.learned.rows is None or (model.mapped() is None and not model.is_additive):
        return ["Its kernel compares whole rows: `chimap explain MODEL DATA` measures on rows which bins decide."]
    ranked = importance_of(model, None, None, "auto")
    rows = [(one_line(name), number(float(value), 3)) for name, value in zip(ranked.names, ranked.values, strict=True)]
    return _table(("Bin", f"Importance ({ranked.kind})"), rows[:_BINS])


def _limits(model: Model) -> list[str]:
    """Return what the model cannot know, by what the rows of its fit lacked."""
    schema, found = model.schema, []
    held: JSON = model.training.get("held_out") or {}
    low = (held.get("accuracy_interval") or (None,))[0]
    if low is not None and low <= held["baseline"]["value"]:
        found.append(f"It is not shown to be more accurate than {held['baseline']['name']}: see the interval above.")
    counts = model.training.get("class_counts")
    if counts:
        name, n = min(counts, key=lambda pair: pair[1])
        found.append(f"The class with the fewest rows is {one_line(name)}: {counted(n, 'row')}.")
    if schema.mass is not None and (unseen := int((schema.mass.shares == 0).sum())):
        found.append(f"{counted(unseen, 'bin')} of {schema.n_features:,} were empty in all rows that describe the fit.")
    if (units := schema.units) is not None:
        found.append(f"Entries were {'whole numbers' if units.is_whole else 'fractions'}.")
        for what, spread in (("summed to {}", units.totals), ("filled {} bins", units.filled)):
            if spread is not None:
                ends = f"{number(spread.low)} to {number(spread.high)}"
                found.append(f"Nine rows of ten {what.format(ends)}, with the median {number(spread.median)}.")
        if units.totals_tell is not None and units.totals_tell >= TELLS:
            found.append(f"The totals of rows alone tell its classes, with a ROC AUC of {number(units.totals_tell)}.")
    if model.learned.findings.n_unlearned:
        found.append(f"{counted(model.learned.findings.n_unlearned, 'row')} were left out, as the work was limited.")
    return found


def _versions(model: Model) -> dict[str, object]:
    return {"chimap": model.training.get("version"), "RDKit": getattr(model.schema.reading, "rdkit", None)}


def _pairs(facts: dict[str, object]) -> list[str]:
    """Return a list of facts; those that are None are left out."""
    told = {
        name: f"{value:,}" if isinstance(value, int) else one_line(value)
        for name, value in facts.items()
        if value is not None
    }
    return [f"- {name}: {value}" for name, value in told.items()]


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return a table of Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    cells = [[f"{cell:,}" if isinstance(cell, int) else one_line(cell) for cell in line] for line in lines]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in cells]


def _listed(names: Sequence[object], most: int = 12) -> str:
    return ", ".join(one_line(name, 40) for name in names[:most]) + (", ..." if len(names) > most else "")
