"""``Comparison``: everything that the page of a comparison shows, as one frozen value with a recommendation."""

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
class Comparison:
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
        """The recommended entrant with the reason, by the rule of ``chimap.report.entrants.recommended``."""
        best, chosen = recommended(self.finalists)
        score = f"{self.score_words(chosen.last.score)} {self.metric}"
        linear = next((e for e in self.finalists if e.is_linear), None)
        linear_score = (
            "" if linear is None or linear is chosen else f"; linear {self.score_words(linear.last.score)}"
        )
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
        low = chosen.last.score - SURE * chosen.last.standard_error
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

    def as_dict(self) -> Parameters:
        """Return the comparison as JSON types, nested like the fields, with the recommendation; best entrants first."""
        advice, facts = self.recommendation, {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        entrants = (*self.ranked, *self.failed)
        facts |= {
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
        return plain(facts)
