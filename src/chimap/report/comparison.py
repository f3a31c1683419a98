"""All that a page of a comparison shows, as one frozen value, and the rule by which it recommends."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chimap._validation import format_bytes
from chimap.report._plain import microseconds, number, plain
from chimap.report.evaluation import now, package_versions
from chimap.report.metrics import Interval

SMALL_ERROR = 0.01  # of the Gram matrix, relative: without labels a map below it is good enough
SAME_TIME = 1.25  # times that differ by less than this factor count as equal


@dataclass(frozen=True)
class Score:
    """Accuracy, or R2, on the test rows, its 95 % interval and its standard error."""

    value: float
    interval: Interval
    standard_error: float


@dataclass(frozen=True)
class Measured:
    """One candidate at one size.

    family, size, unit: what it is; size in ``unit``, "terms" a bin or "features" in all. n_features: in all.
    error_mean, error_worst, error_relative: of the kernel, see ``chimap.comparison.kernel_error.KernelError``.
    value_error: relative, over pairs of single values; None for what is no map of values.
    map_seconds: a row, once it is warm. dense_bytes, sparse_bytes, code_bytes: a row of features as stored, None for
    what it does not give.
    score, learn_seconds, solved: of the ridge on it ("moments" or "Gram matrix"), None without labels or where
    ``not_learned`` says why not.
    fit_bytes: the peak of ``chimap fit`` with it. fit_options: that command's options, None where it has none.
    """

    family: str
    size: int
    unit: str
    n_features: int
    error_mean: float
    error_worst: float
    error_relative: float
    value_error: float | None
    map_seconds: float
    dense_bytes: int
    sparse_bytes: float | None
    code_bytes: float | None
    score: Score | None
    learn_seconds: float | None
    solved: str | None
    not_learned: str | None
    fit_bytes: int
    fit_options: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        """Family and size: 'OptimalMap, 2 terms'."""
        unit = self.unit.removesuffix("s") if self.size == 1 else self.unit
        return f"{self.family}, {self.size:,} {unit}"

    @property
    def short_name(self) -> str:
        """The name beside a column of features: without a size that says the same."""
        return self.family if self.unit == "features" else self.name

    @property
    def least_bytes(self) -> float:
        """Of a stored row, in the smallest form it has."""
        return min(b for b in (self.dense_bytes, self.sparse_bytes, self.code_bytes) if b is not None)


@dataclass(frozen=True)
class Reference:
    """A machine without features of ours: what it is, the rows it learned from, its score, the seconds it took."""

    name: str
    n_rows: int
    score: Score
    seconds: float


@dataclass(frozen=True)
class LeftOut:
    """A candidate that refused the data, and what it said."""

    family: str
    size: int
    reason: str


@dataclass(frozen=True)
class Recommendation:
    """What to take, in one sentence with its reason, and what to know besides (None where there is nothing)."""

    chosen: Measured
    sentence: str
    note: str | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidates measured side by side on the same rows. The page is a function of this value alone.

    task: "classify" (scores are accuracies), "regress" (R2), or None without labels.
    baseline: the score of the commonest class or of the mean.
    bounds: the least relative error by size, of ``bound_of``: "values" (by terms, pairs of single values) or "gram"
    (by features, the Gram matrix of ``n_gram_rows`` held-out rows).
    memory: bytes of the budget; candidates whose fit needs more are not recommended.
    """

    kernel: str
    gamma: float | None
    task: str | None
    measured: tuple[Measured, ...]
    left_out: tuple[LeftOut, ...]
    references: tuple[Reference, ...]
    baseline: float | None
    bounds: Mapping[int, float]
    bound_of: str
    n_gram_rows: int
    memory: int
    data: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=package_versions)
    created: datetime = field(default_factory=now)

    @property
    def ranked(self) -> tuple[Measured, ...]:
        """Best score first, or least kernel error first; those not trained last."""
        return tuple(
            sorted(
                self.measured, key=lambda m: (-m.score.value if m.score else 1.0, m.error_relative, m.name)
            )
        )

    @property
    def metric(self) -> str:
        """What a score is called."""
        return "R²" if self.task == "regress" else "accuracy"

    @property
    def recommendation(self) -> Recommendation:
        """With labels: the candidate that learned fastest among those within one standard error of the best score.

        Without: the fastest map among those whose error of the Gram matrix is below 1 %, or else the most accurate.
        Times that differ by less than a quarter count as equal, and the better of them wins: measured again they might
        come out the other way round.
        Candidates whose fit needs more than ``memory`` are passed over. Where all do, the one whose fit needs least of
        it takes the place of the fastest.
        """
        within = [m for m in self.measured if self.fits(m)] or list(self.measured)
        learned = [m for m in within if m.score is not None] or [
            m for m in self.measured if m.score is not None
        ]
        return self._by_score(learned) if learned else self._by_error(within)

    def fits(self, m: Measured) -> bool:
        """Whether a fit with it stays within the memory budget."""
        return m.fit_bytes <= self.memory

    def _by_score(self, candidates: list[Measured]) -> Recommendation:
        best = max(candidates, key=_value)
        assert best.score is not None
        error = best.score.standard_error
        enough = [m for m in candidates if _value(m) >= best.score.value - error]
        if self.fits(best):
            chosen = max(_fastest(enough, lambda m: m.learn_seconds or 0.0), key=_value)
        else:
            chosen = min(enough, key=lambda m: (m.fit_bytes, -_value(m)))
        said = f"{self._words(_value(chosen))} {self.metric}"
        if chosen is best:
            near = f"within a standard error of it ({self._gap(error)})"
            same = len({self.fits(m) for m in self.measured}) == 1
            here = "here" if same else "within the memory given"
            less = "faster" if self.fits(best) else "smaller"
            why = f"{said}, the best {here}, and nothing {near} is {less}"
        else:
            if self.fits(best):
                part = _part((chosen.learn_seconds or 0.0) / max(best.learn_seconds or 0.0, 1e-12), "time")
            else:
                part = _part(chosen.fit_bytes / best.fit_bytes, "memory")
            gap = self._gap(_value(best) - _value(chosen))
            why = f"{said}, within {gap} of the best ({best.name}) at {part}"
        return Recommendation(chosen, f"Use {self._description(chosen)}: {why}.", self._note(chosen))

    def _by_error(self, candidates: list[Measured]) -> Recommendation:
        enough = [m for m in candidates if m.error_relative < SMALL_ERROR]
        if enough:
            chosen = min(_fastest(enough, lambda m: m.map_seconds), key=lambda m: m.error_relative)
            why = "the fastest map here whose kernel matrix is off by less than 1 %"
        else:
            chosen = min(candidates, key=lambda m: (m.error_relative, m.map_seconds))
            why = "the most accurate here, though none is within 1 % of the exact kernel matrix"
        took = microseconds(chosen.map_seconds)
        said = f"{why} ({number(100 * chosen.error_relative, 2)} %, {took} a row)"
        return Recommendation(chosen, f"Use {self._description(chosen)}: {said}.", self._memory_note(chosen))

    def _description(self, m: Measured) -> str:
        features = "" if m.unit == "features" else f", {m.n_features:,} features"
        return f"{m.name} ({self.kernel}{features})"

    def _note(self, chosen: Measured) -> str | None:
        """What else the numbers say: of memory, of the linear model."""
        assert chosen.score is not None
        notes = [self._memory_note(chosen)]
        linear = next((r for r in self.references if r.name.startswith("linear")), None)
        if linear and linear.score.value >= chosen.score.value - chosen.score.standard_error:
            notes.append(
                f"A linear model on the raw rows does as well within a standard error "
                f"({self._words(linear.score.value)}): these rows may need no kernel."
            )
        if self.baseline is not None and chosen.score.interval[0] <= self.baseline:
            notes.append(
                f"No features at all give {self._words(self.baseline)}: these labels are not shown to be predictable."
            )
        return " ".join(note for note in notes if note) or None

    def _memory_note(self, chosen: Measured) -> str | None:
        if not self.fits(chosen):
            return "Every candidate needs more memory to fit than the budget given; the command names what it needs."
        best = self.ranked[0]
        if self.fits(best) or self.task is None:
            return None
        assert best.score is not None
        return (
            f"{best.name} has {self._words(best.score.value)}, but a fit with it needs {format_bytes(best.fit_bytes)}, "
            f"and the budget is {format_bytes(self.memory)}."
        )

    def _words(self, value: float) -> str:
        return number(value, 3) if self.task == "regress" else f"{100 * value:.1f} %"

    def _gap(self, value: float) -> str:
        return number(value, 2) if self.task == "regress" else f"{100 * value:.1f} points"

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types, nested as the fields are, with the recommendation; best candidates first."""
        found = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        advice = self.recommendation
        found |= {
            "created": self.created.isoformat(),
            "metric": None if self.task is None else self.metric,
            "measured": [dataclasses.asdict(m) | {"name": m.name} for m in self.ranked],
            "left_out": [dataclasses.asdict(one) for one in self.left_out],
            "references": [dataclasses.asdict(r) for r in self.references],
            "bounds": [{"size": size, "error": error} for size, error in self.bounds.items()],
            "recommendation": {
                "name": advice.chosen.name,
                "sentence": advice.sentence,
                "note": advice.note,
                "fit_options": advice.chosen.fit_options,
            },
        }
        return plain(found)


def _fastest(candidates: list[Measured], time: Callable[[Measured], float]) -> list[Measured]:
    """Those whose time is the least, or as good as that."""
    limit = SAME_TIME * min(map(time, candidates))
    return [m for m in candidates if time(m) <= limit]


def _value(m: Measured) -> float:
    return m.score.value if m.score is not None else float("-inf")


def _part(ratio: float, cost: str) -> str:
    """0.21, "time" -> 'a fifth of its time'."""
    names = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 7: "a seventh", 8: "an eighth",
             9: "a ninth", 10: "a tenth"}  # fmt: skip
    whole = round(1 / max(ratio, 1e-9))
    if whole <= 1:
        return f"{100 * ratio:.0f} % of its {cost}"
    return f"{names[whole]} of its {cost}" if whole in names else f"1/{whole} of its {cost}"
