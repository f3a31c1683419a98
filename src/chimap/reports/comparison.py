"""The race of kernels as the user reads it: entrants, recommendation, figures and page."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone

from chimap._formatting import measure_in_words, microseconds, number, one_line, percent, plain, seconds
from chimap._memory import format_bytes, parse_memory
from chimap._threads import threads
from chimap._types import Parameters
from chimap._validation import DataError
from chimap.data import Source
from chimap.engines import Progress, Stopwatch
from chimap.race.compare import SIZES, ComparedMachines, Entrant, Run, differences, recommended
from chimap.race.compare import compare as run_comparison
from chimap.reports.figures import CURVE_SIZE, INK, LINES, MARKERS, MUTED, RULE, drawing, legend_below, log_axis, to_svg
from chimap.reports.page import Page, now, package_versions
from chimap.reports.section import ROWS_LISTED, Figure, Section, Table, folded
from chimap.reports.studies import StudyScores, check_studies, study_scores
from chimap.selection.jackknife import standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing
    from sklearn.base import BaseEstimator


def compare(
    model: BaseEstimator,
    source: Source,
    *,
    kernel: str | None = None,
    gamma: float | str = "auto",
    normalize: str | Sequence[str | None] | None = None,
    sizes: Sequence[int] = SIZES,
    groups: np.ndarray | None = None,
    by_study: bool = False,
    permutations: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Race all kernels, or all features of one kernel, on a sample of a source, and recommend a machine.

    Parameters
    ----------
    model : HistogramClassifier or HistogramRegressor
        Unfitted, with kernel="auto". The race uses its memory, precision, scoring, seed and threads.
    source : Source
        Rows with labels.
    kernel : str or None, default=None
        The kernel whose features are compared; None compares every kernel that suits the rows.
    gamma : float or str, default="auto"
        Gamma of an exponential ``kernel``; with "auto" each fit chooses it.
    normalize : str, sequence of str or None, default=None
        The normalisation for ``kernel``; None tries those that suit the rows.
    sizes : sequence of int, default=(256, 1024)
        Numbers of landmarks and of random features to try with ``kernel``.
    groups : array of shape (n_rows,) or None, default=None
        Rows of one group are held out together.
    by_study : bool, default=False
        Whether to score the recommended machine, the best and the linear one study by study besides, the groups being
        the studies; see ``study_scores``.
    permutations : int, default=0
        Number of permutations of the labels within studies, for each of these machines; 0 for no test.
    progress : Progress or None, default=None
        Informed of each stage and step.

    Returns
    -------
    Comparison
        All machines that were tried, with scores and times.

    Raises
    ------
    DataError
        If rows have no labels or are invalid, if there are too few rows or groups to hold any out, or if no machine can
        be fitted.
    MemoryBudgetError
        If the kernel matrix of the race does not fit in the memory.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> from chimap.data import ArraySource
    >>> X, y = load_digits(return_X_y=True)
    >>> model, source = HistogramClassifier(random_state=0), ArraySource(X[:300], y[:300])
    >>> result = compare(model, source, kernel="exp-chi2", sizes=[64])
    >>> sorted({e.method for e in result.ranked})
    ['64 landmarks', '64 random features', 'exact', 'ridge']
    """
    from chimap.fit.fit import fit_candidate
    from chimap.recipe import Recipe
    from chimap.recipe.task import Task

    if not source.has_labels:
        raise DataError(f"{source.name} has no labels to compare machines by. Name them.")
    clock = Stopwatch()
    with threads(model.n_jobs), progress or Progress() as shown:
        with clock("read"):
            shown.stage("reading", None)
            asked = Recipe.of(model)
            named = groups
            task, source, groups = Task.of(source, asked, named)
            if by_study:
                y = source.labels()
                assert y is not None
                check_studies(model, y, groups, permutations, source.name)
        found = run_comparison(
            asked,
            source,
            task,
            groups,
            fit_candidate,
            shown,
            clock,
            kernel=kernel,
            gamma=gamma,
            normalize=normalize,
            sizes=sizes,
        )
    studies = {}
    if by_study:
        assert named is not None  # ``check_studies`` has made sure
        with clock("study by study"):
            studies = _by_study(model, source, np.unique(named)[groups], found, permutations, progress)
    blocks = found.blocks
    return Comparison(
        entrants=found.entrants,
        measure=found.measure,
        floor=found.floor,
        n_held_out=found.n_held_out,
        data={
            "file": source.name,
            "rows": source.n_rows,
            "training rows": found.n_rows,
            "held-out rows": found.n_held_out,
            "bins": source.n_features,
            "groups": None if groups is None else int(np.unique(groups).size),
            "learned rows": None if blocks is None else blocks.n_rows,
            "block rows": None if blocks is None else blocks.block_rows,
        },
        fit_seconds={found.chosen.name: found.fit_seconds},
        settings={
            "kernel": kernel or "all",
            "memory": format_bytes(parse_memory(model.memory)),
            "precision": "float32" if asked.leaves_open("precision") else asked.precision,
            "random_state": str(model.random_state),
        },
        stages=clock.seconds,
        studies=studies,
    )


def _by_study(
    model: BaseEstimator,
    source: Source,
    groups: np.ndarray,
    found: ComparedMachines,
    permutations: int,
    progress: Progress | None,
) -> dict[str, StudyScores]:
    """Return the scores by study of the machines that a user decides between, by the name of the entrant."""
    y = source.labels()
    assert y is not None
    finalists = [e for e in found.entrants if not e.error and e.last.n_rows == found.n_rows]
    ranked = sorted(finalists, key=lambda e: -e.last.score)
    best, chosen = recommended(ranked)
    decided = {e.name: e for e in [chosen, best, *(e for e in ranked if e.is_linear)][:3]}
    X = source.take(np.arange(source.n_rows))
    scores = {}
    for name, e in decided.items():
        machine = clone(model).set_params(**(e.fit_settings or e.settings))
        if permutations:  # which keep the kernel of a fit
            machine.fit(X, y, groups=groups)
        scores[name] = study_scores(machine, X, y, groups, permutations=permutations, progress=progress)
    return scores


def entrant_as_dict(e: Entrant) -> Parameters:
    """Return an entrant as JSON types, with the numbers of its last round."""
    return {
        "name": e.name,
        "kernel": e.kernel,
        "method": e.method,
        "settings": dict(e.settings),
        "is_linear": e.is_linear,
        "fits": e.fits,
        "error": e.error,
        "score": e.last.score if e.runs else None,
        "standard_error": e.last.standard_error if e.runs else None,
        "n_rows": e.last.n_rows if e.runs else None,
        "seconds": e.last.seconds if e.runs else None,
        "predict_seconds": e.last.predict_seconds if e.runs else None,
        "runs": [dataclasses.asdict(run) for run in e.runs],
    }


STANDARD_ERRORS = 1.96  # standard errors to the end of a 95 % interval


@dataclass(frozen=True)
class Recommendation:
    """The recommended entrant and the reason.

    Parameters
    ----------
    chosen : Entrant
        The recommended entrant.
    best : Entrant
        The entrant with the best score, which may be another one.
    sentence : str
        The recommendation and its reason, in one sentence.
    note : str or None
        A caveat, if there is one.
    """

    chosen: Entrant
    best: Entrant
    sentence: str
    note: str | None


@dataclass(frozen=True, eq=False)
class Comparison(Page):
    """All results of a race. The page depends on this value alone.

    Parameters
    ----------
    entrants : tuple of Entrant
        All entrants, including those that failed; see ``ranked`` for an order.
    measure : str
        Name of the score.
    floor : float or None
        Score of a prediction that uses no bins: the most frequent class, the mean, or chance; None if it is unknown.
    n_held_out : int
        Number of held-out rows in the last round.
    data : mapping of str to object
        Facts about the rows by name.
    fit_seconds : mapping of str to float, optional
        Expected time of a fit on all rows, by the name of the entrant; by default empty.
    settings : dict, optional
        Settings of the race by name; by default empty.
    stages : mapping of str to float, optional
        Seconds of each stage; by default empty.
    versions : mapping of str to str, optional
        Versions of packages by name; by default ``package_versions()``.
    created : datetime, optional
        Time of the comparison, with its time zone; by default now.
    studies : mapping of str to StudyScores, optional
        Scores study by study of some machines, by the name of the entrant; by default empty.
    command : str, default=""
        The command that fits the recommended model.
    """

    kind: ClassVar[str] = "comparison"

    entrants: tuple[Entrant, ...]
    measure: str
    floor: float | None
    n_held_out: int
    data: Mapping[str, Any]
    fit_seconds: Mapping[str, float] = field(default_factory=dict)
    settings: Parameters = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=package_versions)
    created: datetime = field(default_factory=now)
    studies: Mapping[str, StudyScores] = field(default_factory=dict)
    command: str = ""

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"Kernels on {self.data.get('file', 'rows')}"

    @property
    def ranked(self) -> tuple[Entrant, ...]:
        """The entrants that did not fail: those of the last round first, each round by descending score."""
        scored = [e for e in self.entrants if not e.error and e.runs]
        return tuple(sorted(scored, key=lambda e: (-e.last.n_rows, -e.last.score)))

    @property
    def finalists(self) -> tuple[Entrant, ...]:
        """The entrants of the last round, best first."""
        return tuple(e for e in self.ranked if e.last.n_rows == self.ranked[0].last.n_rows)

    @property
    def failed(self) -> tuple[Entrant, ...]:
        """The entrants that failed with an error."""
        return tuple(e for e in self.entrants if e.error)

    @property
    def metric(self) -> str:
        """Display name of the score."""
        return measure_in_words(self.measure)

    @property
    def recommendation(self) -> Recommendation:
        """The recommended entrant with the reason, by the rule of ``chimap.reports.comparison.recommended``."""
        best, chosen = recommended(self.finalists)
        score = f"{self.score_words(chosen.last.score)} {self.metric}"
        linear = next((e for e in self.finalists if e.is_linear), None)
        linear_score = "" if linear is None or linear is chosen else f"; linear {self.score_words(linear.last.score)}"
        if chosen is best:
            reason = f"{score}, the best of all{linear_score}"
        else:
            speedup = best.last.predict_seconds / max(chosen.last.predict_seconds, 1e-12)
            gap = self.gap_words(best.last.score - chosen.last.score)
            reason = (
                f"{score}, within {gap} of the best ({best.words}), which may be chance, and predicts {speedup:.0f} "
                f"times as fast{linear_score}"
            )
        return Recommendation(chosen, best, f"Use {chosen.words}: {reason}.", self._note(chosen, linear))

    @property
    def time_words(self) -> str | None:
        """Expected time of a fit of the recommended model on all rows, in words; None if it is unknown."""
        chosen = self.recommendation.chosen
        expected = self.fit_seconds.get(chosen.name)
        if expected is None:
            return None
        n = self.data.get("rows", chosen.last.n_rows)
        time = f"about {seconds(float(f'{expected:.1g}' if expected < 10 else f'{expected:.2g}'))}"
        learned, block_rows = self.data.get("learned rows"), self.data.get("block rows")
        if learned is None:
            return f"{time} for all {n:,} rows"
        rows = f"all {n:,} rows" if learned == n else f"{learned:,} of {n:,} rows"
        return f"{time} for {rows}, in blocks of up to {block_rows:,}"

    def _note(self, chosen: Entrant, linear: Entrant | None) -> str | None:
        notes = []
        if linear is not None and linear is not chosen:
            error = standard_error(differences(chosen, linear))
            if chosen.last.score - linear.last.score <= error:
                notes.append(
                    "A linear model scores as well within one standard error: these rows may not need a kernel."
                )
        if linear is not None and linear is chosen and chosen is self.finalists[0]:
            notes.append("No model beats the linear one: these rows may not need a kernel.")
        low = chosen.last.score - STANDARD_ERRORS * chosen.last.standard_error
        if self.floor is not None and low <= self.floor:
            notes.append(
                f"Predicting without any bins scores {self.score_words(self.floor)}: the bins are not shown to "
                "predict the labels."
            )
        return " ".join(notes) or None

    def score_words(self, value: float) -> str:
        """Return a score as text: '93.1 %' for accuracy, '0.931' for any other measure.

        Parameters
        ----------
        value : float
            The score.
        """
        return f"{100 * value:.1f} %" if self.measure == "accuracy" else number(value, 3)

    def gap_words(self, value: float) -> str:
        """Return a difference of scores as text: '0.5 points' for accuracy, '0.005' for any other measure.

        Parameters
        ----------
        value : float
            The difference.
        """
        return f"{100 * value:.1f} points" if self.measure == "accuracy" else number(value, 2)

    def details(self) -> dict[str, Mapping[str, object]]:
        """Return facts about the rows, the settings, the times of stages, and the versions."""
        return {
            "Data": {name: value for name, value in self.data.items() if value is not None},
            "Settings": self.settings,
            "Time": {name: seconds(time) for name, time in self.stages.items()},
            "Versions": self.versions,
        }

    def as_dict(self) -> Parameters:
        """Return the comparison as JSON types, nested like the fields, with the recommendation; best entrants first."""
        advice, facts = self.recommendation, {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        entrants = (*self.ranked, *self.failed)
        facts |= {
            "created": self.created.isoformat(),
            "metric": self.metric,
            "studies": {name: scores.as_dict() for name, scores in self.studies.items()},
            "entrants": [entrant_as_dict(e) for e in entrants],
            "recommendation": {
                "name": advice.chosen.name,
                "best": advice.best.name,
                "sentence": advice.sentence,
                "note": advice.note,
                "settings": dict(advice.chosen.fit_settings or {}),
                "fit_seconds": self.fit_seconds.get(advice.chosen.name),
            },
        }
        return plain(facts)


def advice(comparison: Comparison) -> Section:
    """Return the recommendation, and the command that follows it."""
    found, data, groups = comparison.recommendation, comparison.data, comparison.data.get("groups")
    by_groups = "" if groups is None else f", split by {groups:,} groups"
    time = comparison.time_words
    return Section(
        "Recommendation",
        f"The rule takes the best {comparison.metric}, or a model that predicts at least twice as fast and is worse by "
        "no more than one standard error of the difference. Scores are computed on "
        f"{comparison.n_held_out:,} held-out rows{by_groups}. The models of the last round were fitted on "
        f"{data['training rows']:,} of {data['rows']:,} rows."
        + ("" if time is None else f" The fit is expected to take {time} on this computer."),
        lead=found.sentence,
        command=comparison.command,
        note=found.note or "",
    )


def machines(comparison: Comparison) -> Section:
    """Return the table of all machines, and why others could not be fitted."""
    ranked, name = comparison.ranked, comparison.metric
    heads = (
        "Kernel",
        name[0].upper() + name[1:],
        "Method",
        "95 % interval",
        "Training rows",
        "Fit time",
        "Prediction per row",
    )
    kinds = ("text", "number", "text", *["number"] * 4)
    rows: list[tuple[object, ...]] = [
        (
            e.kernel,
            _score(comparison, e.last.score),
            e.method,
            _between(comparison, e),
            f"{e.last.n_rows:,}",
            seconds(e.last.seconds),
            microseconds(e.last.predict_seconds),
        )
        for e in ranked
    ]
    if comparison.floor is not None:
        without = {"accuracy": "most frequent class", "R2": "mean"}.get(comparison.measure, "chance")
        last = min(len(rows), ROWS_LISTED)
        rows.insert(last, ("without any bins", _score(comparison, comparison.floor), without, *["–"] * 4))
    tables = folded(heads, rows, "models", kinds, listed=ROWS_LISTED + (comparison.floor is not None))
    chosen = ranked.index(comparison.recommendation.chosen)
    first = dataclasses.replace(tables[0], chosen=chosen)
    failed = [(e.name, e.error) for e in comparison.failed]
    reasons = [Table((), failed, ("text", "text"), fold=f"Could not be fitted: {len(failed)}")] if failed else []
    return Section(
        "All models",
        f"The models of the last round are sorted by {name}, best first; models that left in an earlier round, fitted "
        "on fewer rows, follow below. Exact models keep every row. Linear models always reach the last round.",
        tables=(first, *tables[1:], *reasons),
        layout="wide-table",
    )


def by_study(comparison: Comparison) -> Section | None:
    """Return the scores of the machines that a user decides between, study by study."""
    scored = [(e.words, comparison.studies[e.name]) for e in comparison.ranked if e.name in comparison.studies]
    if not scored:
        return None
    first, of_each = scored[0][1], [scores for _, scores in scored]

    def both(across: float, within: float) -> str:
        return f"{number(across, 3, zeros=True)} ({number(within, 3, zeros=True)})"

    rows = [
        (name, f"{first.n_rows[i]:,}", *(both(by.across[i], by.within[i]) for by in of_each))
        for i, name in enumerate(first.studies)
    ]
    rows.append(("Mean", "", *(both(by.mean, by.mean_within) for by in of_each)))
    rows.append(("Standard deviation", "", *(number(by.spread, 2, zeros=True) for by in of_each)))
    if first.test is not None:
        p_values = (number(by.test.p_value, 2) for by in of_each if by.test is not None)
        rows.append((f"p of {first.test.permuted.size:,} permutations within studies", "", *p_values))
    return Section(
        "Study by study",
        f"{first.name} of models that are trained on all other studies and, in brackets, of models that are "
        "cross-validated within the study.",
        tables=(Table(("Study", "Rows", *(words for words, _ in scored)), rows),),
        note=f"Not scored: {'; '.join(first.notes)}." if first.notes else "",
    )


def by_rows(comparison: Comparison) -> Section | None:
    """Return the scores round by round."""
    if max(len(e.runs) for e in comparison.ranked) < 2:
        return None
    return Section(
        f"{comparison.metric[0].upper()}{comparison.metric[1:]} by rows",
        "Each line is a model, each point a round; models that did not reach the last round are grey. The bars are one "
        "standard error.",
        (Figure(lambda: score_by_rows(comparison)),),
        is_half=True,
    )


def by_prediction_time(comparison: Comparison) -> Section:
    """Return the scores of the last round over the times of predictions."""
    return Section(
        f"{comparison.metric[0].upper()}{comparison.metric[1:]} by prediction time",
        "The line joins the models that no other beats in both score and speed. The ring marks the recommended one.",
        (Figure(lambda: score_by_prediction(comparison)),),
        is_half=True,
    )


def _score(comparison: Comparison, value: float) -> str:
    is_share = comparison.measure == "accuracy"
    return percent(value) if is_share else number(value, 3)


def _between(comparison: Comparison, entrant: Entrant) -> str:
    """Return the 95 % interval as text: '92.8 – 96.6'."""
    unit, digits = (100, 1) if comparison.measure == "accuracy" else (1, 3)
    run = entrant.last
    if run.standard_error != run.standard_error:
        return "–"
    ends = (
        run.score - STANDARD_ERRORS * run.standard_error,
        min(1.0, run.score + STANDARD_ERRORS * run.standard_error),
    )
    return " – ".join(f"{unit * end:.{digits}f}" for end in ends)


_MOST_COLOURED = 8  # largest number of finalists that are drawn in colour


def score_by_rows(comparison: Comparison) -> str:
    """Draw the score over the number of training rows, round by round."""
    from matplotlib.ticker import NullLocator

    with drawing(*CURVE_SIZE) as (figure, axes):
        axes.set_xscale("log")
        coloured = styled(comparison)
        names = {entrant.name for entrant, _ in coloured}
        others = [e for e in comparison.ranked if e.name not in names]
        for i, entrant in enumerate(others):
            label = "others" if i == 0 else None
            x, y = _points(entrant.runs, _rows)
            axes.plot(x, y, color=RULE, marker=".", linewidth=1.2, zorder=1, label=label)
        for entrant, style in coloured:
            x, y = _points(entrant.runs, _rows)
            axes.plot(x, y, label=one_line(entrant.words, 60), **style)
            error = entrant.last.standard_error
            if np.isfinite(error):
                axes.errorbar(x[-1:], y[-1:], error, fmt="none", ecolor=style["color"], elinewidth=1)
        rounds = sorted({run.n_rows for e in comparison.ranked for run in e.runs})
        _wide(axes, rounds)
        axes.set_xticks(rounds, [f"{n:,}" for n in rounds])
        axes.xaxis.set_minor_locator(NullLocator())
        return _finished(figure, axes, comparison, "rows", "training rows")


def score_by_prediction(comparison: Comparison) -> str:
    """Draw the score of the finalists over their prediction time, with the Pareto front of both."""
    with drawing(*CURVE_SIZE) as (figure, axes):
        axes.set_xscale("log")
        for entrant, style in styled(comparison):
            x, y = _points([entrant.last], lambda run: 1e6 * run.predict_seconds)
            axes.plot(x, y, label=one_line(entrant.words, 60), **(style | {"linestyle": "none"}))
        front = pareto_front(comparison.finalists)
        x, y = _points([e.last for e in front], lambda run: 1e6 * run.predict_seconds)
        axes.plot(x, y, color=MUTED, linewidth=1.2, zorder=1, drawstyle="steps-post")
        chosen = comparison.recommendation.chosen.last
        axes.plot(
            [1e6 * max(chosen.predict_seconds, 1e-9)],
            [chosen.score],
            "o",
            markersize=15,
            markerfacecolor="none",
            markeredgecolor=INK,
            markeredgewidth=1.6,
            label="recommended",
        )
        log_axis(axes.xaxis, *_wide(axes, [1e6 * e.last.predict_seconds for e in comparison.finalists]))
        return _finished(figure, axes, comparison, "prediction", "prediction time per row (µs)")


def pareto_front(entrants: Sequence[Entrant]) -> list[Entrant]:
    """Return the entrants that no other beats in both score and prediction time, fastest first."""
    front: list[Entrant] = []
    for e in sorted(entrants, key=lambda e: (e.last.predict_seconds, -e.last.score)):
        if not front or e.last.score > front[-1].last.score:
            front.append(e)
    return front


def styled(comparison: Comparison) -> list[tuple[Entrant, Parameters]]:
    """Return the best finalists with their colour and marker."""
    return [
        (
            entrant,
            {
                "color": LINES[i % len(LINES)],
                "marker": MARKERS[i % len(MARKERS)],
                "markersize": 6,
                "linewidth": 1.7,
                "linestyle": ":" if entrant.is_linear else "-",
            },
        )
        for i, entrant in enumerate(comparison.finalists[:_MOST_COLOURED])
    ]


def _rows(run: Run) -> float:
    return run.n_rows


def _points(runs: Sequence[Run], x_of: Callable[[Run], float]) -> tuple[list[float], list[float]]:
    return [max(x_of(run), 1e-6) for run in runs], [run.score for run in runs]


def _wide(axes: Axes, values: Sequence[float]) -> tuple[float, float]:
    """Set the limits of the horizontal axis slightly beyond the values, and return them."""
    low, high = max(min(values), 1e-6), max(max(values), 1e-6)
    margin = max(1.2, (high / low) ** 0.06)
    axes.set_xlim(low / margin, high * margin)
    return low / margin, high * margin


def _finished(figure: Drawing, axes: Axes, comparison: Comparison, name: str, x_label: str) -> str:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    is_share = comparison.measure == "accuracy"
    low, high = axes.get_ylim()
    digits = 0 if high - low > 0.05 else 1
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: percent(value, digits) if is_share else number(value, 4))
    )
    axes.grid(axis="y")
    y_label = f"{comparison.metric} on held-out rows"
    axes.set(xlabel=x_label, ylabel=y_label)
    legend_below(axes)
    listed = ", ".join(one_line(e.words) for e in comparison.ranked)
    return to_svg(figure, f"comparison-{name}", f"{y_label} over {x_label}: {listed}.")
