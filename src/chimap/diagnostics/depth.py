"""Are there enough counts? A row is a sample of what was there, and its answer may be one of chance.

A row of n counts *holds* its answer as far as a deeper sample of the same thing would get the same one. What it would
show is drawn (``data.depth``): shares of bins are uncertain as n counts leave them, with those of rows of the kind in
mind, and N - n more counts follow. The *margin* is how far the outputs are within the answer: the output minus the
threshold for two classes, the output of the answer minus the largest other one for several, the prediction for numbers.
Additive scores have its mean and variance exactly (``tables.depth_moments``), others by draws.

The rows themselves tell how wide margins scatter: they are thinned, and the margin at the depth that they have is
known. What nine tenths of them need, in deviations of their own draws, is the width of the intervals (split conformal;
it takes for granted that depth acts below what a row has as it does above, and so they are thinned by the root of the
factor alone: far below, what a row is drawn from is known less well, and intervals become too wide).

Machines that read totals, as of counts as they are, get deeper rows scaled to the total of the row: the question is
what chance has done to its shares.

For the curve, rows are thinned to each depth that is at most half of theirs, without replacement.

Source: Rubin, The Bayesian bootstrap (1981); Lei et al., Distribution-free predictive inference for regression (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import norm

from chimap import _arrays
from chimap._errors import InputError
from chimap._formatting import number, percent, plain
from chimap._messages import Message
from chimap._threads import threads
from chimap._types import CSR, JSON, MatrixLike, Rows
from chimap._validation import DataError
from chimap.data import Source
from chimap.data.clade_sums import check_no_sums
from chimap.data.depth import SharesOfKind, counts_of, deeper, thinned, totals_of
from chimap.data.doubts import say
from chimap.diagnostics.answer import Answer
from chimap.engines import Progress
from chimap.models.answers import ClassAnswers, RealAnswers
from chimap.models.predictor import Predictor
from chimap.normalizations import Normalization
from chimap.reports.figures import CURVE_SIZE, LINES, MUTED, drawing, to_svg
from chimap.reports.section import Figure, Section, folded, text_table
from chimap.selection.calibration import Calibration
from chimap.tables import BinFunctions
from chimap.tables.depth_moments import score_moments

COVERAGE = 0.9  # of the intervals
_NORMAL_WIDTH = float(norm.ppf((1 + COVERAGE) / 2))  # of them in deviations, where no rows tell it
_FEWEST_TO_CALIBRATE, _MOST_TO_CALIBRATE = 20, 400
_MOST_REPEATS = 4  # of the rows of a small table, thinned anew
_FEWEST_COUNTS = 5  # of a thinned row that tells something
_FIRST_DRAWS, _MOST_DRAWS = 64, 512
_ERROR = 0.03  # of the share of draws that hold, at which no more are drawn
_NUMBERS = 2**23  # of drawn rows in memory at once
_LEVELS, _DRAWS_OF_LEVEL, _LOWEST_LEVEL = 10, 1600, 256  # of the curve
_FEWEST_OF_LEVEL = 5  # rows at a depth


class DepthLevel(NamedTuple):
    """How many answers hold at a depth: their share, its standard error, and the rows that are deep enough to tell."""

    depth: int
    share: float
    error: float
    n_rows: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Depth(Answer):
    """Whether rows have enough counts for their answers. See ``Answer`` for the other fields.

    Parameters
    ----------
    totals : ndarray of shape (n,)
        Counts of each row.
    answers : ndarray of shape (n,) or (n, t)
        Its answer.
    stability : ndarray of shape (n,)
        The probability that a sample of ``times`` as many counts has the same answer; of several tasks, that of the
        least stable. NaN for empty rows.
    margins, low, high : ndarray of shape (n, k)
        How far the outputs are within the answer, k = 1 or one for each task or target, and the ends of the interval
        that holds this number for nine tenths of the rows at ``times`` the depth.
    curve : tuple of DepthLevel
        The share of answers that hold at lower depths.
    enough : float or None
        The depth from which the share ``hold`` of answers holds; None if it is above those of the curve.
    times, hold : float
        The depth that is meant, as a multiple of that of the row, and the share that is asked for.
    is_exact : bool
        Whether means and variances of margins are exact; else they are from draws.
    width : float
        Half of an interval in standard deviations of the margin.
    n_calibrated : int
        Number of thinned rows that tell this width; 0 if it is that of normal margins.
    row_names : ndarray of shape (n,) or None, default=None
        Names of the rows.
    """

    kind: ClassVar[str] = "depth"

    totals: np.ndarray
    answers: np.ndarray
    stability: np.ndarray
    margins: np.ndarray
    low: np.ndarray
    high: np.ndarray
    curve: tuple[DepthLevel, ...]
    enough: float | None
    times: float
    hold: float
    is_exact: bool
    width: float
    n_calibrated: int
    row_names: np.ndarray | None = None

    @property
    def too_shallow(self) -> np.ndarray:
        """Which rows have too few counts for their answer, (n,): empty ones, and those below ``hold``."""
        return ~(self.stability >= self.hold)

    @property
    def sentence(self) -> str:
        """What was found, in a sentence."""
        share = percent(self.hold, 0)
        if self.enough is None:
            reached = f"No depth of the rows is shown to be enough for {share} of answers to hold"
        else:
            reached = f"From {self.enough:,.0f} counts on, {share} of answers hold"
        return f"{reached}; {self.too_shallow.sum():,} of {self.totals.size:,} rows are too shallow to answer."

    def as_dict(self) -> JSON:
        """Return it as JSON types."""
        curve = [plain(level._asdict()) for level in self.curve]
        return super().as_dict() | {"curve": curve, "too_shallow": self.too_shallow.tolist()}


def depth(
    model: Predictor,
    X: MatrixLike | Source,
    *,
    times: float = 4.0,
    hold: float = 0.9,
    has_curve: bool = True,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Depth:
    """Return what ``HistogramClassifier.depth`` documents.

    ``has_curve`` is whether to find the share of answers that hold by depth, and ``progress`` receives the rows that
    are done.
    """
    if not times > 1:
        raise InputError(Message("{times} must be above 1, as many times as deep as the rows are; got {!r}.", times))
    if not 0 < hold < 1:
        raise InputError(Message("{hold} must be a share above 0 and below 1, such as 0.9; got {!r}.", hold))
    progress, rng = progress or Progress(), np.random.default_rng(random_state)
    with threads(model.n_jobs), progress:
        rows, source = Samples.read(model, X)
        width, n_calibrated = _width(rows, times, rng)
        filled = np.flatnonzero(rows.totals)
        progress.stage("drawing deeper rows", filled.size)
        spread = rows.at_times(filled, times, rng, width)
        progress.advance(filled.size)
        curve = _curve(rows, rng) if has_curve else ()
    stability, (low, high) = np.full(rows.totals.size, np.nan), np.full((2, *rows.margins.shape), np.nan)
    stability[filled] = spread.held
    low[filled], high[filled] = (spread.mean + side * width * spread.deviation for side in (-1, 1))
    return Depth(
        totals=rows.totals,
        answers=rows.answers,
        stability=stability,
        margins=rows.margins,
        low=low,
        high=high,
        curve=curve,
        enough=_enough(curve, hold),
        times=times,
        hold=hold,
        is_exact=rows.exact is not None,
        width=width,
        n_calibrated=n_calibrated,
        data={"file": source.name, "rows": rows.totals.size, "bins": rows.counts.shape[1]},
        settings={
            "share of answers that is to hold": hold,
            "deeper sample, times the counts": times,
            "mean and variance of margins": "by draws" if rows.exact is None else "exact",
            "half an interval, in deviations": width,
            "thinned rows that tell it": n_calibrated,
        },
        row_names=None if source.row_ids is None else np.asarray(source.row_ids),
    )


class MarginSpread(NamedTuple):
    """Margins of deeper samples of rows: mean and deviation, (n, k), and the probability that they hold, (n,)."""

    mean: np.ndarray
    deviation: np.ndarray
    held: np.ndarray


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows of counts (n, bins), and what a model says of them.

    ``beside`` (n, covariates) are columns of covariates, which do not depend on depth. ``name`` is that of the rows in
    errors.
    """

    model: Predictor
    counts: CSR
    beside: np.ndarray
    name: str

    @classmethod
    def read(cls, model: Predictor, X: MatrixLike | Source) -> tuple[Samples, Source]:
        """Return all rows of a source in memory, and the source as the model takes it."""
        source = model.schema.rows(X)
        check_no_sums(model.schema.names, source.name)
        n_bins = model.schema.n_features
        parts, beside = [], []
        for chunk in source.chunks(model.rows_at_once):
            parts.append(counts_of(_arrays.take_columns(chunk.X, np.arange(n_bins)), source.name, chunk.start))
            beside.append(_arrays.to_dense(chunk.X[:, n_bins:]))
        rows = cls(model, sp.vstack(parts, format="csr"), np.concatenate(beside), source.name)
        empty = int((rows.totals == 0).sum())
        if empty == source.n_rows:
            raise DataError(f"{source.name}: all {source.n_rows:,} rows are empty, so that no depth is enough.")
        if empty:
            say([f"{source.name}: {empty:,} of {source.n_rows:,} rows are empty. They are too shallow for any answer."])
        return rows, source

    @cached_property
    def totals(self) -> np.ndarray:
        """Counts of each row, (n,)."""
        return totals_of(self.counts)

    @cached_property
    def outputs(self) -> np.ndarray:
        """Outputs of the model, (n, t)."""
        return self.scores(self.counts, np.arange(self.totals.size))

    @cached_property
    def answers(self) -> np.ndarray:
        """The answers of the model, (n,) or (n, t)."""
        return self.model.answers.predicted(self.outputs)

    @cached_property
    def margins(self) -> np.ndarray:
        """How far the outputs are within the answers, (n, k)."""
        return margins_of(self.model.answers, self.outputs, self.outputs)

    @cached_property
    def memberships(self) -> np.ndarray:
        """The probabilities (n, k) of the classes, which are the kinds of the rows; of other answers, one kind."""
        answers = self.model.answers
        if not isinstance(answers, ClassAnswers) or answers.is_multilabel:
            return np.ones((self.totals.size, 1))
        return np.exp(answers.log_probabilities(self.outputs))

    @cached_property
    def kinds(self) -> SharesOfKind:
        """The shares of bins among rows like these, by kind."""
        return SharesOfKind.of(self.counts, self.memberships, self.model.schema.shares.astype(np.float64))

    @cached_property
    def tolerance(self) -> np.ndarray | None:
        """How far predictions (n, k) may move: half of the 50 % intervals of numbers; None for classes."""
        answers = self.model.answers
        if isinstance(answers, ClassAnswers):
            return None
        ends = answers.intervals(self.outputs, 0.5).reshape(*self.margins.shape, 2)
        return (ends[..., 1] - ends[..., 0]) / 2

    @property
    def reads_totals(self) -> bool:
        """Whether rows times a number get other scores."""
        found = self.model.exact
        return found is None or found.normalization is None or not found.normalization.ignores_totals

    @cached_property
    def exact(self) -> ExactScores | None:
        """The scores as sums over bins, for machines that have that form."""
        return ExactScores.of(self.model)

    def thinned(self, places: np.ndarray, depths: np.ndarray, rng: np.random.Generator) -> Samples:
        """Return some of the rows with fewer counts."""
        return Samples(self.model, thinned(self.counts[places], depths, rng), self.beside[places], self.name)

    def scores(self, counts: Rows, places: np.ndarray) -> np.ndarray:
        """Return outputs (m, t) for other counts (m, bins) of rows, with their covariates."""
        out = np.empty((counts.shape[0], self.model.n_outputs))
        room = self.model.room(min(self.model.rows_at_once, counts.shape[0]))
        for part in _arrays.slices(counts.shape[0], self.model.rows_at_once):
            some = _arrays.as_rows(_arrays.take_rows(counts, part), np.float32)
            if self.beside.shape[1]:
                columns = _arrays.like(self.beside[places[part]].astype(np.float32), some)
                some = _arrays.stack_columns([some, columns])
            out[part] = self.model.scores(some, part.start, self.name, room)
        return out

    def margins_at(self, places: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Return how far other outputs are within the answers of rows, (m, k)."""
        return margins_of(self.model.answers, outputs, self.outputs[places])

    def holds(self, places: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return whether all answers of rows hold at each of n other margins (m, n, k): (m, n)."""
        if self.tolerance is None:
            return np.asarray((margins > 0).all(axis=-1))
        moved = np.abs(margins - self.margins[places, None])
        return np.asarray((moved <= self.tolerance[places, None]).all(axis=-1))

    def at_times(
        self, places: np.ndarray, times: float, rng: np.random.Generator, width: float = _NORMAL_WIDTH
    ) -> MarginSpread:
        """Return how the margins of rows spread at so many times their counts, see ``deeper``.

        Where the machine reads totals, as of counts as they are, deeper rows are scaled to the totals that rows have:
        to it, four times the counts are another kind of row.
        """
        depths = np.ceil(times * self.totals[places]).astype(np.int64)
        scales = self.totals[places] / depths if self.reads_totals else np.ones(places.size)
        return self.deeper(places, depths, scales, rng, width)

    def deeper(
        self,
        places: np.ndarray,
        depths: np.ndarray,
        scales: np.ndarray,
        rng: np.random.Generator,
        width: float = _NORMAL_WIDTH,
    ) -> MarginSpread:
        """Return how the margins of rows spread at larger depths, times scales, widened to intervals of this width."""
        if self.exact is None:
            return self._by_draws(places, depths, scales, rng, width / _NORMAL_WIDTH)
        mean, deviation = self.exact.margins(self, places, depths, scales)
        wide = np.maximum(width / _NORMAL_WIDTH * deviation, 1e-12 + 1e-9 * np.abs(mean))
        if self.tolerance is None:
            held = norm.cdf(mean / wide)
        else:
            ends = (self.margins[places] + side * self.tolerance[places] for side in (-1, 1))
            low, high = (norm.cdf((end - mean) / wide) for end in ends)
            held = high - low
        return MarginSpread(mean, deviation, held.min(axis=1))

    def _by_draws(
        self, places: np.ndarray, depths: np.ndarray, scales: np.ndarray, rng: np.random.Generator, widened: float
    ) -> MarginSpread:
        """Return the spread by draws, which are doubled for those rows whose share that holds is not known yet."""
        mean, deviation = np.empty((2, places.size, self.margins.shape[1]))
        held, rows, n_draws = np.empty(places.size), np.arange(places.size), _FIRST_DRAWS
        drawn = np.empty((places.size, 0, self.margins.shape[1]))
        while rows.size:
            more = self._drawn(places[rows], depths[rows], scales[rows], n_draws, rng)
            drawn = np.concatenate([drawn, more], axis=1)
            n_draws = drawn.shape[1]
            mean[rows], deviation[rows] = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
            centre = mean[rows, None]
            held[rows] = self.holds(places[rows], centre + widened * (drawn - centre)).mean(axis=1)
            likely = (held[rows] * n_draws + 1) / (n_draws + 2)
            is_open = (np.sqrt(likely * (1 - likely) / n_draws) > _ERROR) & (2 * n_draws <= _MOST_DRAWS)
            rows, drawn = rows[is_open], drawn[is_open]
        return MarginSpread(mean, deviation, held)

    def _drawn(
        self, places: np.ndarray, depths: np.ndarray, scales: np.ndarray, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return margins (m, n, k) of n draws of what rows would show at larger depths, times these scales (m,)."""
        out = np.empty((places.size, n, self.margins.shape[1]))
        for part in _arrays.slices(places.size, max(1, _NUMBERS // (n * self.counts.shape[1]))):
            some, again = places[part], np.repeat(places[part], n)
            drawn = [
                scale * deeper(row, self.kinds.pseudo_counts(row), self.memberships[place], depth, n, rng)
                for row, place, depth, scale in zip(
                    _arrays.to_dense(self.counts[some]), some, depths[part], scales[part], strict=True
                )
            ]
            outputs = self.scores(np.concatenate(drawn), again)
            out[part] = self.margins_at(again, outputs).reshape(some.size, n, -1)
        return out


@dataclass(frozen=True, eq=False)
class ExactScores:
    """Scores as sums of functions of single counts, at a given number of counts of a row."""

    functions: BinFunctions
    normalize: Normalization | None
    factors: np.ndarray
    intercept: np.ndarray

    @classmethod
    def of(cls, model: Predictor) -> ExactScores | None:
        """Return the scores of a machine on an additive map; None for other machines, and several classes.

        The normalisation must be a function of an entry and the total of its row. The answer among several classes
        depends on several scores together.
        """
        found, answers = model.exact, model.answers
        if found is None or found.recipe.n_covariates:
            return None
        if isinstance(answers, RealAnswers) and answers.loss.name != "square":
            return None
        if isinstance(answers, ClassAnswers) and not answers.is_multilabel and model.n_outputs > 1:
            return None
        normalize = found.normalization
        joins = normalize is not None and normalize.joins_bins and len(found.parts) > 1
        if joins or (normalize is not None and normalize.of_total(np.ones(1), 1.0) is None):
            return None
        factors = found.preparation.factors
        with suppress(InputError):
            functions = BinFunctions(found.features, found.coef)
            return cls(functions, normalize, np.ones(found.n_bins) if factors is None else factors, found.intercept)
        return None

    def margins(
        self, rows: Samples, places: np.ndarray, depths: np.ndarray, scales: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return means and deviations (m, k) of margins of rows at larger depths, times these scales (m,)."""
        found = [self._moments(rows, *each) for each in zip(places, depths, scales, strict=True)]
        means, variances = (np.array(each) for each in zip(*found, strict=True))
        return rows.margins_at(places, means), np.sqrt(variances)

    def _moments(self, rows: Samples, place: int, depth: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance (t,) of the scores of a row at a larger depth, over the kinds that it may be of."""
        row = _arrays.to_dense(rows.counts[[place]])[0]
        pseudo_counts, further = rows.kinds.pseudo_counts(row), int(depth - rows.totals[place])

        def values(more: np.ndarray, bins: np.ndarray) -> np.ndarray:
            counts = scale * (row[bins] + more)
            entries = counts if self.normalize is None else self.normalize.of_total(counts, scale * depth)
            return self.functions(self.factors[bins] * entries, bins)

        chances = rows.memberships[place] / rows.memberships[place].sum()
        kinds = np.flatnonzero(chances > 1e-9)
        found = [score_moments(values, pseudo_counts[kind], further) for kind in kinds]
        means, variances = (np.array(each) for each in zip(*found, strict=True))
        mean = chances[kinds] @ means  # bins that get no counts are empty, and add 0
        return self.intercept + mean, chances[kinds] @ (variances + np.square(means - mean))


def margins_of(answers: ClassAnswers | RealAnswers, outputs: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return how far outputs (n, t) are within the answers of reference outputs (n, t): (n, k), above 0 if they are.

    Numbers have their predictions.
    """
    if isinstance(answers, RealAnswers):
        return np.asarray(answers.predicted(outputs)).reshape(outputs.shape[0], -1)
    if answers.is_multilabel or outputs.shape[1] == 1:
        threshold = 0.0 if answers.is_multilabel else float(answers.threshold or 0.0)
        return np.where(reference > threshold, 1.0, -1.0) * (outputs - threshold)
    best = np.argmax(reference, axis=1)[:, None]
    others = outputs.copy()
    np.put_along_axis(others, best, -np.inf, axis=1)
    margin = np.abs(np.take_along_axis(outputs, best, axis=1) - others.max(axis=1, keepdims=True))
    assert isinstance(answers.calibration, Calibration)
    now, before = (answers.structure.answers(each, answers.calibration) for each in (outputs, reference))
    return np.where((now == before)[:, None], margin, -margin)  # of classes with an order, medians are the answers


def _width(rows: Samples, times: float, rng: np.random.Generator) -> tuple[float, int]:
    """Return half an interval in deviations, and the number of thinned rows that tell it; see the module."""
    depths = np.floor(rows.totals / np.sqrt(times)).astype(np.int64)
    places = np.flatnonzero(depths >= _FEWEST_COUNTS)
    if places.size < _FEWEST_TO_CALIBRATE:
        least = int(np.ceil(_FEWEST_COUNTS * np.sqrt(times)))
        few = f"{rows.name}: fewer than {_FEWEST_TO_CALIBRATE} rows have {least:,} counts or more, too few to learn"
        say([f"{few} from them how wide scores scatter: intervals are those of normal scores."])
        return _NORMAL_WIDTH, 0
    n_repeats = min(_MOST_REPEATS, max(1, _MOST_TO_CALIBRATE // (2 * places.size)))
    n_rows = min(places.size, _MOST_TO_CALIBRATE)
    places = np.repeat(np.sort(rng.permutation(places)[:n_rows]), n_repeats)
    shallow, every = rows.thinned(places, depths[places], rng), np.arange(places.size)
    spread = shallow.deeper(every, rows.totals[places], np.ones(places.size), rng)
    error = np.abs(shallow.margins_at(every, rows.outputs[places]) - spread.mean)
    scaled = np.sort((error / np.maximum(spread.deviation, 1e-12)).reshape(-1))
    return float(scaled[min(scaled.size, int(np.ceil(COVERAGE * (scaled.size + 1)))) - 1]), n_rows


def _curve(rows: Samples, rng: np.random.Generator) -> tuple[DepthLevel, ...]:
    """Return how many answers hold where rows of at least twice the depth are thinned to it."""
    found, highest = [], max(1, int(np.quantile(rows.totals, 0.9)) // 2)
    for level in np.unique(np.geomspace(max(1, highest / _LOWEST_LEVEL), highest, _LEVELS).astype(int)).tolist():
        places = np.flatnonzero(rows.totals >= 2 * level)
        if places.size < min(_FEWEST_OF_LEVEL, rows.totals.size):
            continue
        places = np.sort(rng.permutation(places)[:_DRAWS_OF_LEVEL])
        again = np.repeat(places, max(1, _DRAWS_OF_LEVEL // places.size) if places.size > 25 else 64)
        few = rows.thinned(again, np.full(again.size, level), rng)
        margins = rows.margins_at(again, few.outputs).reshape(places.size, -1, rows.margins.shape[1])
        held = rows.holds(places, margins).mean(axis=1)
        error = held.std(ddof=1) / np.sqrt(places.size) if places.size > 1 else np.nan
        found.append(DepthLevel(level, float(held.mean()), float(error), places.size))
    return tuple(found)


def _enough(curve: Sequence[DepthLevel], hold: float) -> float | None:
    """Return the depth from which on the share of answers that hold is at least ``hold``; None if there is none."""
    below = [i for i, level in enumerate(curve) if level.share < hold]
    if not curve or below[-1:] == [len(curve) - 1]:
        return None
    if not below:
        return float(curve[0].depth)
    (low, share, *_), (high, beyond, *_) = curve[below[-1] : below[-1] + 2]
    return float(low * (high / low) ** ((hold - share) / (beyond - share)))


# --- sections


def headline(found: Depth) -> Section:
    """Return what was found in words."""
    share, totals = percent(found.hold, 0), found.totals
    usual = f"{np.median(totals):,.0f} (from {totals.min():,} to {totals.max():,})"
    how = "exact" if found.is_exact else "by draws"
    why_not = (
        "The depth is above half of what the deepest rows have, or totals of rows decide answers: if totals mean "
        "nothing, fit on shares (l1) or log-cpm."
    )
    return Section(
        "Are there enough counts?",
        f"A row holds its answer as far as a sample of {found.times:g} times as many counts would get the same one. "
        f"Rows below {share} are too shallow to answer.",
        lead=found.sentence,
        lines={
            "counts a row": f"median {usual}",
            f"{share} hold from": "not reached" if found.enough is None else f"{found.enough:,.0f} counts",
            "too shallow": f"{found.too_shallow.sum():,} of {totals.size:,}",
            "stability": f"median {np.nanmedian(found.stability):.3f} at {found.times:g} times the depth ({how})",
        },
        note=why_not if found.enough is None else "",
    )


def curve(found: Depth) -> Section | None:
    """Return the share of answers that hold by depth."""
    if len(found.curve) < 2:
        return None
    levels = [(f"{each.depth:,}", f"{each.share:.3f}", f"{each.error:.3f}", f"{each.n_rows:,}") for each in found.curve]
    return Section(
        "Answers that hold by depth",
        "Rows of at least twice a depth are thinned to it, without replacement; the answer of the whole row is what it "
        "should be.",
        (Figure(lambda: _drawn_curve(found)),),
        lines={"answers that hold": text_table([("counts", "share", "±", "rows"), *levels])},
    )


def _drawn_curve(found: Depth) -> str:
    depths, shares, errors, _ = np.array(found.curve, float).T
    with drawing(*CURVE_SIZE) as (figure, axes):
        axes.set(xscale="log", ylim=(min(0.5, shares.min()) - 0.02, 1.01), xlabel="counts of a row")
        axes.set_ylabel("share of answers that hold")
        shown = depths[:: 1 + depths.size // 8]
        axes.set_xticks(shown, [f"{n:,.0f}" for n in shown])
        axes.set_xticks([], minor=True)
        axes.fill_between(depths, shares - 2 * errors, np.minimum(1, shares + 2 * errors), color=LINES[0], alpha=0.15)
        axes.plot(depths, shares, color=LINES[0], marker="o", markersize=5)
        axes.axhline(found.hold, color=MUTED, linewidth=1, linestyle="--")
        if found.enough is not None:
            at, place = f"{found.enough:,.0f} counts", (found.enough, axes.get_ylim()[0])
            axes.axvline(found.enough, color=LINES[1], linewidth=1.2)
            axes.annotate(at, place, xytext=(6, 6), textcoords="offset points", color=LINES[1])
        told = ", ".join(f"{percent(level.share)} at {level.depth:,}" for level in found.curve)
        return to_svg(figure, "depth-curve", f"Share of answers that hold by counts of a row: {told}.")


def rows(found: Depth) -> Section:
    """Return the rows, the least stable first."""
    order = np.argsort(np.where(np.isnan(found.stability), -1, found.stability), kind="stable")[:200]
    names = np.arange(found.totals.size) if found.row_names is None else found.row_names
    ends = (found.margins, found.low, found.high) if found.margins.shape[1] == 1 else ()
    heads = ("Row", "Counts", "Answer", "Stability", *("Margin", "At depth, from", "to")[: len(ends)])
    cells = [
        (
            str(names[i]),
            f"{found.totals[i]:,}",
            ", ".join(map(str, np.atleast_1d(found.answers[i]).tolist()[:8])),
            "empty" if np.isnan(found.stability[i]) else f"{found.stability[i]:.3f}",
            *(number(float(each[i, 0]), 3) for each in ends),
        )
        for i in order
    ]
    return Section(
        "Rows, the least stable first",
        f"The margin is how far the score is within the answer (the prediction of numbers); for {percent(COVERAGE, 0)} "
        f"of the rows, that of {found.times:g} times the counts lies between the ends.",
        tables=folded(heads, cells, "rows", ("text", "number", "text", *["number"] * (len(heads) - 3))),
        layout="wide-table",
    )
