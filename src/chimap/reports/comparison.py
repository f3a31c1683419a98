"""The race without the fit: every candidate, and what the machine that all rows would get costs by its plan."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap._errors import InputError
from chimap._formatting import (
    interval_in_words,
    measure_in_words,
    microseconds,
    one_line,
    plain,
    score_in_words,
    seconds,
)
from chimap._memory import budgets, format_bytes
from chimap._messages import Message
from chimap._threads import threads
from chimap._types import JSON, ArrayLike, Parameters
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import Source
from chimap.data.forward import ticks_of
from chimap.engines import Progress
from chimap.machines.base import Facts, Request
from chimap.machines.catalogue import machine_for
from chimap.models.race_result import RaceResult, Trial
from chimap.race.choose import raced_recipes
from chimap.race.rows import latest_rows
from chimap.recipe import Recipe
from chimap.recipe.task import Task
from chimap.reports.figures import (
    CURVE_SIZE,
    FEWEST_POINTS,
    LINES,
    MARKERS,
    RULE,
    at_most_one,
    drawing,
    legend_below,
    to_svg,
)
from chimap.reports.measures import LeadingScore
from chimap.reports.page import Page, now, package_versions
from chimap.reports.section import Figure, Section, Table, folded

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True, eq=False)
class RacedCandidate:
    """A candidate of the race, and the machine that all rows would get of it.

    Parameters
    ----------
    trial : Trial
        Its last trial.
    settings : dict
        Parameters of an estimator that fits it to all rows; empty if it failed.
    machine : str, default=""
        Name of the machine; empty if it failed, or if the memory holds none.
    seconds : float, default=np.nan
        Seconds of two cores that the fit of all rows takes, by its operations.
    n_bytes : int, default=0
        Bytes of memory that it takes.
    n_rows : int, default=0
        Rows that it learns from.
    """

    trial: Trial
    settings: Parameters = field(default_factory=dict)
    machine: str = ""
    seconds: float = np.nan
    n_bytes: int = 0
    n_rows: int = 0

    @classmethod
    def of(cls, trial: Trial, recipe: Recipe, facts: Facts, asked: Recipe) -> RacedCandidate:
        """Return a candidate with the plan of its recipe for all rows, in the least budget that holds its machine."""
        settings = recipe.raced_parameters
        if "bin_weights" in settings:
            settings["bin_weights"] = "learn"
        for memory in budgets(recipe.memory):
            with suppress(MemoryBudgetError):
                sized = recipe if memory == recipe.memory else recipe.with_values(memory=memory)
                plan = machine_for(sized, facts, asked)
                return cls(trial, settings, plan.machine.name, plan.cost.seconds, plan.cost.n_bytes, plan.cost.n_rows)
        return cls(trial, settings)

    @property
    def name(self) -> str:
        """Its name."""
        return self.trial.candidate.name

    @property
    def time(self) -> str:
        """The seconds in words, as exact as operations tell them: "under 1 s", "about 38 s"."""
        if not self.machine:
            return "–"
        return "under 1 s" if self.seconds < 1 else f"about {seconds(float(f'{self.seconds:.2g}'))}"

    def as_dict(self) -> JSON:
        """Return it as JSON types."""
        trial = self.trial
        return {
            "name": self.name,
            "settings": plain(self.settings),
            "is_linear": trial.candidate.linear_name is not None,
            "score": None if trial.error else trial.score,
            "standard_error": plain(trial.standard_error),
            "n_rows": trial.n_rows,
            "error": trial.error,
            "machine": self.machine,
            "fit_seconds": plain(self.seconds),
            "fit_bytes": self.n_bytes,
            "fit_rows": self.n_rows,
            "predict_seconds": plain(trial.predict_seconds),
        }


@dataclass(frozen=True, eq=False)
class Comparison(Page):
    """All candidates of a race. The page depends on this value alone.

    Parameters
    ----------
    rivals : tuple of RacedCandidate
        All candidates, the winner first; those that failed come last.
    result : RaceResult
        The race.
    data : mapping of str to object
        Facts about the rows by name.
    settings : dict
        Settings of the race by name.
    versions : mapping of str to str, optional
        Versions of packages by name; by default ``package_versions()``.
    created : datetime, optional
        Time of the comparison, with its time zone; by default now.
    command : str, default=""
        The command that fits the winner.
    """

    kind: ClassVar[str] = "comparison"

    rivals: tuple[RacedCandidate, ...]
    result: RaceResult
    data: Mapping[str, object]
    settings: Parameters = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=package_versions)
    created: datetime = field(default_factory=now)
    command: str = ""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"Kernels on {self.data.get('file', 'rows')}"

    @property
    def winner(self) -> RacedCandidate:
        """The candidate that a fit of the same rows takes."""
        return self.rivals[0]

    @property
    def metric(self) -> str:
        """Display name of the score."""
        return measure_in_words(self.result.measure)

    @property
    def failed(self) -> tuple[RacedCandidate, ...]:
        """The candidates that failed with an error."""
        return tuple(rival for rival in self.rivals if rival.trial.error)

    @property
    def ranked(self) -> tuple[RacedCandidate, ...]:
        """The candidates that did not fail, the winner first."""
        return self.rivals[: len(self.rivals) - len(self.failed)]

    @property
    def leading_score(self) -> LeadingScore:
        """The score to expect of the winner on unseen rows."""
        score, interval = self.result.promise
        return LeadingScore(self.result.measure, score, interval, None)

    @property
    def sentence(self) -> str:
        """The winner, its score and that of the best linear machine."""
        unseen = "" if self.result.expected is None else f" Expect {self.result.promise_in_words} of unseen rows."
        score = self.score(self.winner.trial.score)
        return f"Use {self.winner.name}: {score} {self.metric}{self.result.against_linear}.{unseen}"

    @property
    def note(self) -> str:
        """A caveat, if there is one."""
        first = self.winner.trial
        best = max(rival.trial.score for rival in self.ranked if rival.trial.n_rows == first.n_rows)
        notes = []
        if first.candidate.linear_name is not None:
            notes.append("No candidate beats the linear ones: these rows may not need a kernel.")
        elif self.result.linear_ties:
            notes.append("A linear machine scores as well within one standard error: these rows may not need a kernel.")
        if best > first.score:
            notes.append("Others lead by no more than chance, and tables of the kind mostly prefer the winner.")
        return " ".join(notes)

    @property
    def cost(self) -> str:
        """What the fit of the winner takes, in words; empty if the memory holds none."""
        won, n_rows = self.winner, self.data["rows"]
        if not won.machine:
            return ""
        rows = f"all {n_rows:,} rows" if won.n_rows == n_rows else f"{won.n_rows:,} of {n_rows:,} rows"
        return f"{won.time} and {format_bytes(won.n_bytes)} for {rows} ({won.machine})"

    def score(self, value: float) -> str:
        """Return a score as text: '93.1 %' for an accuracy, '0.931' for any other measure.

        Parameters
        ----------
        value : float
            The score.
        """
        return score_in_words(value, self.result.measure)

    def interval(self, trial: Trial) -> str:
        """Return the 95 % confidence interval of a score as text: '81.5 to 88.4 %', or '0.815 to 0.884'.

        Parameters
        ----------
        trial : Trial
            The trial.
        """
        ends = self.result.interval(trial.score, trial.standard_error)
        return interval_in_words(ends, self.result.measure) if ends[0] == ends[0] else "–"

    def details(self) -> dict[str, Mapping[str, object]]:
        """Return facts about the rows, the settings, and the versions."""
        data = {name: value for name, value in self.data.items() if value is not None}
        time = {"race": seconds(self.result.seconds)}
        return {"Data": data, "Settings": self.settings, "Time": time, "Versions": self.versions}

    def as_dict(self) -> JSON:
        """Return the comparison as JSON types, the winner first."""
        return {
            "title": self.title,
            "measure": self.result.measure,
            "metric": self.metric,
            "n_held_out": self.result.n_held_out,
            "leading_score": self.leading_score.as_dict(),
            "data": plain(self.data),
            "sentence": self.sentence,
            "note": self.note or None,
            "expected": plain(self.result.expected),
            "candidates": [rival.as_dict() for rival in self.rivals],
            "settings": plain(self.settings),
            "seconds": self.result.seconds,
            "versions": plain(self.versions),
            "created": self.created.isoformat(),
        }


def compare(
    model: BaseEstimator,
    source: Source,
    *,
    groups: np.ndarray | None = None,
    time: ArrayLike | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Run the race of a fit without the fit, and plan the machines that all rows would get.

    Parameters
    ----------
    model : HistogramClassifier or HistogramRegressor
        Unfitted. What it leaves open is raced: the kernel, or several normalisations.
    source : Source
        Rows with labels.
    groups : array of shape (n_rows,) or None, default=None
        Rows of one group are held out together.
    time : array of shape (n_rows,) or None, default=None
        The time of each row: candidates learn from earlier rows, and are scored on the latest fifth; see
        ``ForwardSplits``.
    progress : Progress or None, default=None
        Informed of each stage and step.

    Returns
    -------
    Comparison
        All candidates, with scores and costs.

    Raises
    ------
    DataError
        If rows have no labels or are invalid, if there are too few rows or groups to hold any out, or if no candidate
        can be fitted.
    InputError
        If the model leaves nothing to a race.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> from chimap.data import ArraySource
    >>> X, y = load_digits(return_X_y=True)
    >>> found = compare(HistogramClassifier(random_state=0), ArraySource(X[:300], y[:300]))
    >>> found.winner.trial.score > 0.9, found.winner.machine
    (True, 'kernel matrix')
    """
    from chimap.fit.fit import fit_candidate
    from chimap.fit.optional import with_settled_columns

    if not source.has_labels:
        raise DataError(f"{source.name} has no labels to compare machines by. Name them.")
    asked, request = Recipe.of(model), Request(can_keep=True, races=True)
    if time is not None:
        counting = slice(None) if source.weights is None else source.weights > 0  # the rows that the task keeps
        request = replace(request, holds_out=latest_rows(ticks_of(time)[counting]))
    source = with_settled_columns(source, asked, groups, progress or Progress())
    with threads(model.n_jobs), progress or Progress() as shown:
        shown.stage("reading", None)
        task, source, groups = Task.of(source, asked, groups)
        choices = raced_recipes(asked, source, task, groups, fit_candidate, shown, request)
    result, facts = choices[0][1], Facts.of(source, task, groups, request)
    if result is None:
        raise InputError(Message("nothing is left to a race: give {kernel='auto'}, or several normalisations."))
    rivals = [RacedCandidate.of(led.trials[0], recipe, facts, asked) for recipe, led in choices if led is not None]
    failed = [RacedCandidate(trial) for trial in result.trials if trial.error]
    return Comparison(
        (*rivals, *failed),
        result,
        {
            "file": source.name,
            "rows": source.n_rows,
            "training rows": rivals[0].trial.n_rows,
            "held-out rows": result.n_held_out,
            "bins": source.n_features,
            "groups": None if groups is None else int(np.unique(groups).size),
            "forward in time": True if time is not None else None,
        },
        {"memory": str(model.memory), "random_state": str(model.random_state)},
    )


# --- the sections of the page


def advice(comparison: Comparison) -> Section:
    """Return the winner, and the command that fits it."""
    groups = comparison.data.get("groups")
    by_groups = "" if groups is None else f", split by {groups:,} groups"
    return Section(
        "Recommendation",
        f"A fit of these rows takes the same. Scores are computed on {comparison.result.n_held_out:,} held-out rows"
        f"{by_groups}. The candidates of the last round learned from {comparison.data['training rows']:,} of "
        f"{comparison.data['rows']:,} rows."
        + (f" The fit takes {comparison.cost}, by its operations on two cores." if comparison.cost else ""),
        lead=comparison.sentence,
        command=comparison.command,
        note=comparison.note,
    )


def candidates(comparison: Comparison) -> Section:
    """Return the table of all candidates, and why others could not be fitted."""
    score = comparison.metric[0].upper() + comparison.metric[1:]
    fit = ("Machine of all rows", "Time", "Memory", "Prediction per row")
    heads = ("Candidate", score, "95 % interval", "Training rows", *fit)
    rows = [
        (
            rival.name,
            comparison.score(rival.trial.score),
            comparison.interval(rival.trial),
            f"{rival.trial.n_rows:,}",
            rival.machine or "none within the memory",
            rival.time,
            format_bytes(rival.n_bytes) if rival.machine else "–",
            microseconds(rival.trial.predict_seconds),
        )
        for rival in comparison.ranked
    ]
    kinds = ("text", "number", "number", "number", "text", "number", "number", "number")
    tables = folded(heads, rows, "candidates", kinds)
    failed = [(rival.name, rival.trial.error) for rival in comparison.failed]
    reasons = [Table((), failed, ("text", "text"), fold=f"Could not be fitted: {len(failed)}")] if failed else []
    return Section(
        "All candidates",
        f"The winner comes first; the others are sorted by {comparison.metric}, and those that left in an earlier "
        "round, fitted on fewer rows, follow below. The simple linear machines always reach the last round.",
        tables=(*tables, *reasons),
        layout="wide-table",
    )


def by_rows(comparison: Comparison) -> Section | None:
    """Return the scores round by round."""
    if len({trial.n_rows for trial in comparison.result.history if not trial.error}) < FEWEST_POINTS:
        return None
    return Section(
        f"{comparison.metric[0].upper()}{comparison.metric[1:]} by rows",
        "Each line is a candidate, each point a round; those behind the first eight are grey.",
        (Figure(lambda: score_by_rows(comparison)),),
    )


_MOST_COLOURED = 8  # largest number of candidates that are drawn in colour


def score_by_rows(comparison: Comparison) -> str:
    """Draw the score over the number of training rows, round by round."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    rounds = sorted({trial.n_rows for trial in comparison.result.history if not trial.error})
    with drawing(*CURVE_SIZE) as (figure, axes):
        axes.set(xscale="log", xlim=(rounds[0] / 1.2, rounds[-1] * 1.2))
        for place, rival in enumerate(comparison.ranked):
            trials = [t for t in comparison.result.history if t.candidate.name == rival.name and not t.error]
            points = [t.n_rows for t in trials], [t.score for t in trials]
            if place < _MOST_COLOURED:
                marker, name = MARKERS[place % len(MARKERS)], one_line(rival.name, 60)
                axes.plot(*points, color=LINES[place % len(LINES)], marker=marker, markersize=6, label=name)
            else:
                label = "others" if place == _MOST_COLOURED else None
                axes.plot(*points, color=RULE, marker=".", linewidth=1.2, zorder=1, label=label)
        axes.set_xticks(rounds, [f"{n:,}" for n in rounds])
        axes.xaxis.set_minor_locator(NullLocator())
        at_most_one(axes)
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: comparison.score(value)))
        axes.grid(axis="y")
        y_label = f"{comparison.metric} on held-out rows"
        axes.set(xlabel="training rows", ylabel=y_label)
        legend_below(axes)
        listed = ", ".join(one_line(rival.name) for rival in comparison.ranked)
        return to_svg(figure, "comparison-rows", f"{y_label} over training rows: {listed}.")
