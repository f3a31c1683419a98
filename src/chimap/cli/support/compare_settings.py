"""The options of ``chimap compare``, and the comparisons that they describe."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from chimap._errors import InputError
from chimap.cli.support import data_rows, fit_options, flag_values, options
from chimap.cli.support.declared import constant
from chimap.cli.support.fit_settings import Settings
from chimap.cli.support.options import Task

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap._types import JSON
    from chimap.data import Source
    from chimap.engines import Progress
    from chimap.report import Comparison, KernelErrors


class ComparedPrecision(StrEnum):
    """Precision of the compared features. Only a fit takes bfloat16, and "auto" means float32 here."""

    auto = "auto"
    float32 = "float32"
    float64 = "float64"


_ERRORS = "comparison/feature_candidates.py"


def _listed(file: str, name: str) -> str:
    return ",".join(map(str, constant(file, name)))


@dataclasses.dataclass(frozen=True)
class CompareSettings:
    """The options of ``chimap compare`` that set what runs and how it is scored."""

    kernel: Annotated[
        str | None,
        options.optional(
            "NAME",
            "Compare the features of one kernel, named as for 'chimap fit'. By default, compare all kernels.",
        ),
    ] = None
    gamma: Annotated[
        str,
        options.value("G", "Scale of an exponential --kernel: a number, or auto to let each fit choose it."),
    ] = "auto"
    components: Annotated[
        str, options.value("N,N", "Numbers of landmarks and of random features to try.")
    ] = _listed("comparison/full_race.py", "SIZES")
    normalization: fit_options.Normalization = None
    scoring: fit_options.Scoring = None
    class_weight: fit_options.ClassWeight = None
    kernel_errors: Annotated[
        bool,
        typer.Option(
            "--kernel-errors",
            help="Also measure how far maps and features of --kernel are from the exact kernel. Without labels, "
            "measure only this.",
        ),
    ] = False
    maps: Annotated[
        str | None,
        options.optional(
            "A,B",
            "Maps that --kernel-errors tries. The default is every map for an additive kernel, and optimal for "
            "an exponential one.",
        ),
    ] = None
    terms: Annotated[
        str | None,
        options.optional(
            "N,N",
            f"Terms that --kernel-errors tries. The default is {_listed(_ERRORS, 'TERMS')} for an additive "
            f"kernel, and {_listed(_ERRORS, '_INNER_TERMS')} for an exponential one.",
        ),
    ] = None
    time_limit: fit_options.TimeLimit = None
    task: fit_options.TaskOption = Task.auto
    memory: Annotated[
        str, options.value("SIZE", "Memory budget of the comparison and of the recommended fit.")
    ] = Settings.memory
    precision: Annotated[ComparedPrecision, typer.Option(help="Precision of the features.")] = (
        ComparedPrecision.float32
    )
    jobs: options.Jobs = Settings.jobs
    seed: options.Seed = Settings.seed

    @property
    def sizes(self) -> list[int]:
        """Numbers of landmarks and of random features to try."""
        return flag_values.whole_numbers(self.components, "--components")

    def check(self) -> None:
        """Raise ValueError, naming the flag, before any row is read, for settings that cannot work."""
        self._check_kernel()
        flag_values.gamma_of(self.gamma)
        flag_values.normalization_of(self.normalization)
        flag_values.check_scoring(self.scoring)
        flag_values.class_weight_of(self.class_weight)
        for name in self._maps() or []:
            flag_values.check_map(name, str(self.kernel), "--maps")
        if self.terms is not None:
            flag_values.whole_numbers(self.terms, "--terms")
        flag_values.seconds_of(self.time_limit, "--time-limit")
        flag_values.check_least(self.jobs, "--jobs")
        flag_values.check_least(self.seed, "--seed", 0)
        assert self.sizes

    def _check_kernel(self) -> None:
        """Refuse options that need --kernel, or --kernel-errors, without it."""
        if self.kernel == "auto":
            raise InputError(
                "--kernel auto means every kernel, the default of 'chimap compare': leave --kernel out."
            )
        if self.kernel is not None:
            flag_values.check_kernel(self.kernel)
        single_kernel_flags = {
            "--normalization": self.normalization is not None,
            "--gamma": self.gamma != "auto",
        }
        for flag, is_given in single_kernel_flags.items():
            if is_given and self.kernel is None:
                raise InputError(
                    f"{flag} applies to a single kernel: name it with --kernel, or leave {flag} out."
                )
        if self.kernel_errors and self.kernel is None:
            raise InputError("--kernel-errors needs a single kernel: name it with --kernel, such as chi2.")
        for flag, text in (("--maps", self.maps), ("--terms", self.terms)):
            if text is not None and not self.kernel_errors:
                raise InputError(
                    f"{flag} applies to --kernel-errors: add --kernel-errors, or leave {flag} out."
                )

    def _maps(self) -> list[str] | None:
        if self.maps is None:
            return None
        names = flag_values.listed(self.maps)
        if not names:
            raise InputError(f"--maps must name at least one map; got {self.maps!r}.")
        return names

    def race(self, source: Source, groups: np.ndarray | None, progress: Progress) -> Comparison:
        """Run the race on rows with labels."""
        from chimap.comparison import compare
        from chimap.data.labelling import with_numbers

        y = data_rows.labels_of(source)
        task, _ = data_rows.decide_task(y, self.task, source.name)
        source = with_numbers(source) if task is Task.regress else source
        return compare(
            self._estimator(task, y, source.name), source, kernel=self.kernel, gamma=flag_values.gamma_of(self.gamma),
            normalize=flag_values.normalization_of(self.normalization), sizes=self.sizes, groups=groups,
            progress=progress,
        )  # fmt: skip

    def errors(self, source: Source, progress: Progress) -> KernelErrors:
        """Measure how far the features are from the exact kernel."""
        from chimap.comparison import kernel_errors

        assert self.kernel is not None  # ``check`` has made sure
        return kernel_errors(
            source,
            kernel=self.kernel,
            gamma="mean" if self.gamma == "auto" else flag_values.gamma_of(self.gamma),
            maps=self._maps(),
            n_terms=None if self.terms is None else flag_values.whole_numbers(self.terms, "--terms"),
            n_components=self.sizes,
            progress=progress,
            **self._common(),
        )

    def for_fit(self) -> JSON:
        """Return the options that the recommended ``chimap fit`` shares, by flag."""
        names = ("task", "seed", "memory", "precision", "scoring", "class_weight")
        return {name.replace("_", "-"): getattr(self, name) for name in names}

    def _estimator(self, task: Task, y: np.ndarray, name: str) -> BaseEstimator:
        import numpy as np

        from chimap import HistogramClassifier, HistogramRegressor
        from chimap._validation import DataError

        seconds = flag_values.seconds_of(self.time_limit, "--time-limit")
        if task is not Task.classify:
            return HistogramRegressor(scoring=self.scoring, time_limit=seconds, **self._common())
        if y.ndim == 1 and np.unique(y).size < 2:
            raise DataError(
                f"{name}: one class only: all labels are {y[0]!s}. A comparison of classifiers needs at least two."
            )
        weights = flag_values.class_weight_of(self.class_weight, y)
        return HistogramClassifier(
            scoring=self.scoring, time_limit=seconds, class_weight=weights, **self._common()
        )

    def _common(self) -> JSON:
        return {
            "memory": self.memory,
            "precision": self.precision.value,
            "n_jobs": self.jobs,
            "random_state": self.seed,
        }
