"""All that a page of a comparison shows, as one frozen value, and the rule by which it recommends."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from chimap._types import Parameters
from chimap.report._plain import measure_in_words, number, plain, seconds
from chimap.report.evaluation import now, package_versions
from chimap.selection.jackknife import standard_error

FASTER = 2.0  # times as fast a prediction must be to be worth a difference that may be chance
SAME_TIME = 1.25  # times that differ by less than this factor count as equal
SURE = 1.96  # standard errors to the end of a 95 % interval

_ROWS = {None: "", "l1": ", l1", "log1p": ", log1p", "sqrt": ", roots"}


@dataclass(frozen=True)
class Run:
    """A machine in one round.

    n_rows: that it learned from. score: on the rows held out, greater is better. standard_error: of the score.
    seconds: of the fit and the predictions. predict_seconds: a row.
    """

    n_rows: int
    score: float
    standard_error: float
    seconds: float
    predict_seconds: float


@dataclass(frozen=True)
class Entrant:
    """A machine of the race.

    name: for JSON and legends, each once. settings: of the estimator. runs: one a round. deviations: of the jackknife
    of the last score, which give the error of differences. is_linear: a baseline. fit_settings: those that fit all rows
    with this machine; None where that cannot be, as of an exact machine of many rows. error: why it left; empty where
    it did not.
    """

    name: str
    settings: Parameters
    runs: tuple[Run, ...]
    deviations: tuple[float, ...] = ()
    is_linear: bool = False
    fit_settings: Parameters | None = None
    error: str = ""

    @property
    def fits(self) -> bool:
        """Whether all rows can be fitted so."""
        return self.fit_settings is not None

    @property
    def last(self) -> Run:
        """The round that it went farthest in."""
        return self.runs[-1]

    @property
    def kernel(self) -> str:
        """The kernel and what is done to rows: 'exp-chi2, l1'."""
        return f"{self.settings.get('kernel', self.name)}{_ROWS.get(self.settings.get('normalize'), '')}"

    @property
    def method(self) -> str:
        """How the kernel is learned with: 'exact', '1,960 landmarks'."""
        features = self.settings.get("features", "exact")
        if self.settings.get("loss", "square") != "square":
            return "SVM"
        if self.settings.get("kernel") == "linear":
            return "exact" if features == "exact" and not self.fits else "ridge"
        n = self.settings.get("n_components", "")
        size = f"{n:,} " if isinstance(n, int) else ""
        return {"landmarks": f"{size}landmarks", "fourier": f"{size}random features"}.get(
            features, str(features)
        )

    @property
    def words(self) -> str:
        """Kernel and method on one line."""
        return f"{self.kernel}, {self.method}"


@dataclass(frozen=True)
class Recommendation:
    """What to take, in one sentence with its reason; what to know besides, None where there is nothing.

    best: the entrant of the best score, which may be another.
    """

    chosen: Entrant
    best: Entrant
    sentence: str
    note: str | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """A race told in full. The page is a function of this value alone.

    entrants: all of them, see ``ranked``. measure: the name of the score. floor: the score of what needs no rows,
    the commonest class or the mean; None where it is not known. n_held_out: rows that the scores of the last round
    are of. fit_seconds: that a fit of all rows is expected to take, by the names of entrants.
    """

    entrants: tuple[Entrant, ...]
    measure: str
    floor: float | None
    n_held_out: int
    data: Mapping[str, object]
    fit_seconds: Mapping[str, float] = field(default_factory=dict)
    settings: Parameters = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=package_versions)
    created: datetime = field(default_factory=now)

    @property
    def ranked(self) -> tuple[Entrant, ...]:
        """Those of the last round first, each round by score; those that failed are not among them."""
        there = [e for e in self.entrants if not e.error and e.runs]
        return tuple(sorted(there, key=lambda e: (-e.last.n_rows, -e.last.score)))

    @property
    def finalists(self) -> tuple[Entrant, ...]:
        """Those of the last round, the best first."""
        return tuple(e for e in self.ranked if e.last.n_rows == self.ranked[0].last.n_rows)

    @property
    def failed(self) -> tuple[Entrant, ...]:
        """Those that left with an error."""
        return tuple(e for e in self.entrants if e.error)

    @property
    def metric(self) -> str:
        """What the score is called."""
        return measure_in_words(self.measure)

    @property
    def recommendation(self) -> Recommendation:
        """See ``recommended``."""
        best, chosen = recommended(self.finalists)
        said = f"{self.score_words(chosen.last.score)} {self.metric}"
        linear = next((e for e in self.finalists if e.is_linear), None)
        beside = (
            "" if linear is None or linear is chosen else f"; linear {self.score_words(linear.last.score)}"
        )
        if chosen is best:
            why = f"{said}, the best here{beside}"
        else:
            times = best.last.predict_seconds / max(chosen.last.predict_seconds, 1e-12)
            gap = self.gap_words(best.last.score - chosen.last.score)
            why = (
                f"{said}, within {gap} of the best ({best.words}), which may be chance, and predicts {times:.0f} "
                f"times as fast{beside}"
            )
        return Recommendation(chosen, best, f"Use {chosen.words}: {why}.", self._note(chosen, linear))

    @property
    def time_words(self) -> str | None:
        """What a fit of all rows with the recommendation is expected to take."""
        chosen = self.recommendation.chosen
        took = self.fit_seconds.get(chosen.name)
        if took is None:
            return None
        n = self.data.get("rows in it", chosen.last.n_rows)
        return f"about {seconds(float(f'{took:.1g}' if took < 10 else f'{took:.2g}'))} for all {n:,} rows"

    def _note(self, chosen: Entrant, linear: Entrant | None) -> str | None:
        notes = []
        if linear is not None and linear is not chosen:
            error = standard_error(_differences(chosen, linear))
            if chosen.last.score - linear.last.score <= error:
                notes.append(
                    "A linear machine does as well within a standard error: these rows may need no kernel."
                )
        if linear is not None and linear is chosen and chosen is self.finalists[0]:
            notes.append("Nothing here beats the linear machine: these rows may need no kernel.")
        low = chosen.last.score - SURE * chosen.last.standard_error
        if self.floor is not None and low <= self.floor:
            notes.append(
                f"No bins at all give {self.score_words(self.floor)}: these labels are not shown to be predictable."
            )
        return " ".join(notes) or None

    def score_words(self, value: float) -> str:
        """'93.1 %' of accuracy, '0.931' of any other."""
        return f"{100 * value:.1f} %" if self.measure == "accuracy" else number(value, 3)

    def gap_words(self, value: float) -> str:
        """A difference of scores."""
        return f"{100 * value:.1f} points" if self.measure == "accuracy" else number(value, 2)

    def as_dict(self) -> Parameters:
        """Plain JSON types, nested as the fields are, with the recommendation; best entrants first."""
        advice, shown = self.recommendation, {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        entrants = (*self.ranked, *self.failed)
        shown |= {
            "created": self.created.isoformat(),
            "metric": self.metric,
            "entrants": [_entrant(e) for e in entrants],
            "recommendation": {
                "name": advice.chosen.name,
                "best": advice.best.name,
                "sentence": advice.sentence,
                "note": advice.note,
                "settings": dict(advice.chosen.fit_settings or {}),
                "fit_seconds": self.fit_seconds.get(advice.chosen.name),
            },
        }
        return plain(shown)


def recommended(finalists: Sequence[Entrant]) -> tuple[Entrant, Entrant]:
    """(the best, the one to take) of machines that ran in the last round, the best first.

    The one to take is the best, unless another predicts at least twice as fast whose score is lower by no more than one
    standard error of the difference: then the fastest of those, and of equally fast ones the better. Only machines
    whose settings are those that all rows are fitted with count.
    """
    able = [e for e in finalists if e.fits] or list(finalists)
    best = able[0]
    near = [e for e in able if best.last.score - e.last.score <= standard_error(_differences(best, e))]
    fast = [e for e in near if FASTER * e.last.predict_seconds <= best.last.predict_seconds]
    if not fast:
        return best, best
    limit = SAME_TIME * min(e.last.predict_seconds for e in fast)
    return best, max((e for e in fast if e.last.predict_seconds <= limit), key=lambda e: e.last.score)


def _differences(one: Entrant, other: Entrant) -> np.ndarray:
    """Deviations of the difference of two scores of the same rows; none where one of them is not known."""
    if len(one.deviations) != len(other.deviations):
        return np.zeros(0)
    return np.subtract(one.deviations, other.deviations)


def _entrant(e: Entrant) -> Parameters:
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
