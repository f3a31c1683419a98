"""The entrants of a race, and the rule that recommends one of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chimap._types import Parameters
from chimap.selection.jackknife import standard_error

FASTER = 2.0  # times as fast a prediction must be to be worth a difference that may be chance
SAME_TIME = 1.25  # times that differ by less than this factor count as equal

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


def recommended(finalists: Sequence[Entrant]) -> tuple[Entrant, Entrant]:
    """(the best, the one to take) of machines that ran in the last round, the best first.

    The one to take is the best, unless another predicts at least twice as fast whose score is lower by no more than one
    standard error of the difference: then the fastest of those, and of equally fast ones the better. Only machines
    whose settings are those that all rows are fitted with count.
    """
    able = [e for e in finalists if e.fits] or list(finalists)
    best = able[0]
    near = [e for e in able if best.last.score - e.last.score <= standard_error(differences(best, e))]
    fast = [e for e in near if FASTER * e.last.predict_seconds <= best.last.predict_seconds]
    if not fast:
        return best, best
    limit = SAME_TIME * min(e.last.predict_seconds for e in fast)
    return best, max((e for e in fast if e.last.predict_seconds <= limit), key=lambda e: e.last.score)


def differences(one: Entrant, other: Entrant) -> np.ndarray:
    """Deviations of the difference of two scores of the same rows; none where one of them is not known."""
    if len(one.deviations) != len(other.deviations):
        return np.zeros(0)
    return np.subtract(one.deviations, other.deviations)


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
