"""``chimap compare``: the full race on the user's rows, with a recommendation."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap._errors import InputError
from chimap.cli import flag_values, messages, outputs, show
from chimap.cli.fit_settings import Settings
from chimap.cli.messages import flag_of, in_flags
from chimap.cli.options import CountedColumn, Precision, TableOptions, TaskName
from chimap.cli.parser import Without

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from chimap._types import JSON, Parameters
    from chimap.data import Source
    from chimap.engines import Progress
    from chimap.race.compare import Entrant
    from chimap.reports import Comparison


@dataclasses.dataclass(frozen=True)
class CompareSettings:
    """The options of ``chimap compare`` that set what runs and how it is scored.

    Parameters
    ----------
    kernel : NAME
        Compare the features of one kernel, named as for 'chimap fit'. By default, compare all kernels.
    gamma : G
        Scale of an exponential --kernel: a number, or auto to let each fit choose it.
    components : N,N
        Numbers of landmarks and of random features to try.
    splits : leave-one-group-out
        Also score the recommended machine, the best and the linear one study by study: the groups of --groups are
        studies, each left out in turn.
    permutations : N
        With --splits leave-one-group-out, also permute the labels N times within each group, for each of these
        machines.
    table : FILE
        With --splits leave-one-group-out, also write the scores of each group as a table (.csv).
    memory : SIZE
        Memory budget of the comparison and of the recommended fit.
    precision
        Precision of the features.
    """

    kernel: str | None = None
    gamma: str = "auto"
    components: str = "256,1024"
    normalization: str | None = None
    scoring: str | None = None
    class_weight: str | None = None
    positive: str | None = None
    splits: str | None = None
    permutations: int | None = None
    table: Path | None = None
    time_limit: str | None = None
    task: TaskName = "auto"
    memory: str = Settings.memory
    precision: Precision = Settings.precision
    jobs: int | None = Settings.jobs
    seed: int = Settings.seed

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
        flag_values.seconds_of(self.time_limit, "--time-limit")
        if self.splits is not None:
            flag_values.check_known(self.splits, [flag_values.LEAVE_ONE_GROUP_OUT], "--splits")
        flag_values.check_least(self.jobs, "--jobs")
        flag_values.check_least(self.seed, "--seed", 0)
        assert self.sizes

    def _check_kernel(self) -> None:
        """Refuse options that need --kernel without it."""
        if self.kernel == "auto":
            raise InputError("--kernel auto means every kernel, the default of 'chimap compare': leave --kernel out.")
        if self.kernel is not None:
            flag_values.check_kernel(self.kernel)
        single_kernel_flags = {"--normalization": self.normalization is not None, "--gamma": self.gamma != "auto"}
        for flag, is_given in single_kernel_flags.items():
            if is_given and self.kernel is None:
                raise InputError(f"{flag} applies to a single kernel: name it with --kernel, or leave {flag} out.")

    def race(self, source: Source, groups: np.ndarray | None, progress: Progress) -> Comparison:
        """Run the race on rows with labels."""
        from chimap.cli.data_rows import decide_task
        from chimap.data.labels import labels_of, with_numbers
        from chimap.reports import compare

        y = labels_of(source)
        task, _ = decide_task(y, self.task, source.name)
        source = with_numbers(source) if task == "regress" else source
        return compare(
            self._estimator(task, y, source.name),
            source,
            kernel=self.kernel,
            gamma=flag_values.gamma_of(self.gamma),
            normalize=flag_values.normalization_of(self.normalization),
            sizes=self.sizes,
            groups=groups,
            by_study=self.splits is not None,
            permutations=self.permutations or 0,
            progress=progress,
        )

    def for_fit(self) -> JSON:
        """Return the options that the recommended ``chimap fit`` shares, by flag."""
        names = ("task", "seed", "memory", "precision", "scoring", "class_weight", "positive")
        return {name.replace("_", "-"): getattr(self, name) for name in names}

    def _estimator(self, task: TaskName, y: np.ndarray, name: str) -> BaseEstimator:
        import numpy as np

        from chimap import HistogramClassifier, HistogramRegressor
        from chimap._validation import DataError

        seconds = flag_values.seconds_of(self.time_limit, "--time-limit")
        if task != "classify":
            flag_values.check_no_classes(self.class_weight, None, self.positive)
            return HistogramRegressor(scoring=self.scoring, time_limit=seconds, **self._common())
        if y.ndim == 1 and np.unique(y).size < 2:
            raise DataError(
                f"{name}: one class only: all labels are {y[0]!s}. A comparison of classifiers needs at least two."
            )
        weights = flag_values.class_weight_of(self.class_weight, y)
        return HistogramClassifier(
            scoring=self.scoring,
            time_limit=seconds,
            class_weight=weights,
            positive=flag_values.label_of(self.positive, y),
            **self._common(),
        )

    def _common(self) -> JSON:
        return {"memory": self.memory, "precision": self.precision, "n_jobs": self.jobs, "random_state": self.seed}


def compare(
    data: str,
    *,
    labels: str | None = None,
    roles: Annotated[TableOptions, Without("missing_columns", "covariates", "metadata")],
    counted: CountedColumn,
    output: Path | None = None,
    settings: CompareSettings,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Race kernels on a sample of DATA and recommend a model.

    The race enters every kernel that suits the rows, on raw and on normalised rows, and linear models. All learn from
    the same rows and are scored on the same held-out rows; the better ones learn from more rows in each round. With
    --kernel, the race compares the exact machine of one kernel with its features. The recommendation weighs the score
    against the prediction time, and says how long a fit on all rows takes.

    Parameters
    ----------
    output : PAGE
        Write the table and curves as one HTML page.

    \b
    Examples:
      chimap compare data.npz
      chimap compare data.npz --output comparison.html
      chimap compare samples.csv --labels site --groups subject
      chimap compare molecules.csv --smiles smiles --labels toxic --split scaffold
      chimap compare samples.csv --labels disease --splits leave-one-group-out --groups study --table studies.csv
      chimap compare data.npz --kernel exp-chi2 --components 256,1024,4096
    """
    from chimap._validation import DataError
    from chimap.cli import data_rows
    from chimap.data.labels import labels_of
    from chimap.reports.studies import save_table

    outputs.check_outputs({"--output": output, "--table": settings.table}, (data, labels), overwrite)
    settings.check()
    flag_values.check_study_flags(settings.splits is not None, roles.groups, settings.permutations, settings.table)
    source = data_rows.open_data(data, labels, table=roles, reading=counted.reading(settings.memory))
    data_rows.weigh(source, roles)
    try:
        labels_of(source)  # without labels, its error says how to name them
        data_rows.warn_of_groups(source, roles)
        parts = data_rows.Parts.of(source, 0.0, settings.seed, roles)
        result = settings.race(parts.training, parts.groups, show.progress(json))
    except DataError:
        # names the row of the file, not that of a part of it
        data_rows.check_every_row(source, settings.precision)
        raise
    commands = _commands(result, data, labels, (roles, counted), settings)
    if settings.table is not None:
        save_table(result.studies, settings.table)
        messages.written.append(str(settings.table))
    if output is not None:
        with show.busy("drawing the page"):
            dataclasses.replace(result, command=commands[_FIT]).save(output, overwrite=overwrite)
        messages.written.append(str(output))
    if json:
        show.as_json(
            {"command": "compare", "page": output and str(output), "fit_command": commands[_FIT], **result.as_dict()}
        )
        return
    _print(result, output, commands)


_FIT = "To fit it on all rows:"


def _commands(
    result: Comparison,
    data: str,
    labels: str | None,
    columns: tuple[TableOptions, CountedColumn],
    settings: CompareSettings,
) -> dict[str, str]:
    """Return the commands that fit the recommended machine and, if it is another, the one of the best score.

    The keys say what each command is for.
    """
    advice, shared_flags = result.recommendation, settings.for_fit()
    entrants = {_FIT: advice.chosen}
    if advice.best is not advice.chosen:
        entrants["For the best score, whatever the prediction time:"] = advice.best
    return {
        purpose: fit_command(entrant.fit_settings or {}, data, labels, columns, shared_flags)
        for purpose, entrant in entrants.items()
    }


def _print(result: Comparison, output: Path | None, commands: dict[str, str]) -> None:
    """Print the table, the recommendation and the cost of a fit."""
    page = None if output is None else str(output)
    print_comparison(result)
    advice, data = result.recommendation, result.data
    groups = "" if data.get("groups") is None else f", by {data['groups']:,} groups"
    show.facts(
        advice.sentence,
        {
            "note": advice.note,
            **{
                f"{name}, {entrant.words}": line
                for entrant in result.ranked
                if entrant.name in result.studies
                for name, line in result.studies[entrant.name].lines().items()
                if name in ("by study", "permutations")
            },
            "a fit takes": result.time_words,
            "rows": f"{data['training rows']:,} training rows in the last round; {data['held-out rows']:,} "
            f"held out{groups}; {data['rows']:,} in total",
            "not fitted": failures(result),
            "time": show.stages(result.stages),
            "peak memory": show.size(show.peak_memory()),
            "page": page,
        },
    )
    for purpose, command in commands.items():
        show.next_commands(purpose, command)


def fit_command(
    settings: Parameters, data: str, labels: str | None, columns: tuple[TableOptions, CountedColumn], given: Parameters
) -> str:
    """Return the command on one line.

    ``settings`` are those of the estimator, and ``given`` the flags of ``chimap compare`` that ``chimap fit`` shares;
    those with their default values are left out.
    """
    parts = ["chimap fit", show.quoted(data)]
    flags: Parameters = {
        "labels": labels,
        **{name.replace("_", "-"): value for each in columns for name, value in each.given().items()},
    }
    flags |= {name: value for name, value in given.items() if value != getattr(Settings, name.replace("-", "_"))}
    for name, value in settings.items():
        flag = flag_of(name).removeprefix("--")
        if value is not None and value != getattr(Settings, flag.replace("-", "_"), None):
            flags[flag] = f"{value:.6g}" if isinstance(value, float) else value
    for flag, value in flags.items():
        if isinstance(value, bool):
            parts.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            parts.append(f"--{flag} {show.quoted(value)}")
    return " ".join([*parts, "--output my.model"])


_MOST_REFUSED = 5  # machines listed with the reason for their failure


def print_comparison(comparison: Comparison) -> None:
    """Print the machines of a comparison, best first, with the recommended one marked.

    Machines that left in earlier rounds, with fewer rows, follow below. ± is half the width of the 95 % interval.
    """
    rows: list[list[str]] = []
    n_rows = comparison.ranked[0].last.n_rows
    for e in comparison.ranked:
        rows += [[]] if e.last.n_rows != n_rows else []
        n_rows = e.last.n_rows
        mark = "> " if e is comparison.recommendation.chosen else "  "
        rows.append([f"{mark}{e.kernel}", e.method, *_cells(comparison, e)])
    title = f"{comparison.metric} on {comparison.n_held_out:,} held-out rows of {comparison.data['file']}"
    show.table(title, ("", "method"), (comparison.metric, "±", "rows", "fit", "predict/row"), rows)


def _cells(comparison: Comparison, e: Entrant) -> list[str]:
    from chimap.reports.comparison import STANDARD_ERRORS

    run, is_share = e.last, comparison.measure == "accuracy"
    half = STANDARD_ERRORS * run.standard_error
    error = "-" if half != half else f"{100 * half:.1f}" if is_share else f"{half:.3f}"
    score = f"{100 * run.score:.1f}" if is_share else f"{run.score:.3f}"
    return [score, error, f"{run.n_rows:,}", show.duration(run.seconds), show.microseconds(run.predict_seconds)]


def failures(comparison: Comparison) -> str | None:
    """Return why machines could not be fitted, one per line, or None if all could."""
    lines = [f"{e.name}: {in_flags(e.error)}" for e in comparison.failed[:_MOST_REFUSED]]
    more = len(comparison.failed) - _MOST_REFUSED
    return "\n".join(lines + ([f"and {more} more"] if more > 0 else [])) or None
