"""The entrants of a race, and the rule that recommends one of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chimap._types import Parameters
from chimap.selection.jackknife import standard_error

FASTER = 2.0  # a speed-up of predictions by this factor outweighs a loss in score that may be chance
SAME_TIME = 1.25  # prediction times within this factor count as equal


@dataclass(frozen=True)
class Run:
    """The result of a model in one round.

    Parameters
    ----------
    n_rows : int
        Number of training rows.
    score : float
        Score on the held-out rows; greater is better.
    standard_error : float
        Standard error of the score.
    seconds : float
        Time of the fit and the predictions.
    predict_seconds : float
        Time of a prediction per row.
    """

    n_rows: int
    score: float
    standard_error: float
    seconds: float
    predict_seconds: float


@dataclass(frozen=True)
class Entrant:
    """A model in the race.

    Parameters
    ----------
    name : str
        Unique name, for JSON and legends.
    settings : dict
        Parameters of the estimator.
    runs : tuple of Run
        One result per round.
    deviations : tuple of float, default=()
        Jackknife deviations of the last score, from which standard errors of differences are computed.
    is_linear : bool, default=False
        Whether it is a linear baseline.
    fit_settings : dict or None, default=None
        Parameters that fit this model on all rows; None if that is impossible, as for an exact model whose rows exceed
        the memory.
    error : str, default=""
        Why the model failed; empty if it did not.
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
        """Whether the model can be fitted on all rows."""
        return self.fit_settings is not None

    @property
    def last(self) -> Run:
        """The result of the last round it ran in."""
        return self.runs[-1]

    @property
    def kernel(self) -> str:
        """Kernel and normalisation: 'exp-chi2, l1'."""
        normalize = self.settings.get("normalize")
        return str(self.settings.get("kernel", self.name)) + ("" if normalize is None else f", {normalize}")

    @property
    def method(self) -> str:
        """How the kernel is used: 'exact', '1,960 landmarks'."""
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
        """Kernel, normalisation and method in one line."""
        return f"{self.kernel}, {self.method}"


def recommended(finalists: Sequence[Entrant]) -> tuple[Entrant, Entrant]:
    """Return the best and the recommended entrant of the last round.

    The best entrant is recommended, unless others predict at least twice as fast and score lower by no more than one
    standard error of the difference. Then the fastest of those is recommended, and of equally fast ones the one with
    the highest score. Entrants that cannot be fitted on all rows are considered only if there are no others.

    Parameters
    ----------
    finalists : sequence of Entrant
        The entrants of the last round, best first.

    Returns
    -------
    tuple of Entrant
        The best and the recommended one.
    """
    candidates = [e for e in finalists if e.fits] or list(finalists)
    best = candidates[0]
    near = [e for e in candidates if best.last.score - e.last.score <= standard_error(differences(best, e))]
    fast = [e for e in near if FASTER * e.last.predict_seconds <= best.last.predict_seconds]
    if not fast:
        return best, best
    limit = SAME_TIME * min(e.last.predict_seconds for e in fast)
    return best, max((e for e in fast if e.last.predict_seconds <= limit), key=lambda e: e.last.score)


def differences(one: Entrant, other: Entrant) -> np.ndarray:
    """Return the jackknife deviations of the difference of two scores on the same rows; empty if one is unknown."""
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
