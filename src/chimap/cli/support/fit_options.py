"""Options shared by the commands that fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chimap.cli.support import data_rows, options
from chimap.cli.support.options import Precision, Task

Output = Annotated[Path, options.output("MODEL", "Model file to write.")]
Terms = Annotated[str, options.value("N", "Features that the map makes of each bin: a number or auto.")]
Alpha = Annotated[
    str,
    options.value(
        "S", "Strength of the penalty alpha/2 |w|^2 on the weights: a number, or auto for cross-validation."
    ),
]
ClassWeight = Annotated[
    str | None,
    options.optional(
        "WEIGHTS",
        "Weights of the classes: balanced, so that each has the same total weight, or a list such as "
        "active=5,inactive=1.",
    ),
]
Weights = Annotated[
    str,
    options.value(
        "KIND",
        "What --sample-weight says of a row: importance, how much it matters, or frequency, how many equal rows it "
        "stands for.",
    ),
]
Threshold = Annotated[
    str | None,
    options.optional(
        "RULE",
        "How to choose, on held-out rows, the score above which a row belongs to the second of two classes: f1, "
        "balanced, or the cost of missing such a row in units of a false alarm.",
    ),
]
BinWeights = Annotated[
    str,
    options.value(
        "RULE",
        "Whether to weight the bins: learn, auto or none. learn takes the weights from gradients and keeps them "
        "if they help on held-out rows; auto learns them with --kernel auto only.",
    ),
]
TimeLimit = Annotated[
    str | None,
    options.optional(
        "TIME",
        "Time limit of race and fit together: 10m, 90s, 1h30m, or a number of seconds. The best machine so far is "
        "kept. By default, work is counted "
        "instead of time, so that every computer makes the same choice.",
    ),
]
Normalize = Annotated[bool, typer.Option(help="Divide each row, or each of its blocks, by its sum.")]
Normalization = Annotated[
    str | None,
    options.optional(
        "NAME",
        "Normalisation of the rows: l1 (same as --normalize), log1p or sqrt of every bin, log-cpm or log-cp10k (logs "
        "of shares), presence, tf-idf, or none. The best of several, such as none,log-cpm, wins a race.",
    ),
]
Scoring = Annotated[
    str | None,
    options.optional(
        "NAME",
        "Scorer that decides on held-out rows: any of scikit-learn, such as roc_auc or balanced_accuracy. "
        "The default is accuracy, ROC AUC if one of two classes is rare, and R² for regressions.",
    ),
]
TaskOption = Annotated[
    Task, typer.Option(help=f"Whether to fit a classifier or a regression. {data_rows.TASK_RULE}.")
]
TestFraction = Annotated[float, options.value("F", "Share of the rows to hold out and score the model on.")]
Memory = Annotated[
    str,
    options.value("SIZE", "Memory budget of the fit, such as 512MiB. It includes the libraries."),
]
PrecisionOption = Annotated[
    Precision, typer.Option(help="Precision of the features. Sums are always float64.")
]
Folds = Annotated[
    int | None,
    options.optional(
        "K",
        "Number of folds of an exact cross-validation to choose alpha. By default, alpha is chosen by leaving "
        "rows out in closed form.",
    ),
]
