"""The race as a report: every kernel on the same rows, which machine to use, and how long its fit takes.

``compare`` races candidates on a sample, fits the best of each kind as all rows will be fitted, and
returns a ``chimap.report.Comparison``, which recommends one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chimap._memory import format_bytes, parse_memory, whole_mebibytes
from chimap._messages import Message
from chimap._threads import threads
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import Source
from chimap.engines import Progress, Stopwatch
from chimap.estimators.internals import asked_of, fit_of, rows_that_count
from chimap.fit.automatic import BlockPlan, block_plan, bytes_of_exact, landmarks_of
from chimap.race.candidates import Look, candidates_of_kernel, entries, features_of_kernel, variant_of
from chimap.race.choose import parameters_of, recipe_of_all
from chimap.race.runner import Race
from chimap.race.trials import Candidate, RaceResult, Trial, trial_of
from chimap.recipe import Recipe
from chimap.report.comparison import Comparison, Entrant, Run, recommended
from chimap.solvers.kernel_matrix import exact_bytes

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


SIZES = (256, 1024)
_EXACT_ORDER = (1.0, 2.5)  # bounds on the power of the rows that the time of an exact machine grows with
_CHOSEN = ("scoring", "alpha", "gamma")  # settings that a race or the fit chooses
_GROWING = ("read", "check", "features", "moments", "prepare")  # stages whose time grows with the rows


def compare(
    model: BaseEstimator,
    source: Source,
    *,
    kernel: str | None = None,
    gamma: float | str = "auto",
    normalize: str | Sequence[str | None] | None = None,
    sizes: Sequence[int] = SIZES,
    groups: np.ndarray | None = None,
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
    if not source.has_labels:
        raise DataError(f"{source.name} has no labels to compare machines by. Name them.")
    clock = Stopwatch()
    with threads(model.n_jobs), progress or Progress() as shown:
        with clock("read"):
            shown.stage("reading", None)
            source, groups = rows_that_count(model, source, groups)
            racing = Race.on(asked_of(model), source, groups, fit_of(model))
        _check_memory(racing, source)
        asked, look = racing.asked, racing.look
        if kernel is None:  # every one runs, without families of which the first decides
            entered = [replace(entry.candidate(asked), family="") for entry in entries(look)]
        else:
            entered = candidates_of_kernel(asked, kernel, gamma, look, normalize)
        with clock("race"):
            result = racing.run(entered, shown)
        bench = _RaceBench(racing, source, result, look)
        with clock("as it will be fitted"):
            shown.stage("rehearsing", None, "fits")
            if kernel is not None:
                bench.add_features(sizes)
            bench.add_final()
            _, chosen = recommended(bench.finalists())
            seconds, blocks = bench.fit_seconds(chosen), bench.blocks_of(chosen)
    return Comparison(
        entrants=tuple(bench.entrants),
        measure=result.measure,
        floor=_floor(racing, result.measure),
        n_held_out=racing.n_held_out,
        data={
            "file": source.name,
            "rows": source.n_rows,
            "training rows": max(racing.splits_of),
            "held-out rows": racing.n_held_out,
            "bins": source.n_features,
            "groups": None if groups is None else int(np.unique(groups).size),
            "learned rows": None if blocks is None else blocks.n_rows,
            "block rows": None if blocks is None else blocks.block_rows,
        },
        fit_seconds={chosen.name: seconds},
        settings={
            "kernel": kernel or "all",
            "memory": format_bytes(parse_memory(model.memory)),
            "precision": model.precision_,
            "random_state": str(model.random_state),
        },
        stages=clock.seconds,
    )


def _check_memory(racing: Race, source: Source) -> None:
    """Raise MemoryBudgetError if the largest kernel matrix of the race does not fit."""
    needed = exact_bytes(max(racing.splits_of), 2 * source.row_bytes, np.dtype(np.float32))
    budget = racing.asked.budget
    if needed > budget:
        raise MemoryBudgetError(
            Message(
                "{memory=!s} is too small: the kernel matrix of {:,} rows needs {}. Give {memory=}.",
                format_bytes(budget),
                max(racing.splits_of),
                format_bytes(needed),
                whole_mebibytes(needed),
            )
        )


def _floor(racing: Race, measure: str) -> float | None:
    """Return the score of a prediction without bins: the commonest class, the mean, or chance; None if unknown."""
    if racing.y.ndim == 2:
        return None
    if measure == "accuracy":
        y = np.concatenate([racing.y[test] for _, test in racing.splits])
        return float(np.unique(y, return_counts=True)[1].max() / y.size)
    return {"R2": 0.0, "roc_auc": 0.5}.get(measure)


class _RaceBench:
    """The entrants so far, and fits of machines as they will be for all rows."""

    def __init__(self, racing: Race, source: Source, result: RaceResult, look: Look):
        self._racing, self._source, self._look = racing, source, look
        self._rounds = sorted(racing.splits_of)
        self._trials = {t.candidate.name: t for t in result.trials}
        self.entrants = [self._raced(t, result.history) for t in result.trials]

    def finalists(self) -> list[Entrant]:
        """Return the entrants of the last round, the best first."""
        last = [e for e in self.entrants if not e.error and e.last.n_rows == self._rounds[-1]]
        return sorted(last, key=lambda e: -e.last.score)

    def add_features(self, sizes: Sequence[int]) -> None:
        """Add the features of the best kernel machine that is not a baseline, on the rows of the last round."""
        best = next((e for e in self.finalists() if not e.is_linear), None)
        if best is None:
            return
        trial = self._trials[best.name]
        for candidate in features_of_kernel(
            self._racing.asked, trial.candidate, trial.learned, self._look, sizes, self._rounds[-1]
        ):
            self._rehearse(candidate, candidate.recipe(self._racing.asked))

    def add_final(self) -> None:
        """Add what the best of each kind become on all rows: landmarks, additive features, margins; linear machines."""
        finalists, asked = self.finalists(), self._racing.asked
        tried: set[tuple[bool, object, object]] = set()
        for entrant in [e for e in finalists if e.name in self._trials]:
            trial = self._trials[entrant.name]
            recipe = self._final(trial)
            kind = entrant.is_linear, recipe.features, recipe.loss
            if kind in tried or _is_same_machine(recipe, trial.candidate.recipe(asked)):
                continue
            tried.add(kind)
            sized = recipe.unchosen("scoring", of=asked)
            if recipe.features == "landmarks":
                # As many landmarks as suit all rows, up to the number of rows of the race.
                n_landmarks = min(landmarks_of(self._source.n_rows), self._rounds[-1])
                sized = sized.chosen(n_components=n_landmarks)
            self._rehearse(variant_of(trial.candidate, sized), recipe)

    def fit_seconds(self, chosen: Entrant) -> float:
        """Return the expected seconds of a fit of all rows.

        Those of an exact machine on one matrix come from fits of two numbers of rows, those of one that is solved block
        by block from its operations.
        """
        blocks = self.blocks_of(chosen)
        if blocks is not None:
            return blocks.first_seconds + blocks.seconds
        recipe, n, n_rows = (
            self._racing.asked.chosen(**chosen.settings),
            self._rounds[-1],
            self._source.n_rows,
        )
        if recipe.keeps_rows:
            fits = [
                (n_fitted, sum(self._stages(recipe, n_fitted).values())) for n_fitted in self._rounds[-2:]
            ]
            return seconds_of_exact(fits, n_rows)
        return seconds_of_pass(self._stages(recipe, n), n, n_rows)

    def blocks_of(self, chosen: Entrant) -> BlockPlan | None:
        """Return how an exact machine takes all rows block by block; None for others, and where one matrix fits."""
        recipe = self._racing.asked.chosen(**(chosen.fit_settings or {}))
        given, room = parameters_of(recipe), recipe.room
        if not recipe.keeps_rows or bytes_of_exact(given, self._source) <= room:
            return None
        return block_plan(given, self._source, room)

    def _stages(self, recipe: Recipe, n_rows: int) -> Mapping[str, float]:
        """Return the seconds of each stage of a fit of ``n_rows`` rows."""
        train, _ = self._racing.splits[0]
        return self._racing.fitted(recipe, train[:n_rows]).stage_seconds

    def _rehearse(self, candidate: Candidate, for_all: Recipe) -> None:
        """Fit a machine for all rows to those of the last round, and score it, unless it is there already."""
        if all(e.name != candidate.name for e in self.entrants):
            trial = trial_of(candidate, self._racing, len(self._rounds) - 1, self._rounds[-1])
            self.entrants.append(self._entrant(trial, [trial], for_all))

    def _raced(self, trial: Trial, history: Sequence[Trial]) -> Entrant:
        """Return the entrant of a candidate that ran in the race."""
        final = None if trial.error else self._final(trial)
        is_same = final is not None and _is_same_machine(final, trial.candidate.recipe(self._racing.asked))
        return self._entrant(trial, history, final if is_same else None)

    def _entrant(self, trial: Trial, history: Sequence[Trial], for_all: Recipe | None) -> Entrant:
        """Return an entrant with the runs of its candidate that succeeded."""
        succeeded = [t for t in history if t.candidate.name == trial.candidate.name and not t.error]
        runs = tuple(
            Run(
                t.n_rows, t.score, t.standard_error, t.seconds / self._racing.splits_of[t.n_rows], t.predict_seconds
            )
            for t in succeeded
        )  # fmt: skip
        candidate = trial.candidate
        return Entrant(
            candidate.name,
            candidate.settings,
            runs,
            trial.deviations,
            candidate.is_baseline,
            None if for_all is None else for_all.choice,
            trial.error,
        )

    def _final(self, trial: Trial) -> Recipe:
        """Return the recipe of the machine that a candidate becomes on all rows."""
        return recipe_of_all(self._racing, trial, self._source)


def _is_same_machine(one: Recipe, other: Recipe) -> bool:
    """Whether recipes differ only in what a fit chooses by itself."""
    chosen = [
        {name: value for name, value in recipe.choice.items() if name not in _CHOSEN}
        for recipe in (one, other)
    ]
    return chosen[0] == chosen[1]


def seconds_of_exact(fits: Sequence[tuple[int, float]], n_rows: int) -> float:
    """Return the expected seconds of an exact machine of ``n_rows`` rows, from (rows, seconds) of one fit or two.

    With two fits, the time grows with the power of the rows that lies between them, at least 1 and at most 2.5; with
    one fit, the power is 2.

    >>> seconds_of_exact([(1000, 1.0), (2000, 4.0)], 4000)
    16.0
    """
    n, seconds = fits[-1]
    before, seconds_before = fits[0]
    power = 2.0
    if before < n and seconds_before > 0:
        power = float(np.clip(np.log(seconds / seconds_before) / np.log(n / before), *_EXACT_ORDER))
    return float(seconds * max(1.0, n_rows / n) ** power)


def seconds_of_pass(stages: Mapping[str, float], n: int, n_rows: int) -> float:
    """Return the expected seconds of a fit of ``n_rows`` rows, from those of the stages of a fit of ``n``.

    The stages of the pass grow with the rows, and so do all stages of LIBLINEAR. Choosing and solving from sums does
    not.

    >>> seconds_of_pass({"sample": 2.0, "features": 3.0, "moments": 1.0}, 1000, 2000)
    10.0
    """
    is_margin = "solve" in stages and "moments" not in stages
    growing = sum(time for name, time in stages.items() if is_margin or name in _GROWING)
    return sum(stages.values()) + growing * max(0.0, n_rows / n - 1)
