"""How to fit: the settings that flags become, and the flags that the commands that fit share."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chimap.cli.support import data_rows, flag_values, options
from chimap.cli.support.declared import default
from chimap.cli.support.options import Engine, Precision, Task

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap._types import JSON


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to fit: the flags of ``chimap fit``, and their defaults, which are those of the estimator."""

    kernel: str = default("kernel")
    gamma: str = default("gamma")
    terms: str = default("n_terms")
    components: str | int = default("n_components")
    map: str = "optimal"
    sampling: str = default("sampling")
    alpha: str = default("alpha")
    normalize: bool = False
    task: Task = Task.auto
    test_fraction: float = 0.0
    memory: str = default("memory")
    precision: Precision = Precision[default("precision")]
    engine: Engine = Engine.local
    jobs: int | None = default("n_jobs")
    folds: int | None = None
    seed: int = 0
    loss: str = default("loss")
    blocks: str | None = None
    principal: str | None = None
    device: str = default("device")
    features: str = default("features")
    normalization: str | None = None
    scoring: str | None = None
    class_weight: str | None = None
    threshold: str | None = None
    bin_weights: str = default("bin_weights")
    race_seconds: float | None = default("race_seconds")

    @property
    def preparation(self) -> str | None:
        """What is done to each row before it is mapped."""
        return "l1" if self.normalize else self.normalization

    @property
    def kernels(self) -> list[str]:
        """One name, or one a block."""
        return flag_values.listed(self.kernel)

    @property
    def n_terms(self) -> int | None:
        """Features a bin; None for auto, for which each family of features has a number."""
        if self.terms == "auto":
            return None
        if not self.terms.isdecimal():
            raise ValueError(f"--terms must be auto or a whole number of at least 1; got {self.terms!r}.")
        return int(self.terms)

    @property
    def n_components(self) -> int | str:
        """A number, or "auto"."""
        text = str(self.components)
        if text == "auto":
            return text
        if not text.isdecimal():
            raise ValueError(f"--components must be auto or a whole number of at least 2; got {text!r}.")
        return int(text)

    def check_components(self) -> None:
        """Refuse a number of features that no fit takes. Raises ValueError naming the flag."""
        number = self.n_components
        flag_values.check_least(None if isinstance(number, str) else number, "--components", 2)

    def check(self, n_descriptors: int = 0) -> None:
        """Refuse, before any row is read, what the fit would refuse later. Raises ValueError naming the flag.

        n_descriptors: of images, which are blocks unless other ones are given.
        """
        from chimap._memory import parse_memory
        from chimap.backends import check_device

        for kernel in self.kernels:
            flag_values.check_kernel(kernel)
            flag_values.check_map(self.map, kernel)
        blocks = flag_values.blocks_of(self.blocks)
        n_blocks = n_descriptors if blocks is None else len(blocks)
        if len(self.kernels) > 1 and len(self.kernels) != n_blocks:
            raise ValueError(f"--kernel names {len(self.kernels)} kernels; --blocks must then be as many.")
        flag_values.check_sampling(self.sampling)
        check_device(self.device)
        flag_values.check_loss(self.loss)
        flag_values.gamma_of(self.gamma)
        if self.normalize and self.normalization not in (None, "l1"):
            raise ValueError(
                f"--normalize is --normalization l1, and {self.normalization} is given: leave one out."
            )
        flag_values.check_normalization(self.normalization)
        flag_values.check_scoring(self.scoring)
        flag_values.number_or("auto", self.alpha, "--alpha")
        self.check_components()
        for flag, value, least in (
            ("--terms", self.n_terms, 1),
            ("--folds", self.folds, 2),
            ("--jobs", self.jobs, 1),
            ("--seed", self.seed, 0),
        ):
            flag_values.check_least(value, flag, least)
        flag_values.one_or_several(self.principal, "--principal")
        if self.bin_weights not in ("auto", "learn", "none"):
            raise ValueError(f"--bin-weights must be auto, learn or none; got {self.bin_weights!r}.")
        if self.race_seconds is not None and not self.race_seconds > 0:
            raise ValueError(f"--race-seconds must be above 0; got {self.race_seconds:g}.")
        flag_values.class_weight_of(self.class_weight)
        flag_values.threshold_of(self.threshold)
        if not 0 <= self.test_fraction < 1:
            raise ValueError(f"--test-fraction must be at least 0 and below 1; got {self.test_fraction:g}.")
        parse_memory(self.memory)

    def weighing(self, y: np.ndarray) -> JSON:
        """The parameters of the model that say how classes count, whose labels are y."""
        return {
            "class_weight": flag_values.class_weight_of(self.class_weight, y),
            "threshold": flag_values.threshold_of(self.threshold),
        }

    def estimator(self, task: Task) -> BaseEstimator:
        """The unfitted model that these settings describe, but for ``weighing``."""
        from chimap import HistogramClassifier, HistogramRegressor
        from chimap.features.additive import CATALOGUE as MAPS

        n_terms: int | str = "auto" if self.n_terms is None else self.n_terms
        return (HistogramClassifier if task is Task.classify else HistogramRegressor)(
            self.kernels if len(self.kernels) > 1 else self.kernels[0],
            gamma=flag_values.gamma_of(self.gamma),
            n_components=self.n_components,
            n_terms=n_terms,
            map=None
            if self.map == "optimal"
            else MAPS[self.map](**({} if self.n_terms is None else {"n_terms": self.n_terms})),
            features=self.features,
            sampling=self.sampling,
            normalize=self.preparation,
            blocks=flag_values.blocks_of(self.blocks),
            bin_weights=None if self.bin_weights == "none" else self.bin_weights,
            race_seconds=self.race_seconds,
            n_principal=flag_values.one_or_several(self.principal, "--principal"),
            loss=self.loss,
            alpha=flag_values.number_or("auto", self.alpha, "--alpha"),
            scoring=self.scoring,
            selection="auto" if self.folds is None else self.folds,
            memory=self.memory,
            precision=self.precision.value,
            device=self.device,
            n_jobs=self.jobs,
            random_state=self.seed,
        )


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
        help="How to choose the score above which a row is of the second of two classes, on rows "
        "held out: f1, balanced, "
        "or the cost of missing such a row, in units of a false alarm.",
        show_default=False,
    ),
]
BinWeights = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="Weights of bins: learn, from gradients, kept if they help on rows held out; none; or "
        "auto, which learns "
        "them with --kernel auto.",
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
        help="The score that decides, on rows held out: any scorer of scikit-learn, such as roc_auc "
        "or balanced_accuracy. "
        "Without it, accuracy; ROC AUC where one of two classes is rare; R² of numbers.",
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
