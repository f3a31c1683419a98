"""All that a page of a comparison shows, as one frozen value, with its recommendation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from chimap._types import Parameters
from chimap.report._plain import measure_in_words, number, plain, seconds
from chimap.report.entrants import Entrant, differences, entrant_as_dict, recommended
from chimap.report.evaluation import now, package_versions
from chimap.selection.jackknife import standard_error

SURE = 1.96  # standard errors to the end of a 95 % interval


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
            error = standard_error(differences(chosen, linear))
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
        return plain(shown)
