"""Options that several of the commands that fit have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chimap.cli.support import data_rows, options
from chimap.cli.support.options import Precision, Task

Output = Annotated[Path, options.output("MODEL", "The model file to write.")]
Terms = Annotated[
    str,
    typer.Option(metavar="N", help="Terms, the numbers that the map makes of one bin: a number, or auto."),
]
Alpha = Annotated[
    str,
    typer.Option(
        metavar="S",
        help="Strength of the penalty alpha/2 |w|^2 on the weights: a number, or auto, chosen by cross-validation.",
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        metavar="WEIGHTS",
        help="Weight of the rows of each class: balanced, the same sum for each; or active=5,inactive=1.",
        show_default=False,
    ),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="How to choose the score above which a row is of the second of two classes, on rows held out: f1, "
        "balanced, or the cost of missing such a row, in units of a false alarm.",
        show_default=False,
    ),
]
BinWeights = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="Weights of bins: learn, from gradients, kept if they help on rows held out; none; or auto, which "
        "learns them with --kernel auto.",
    ),
]
RaceSeconds = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="Start no trial of the race after so many seconds. Without it work is counted instead, so that every "
        "machine chooses the same.",
        show_default=False,
    ),
]
Normalize = Annotated[bool, typer.Option(help="Divide each row, or each block of it, by its sum.")]
Normalization = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What to do to rows first: l1 (the same as --normalize), or log1p or sqrt of every bin.",
        show_default=False,
    ),
]
Scoring = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The score that decides, on rows held out: any scorer of scikit-learn, such as roc_auc or "
        "balanced_accuracy. Without it, accuracy; ROC AUC where one of two classes is rare; R² of numbers.",
        show_default=False,
    ),
]
TaskOption = Annotated[Task, typer.Option(help=f"What the labels are. {data_rows.TASK_RULE}.")]
TestFraction = Annotated[
    float, typer.Option(metavar="F", help="Share of the rows to hold out and to score the model on.")
]
Memory = Annotated[
    str,
    typer.Option(
        metavar="SIZE", help="Memory that the fit may use, such as 512MiB, that of the libraries included."
    ),
]
PrecisionOption = Annotated[
    Precision, typer.Option(help="Precision of the features; sums are always float64.")
]
Folds = Annotated[
    int | None,
    typer.Option(
        metavar="K",
        help="Choose alpha by exact cross-validation over so many folds; without it, by rows left "
        "out in closed form.",
        show_default=False,
    ),
]
