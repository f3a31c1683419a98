"""The result of kernel learning, as the page and ``--json`` show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from chimap._types import JSON
from chimap.report._plain import plain
from chimap.report.selection_scores import StrengthCurve


@dataclass(frozen=True)
class Widths:
    """Inverse widths of a kernel before and after learning.

    Parameters
    ----------
    names : sequence of str
        Names of the r groups of columns.
    start : ndarray of shape (r,)
        Inverse widths at the start.
    found : ndarray of shape (r,)
        Learned inverse widths.
    """

    names: Sequence[str]
    start: np.ndarray
    found: np.ndarray

    @property
    def ratios(self) -> np.ndarray:
        """Factor by which the kernel has become narrower in each group, (r,); below 1 it is wider."""
        return np.asarray(self.found) / np.asarray(self.start)


@dataclass(frozen=True)
class ChannelWeights:
    """Weights of the channels' kernels.

    Parameters
    ----------
    names : sequence of str
        Names of the r channels.
    weights : ndarray of shape (t, r)
        Weights, one row per output.
    outputs : sequence of str
        Names of the t outputs.
    """

    names: Sequence[str]
    weights: np.ndarray
    outputs: Sequence[str]

    @property
    def shares(self) -> np.ndarray:
        """Share of each channel in the sum of all weights, (r,)."""
        totals = np.asarray(self.weights).sum(axis=0)
        return totals / (totals.sum() or 1.0)


@dataclass(frozen=True)
class ChannelPath:
    """The regularisation path of the channels' weights.

    Parameters
    ----------
    names : sequence of str
        Names of the r channels.
    alphas : ndarray of shape (s,)
        Strengths of the penalty, descending.
    totals : ndarray of shape (s, r)
        Weight of each channel, summed over all outputs.
    errors : ndarray of shape (s,) or None
        Errors on held-out rows.
    chosen : int
        Index of the chosen strength.
    """

    names: Sequence[str]
    alphas: np.ndarray
    totals: np.ndarray
    errors: np.ndarray | None
    chosen: int


@dataclass(frozen=True)
class LearnedKernel:
    """Everything that a page on kernel learning shows; parts that a method lacks are None or empty.

    Parameters
    ----------
    title : str
        Title of the page.
    method : str
        What was learned, in one sentence.
    metric : str
        Name of the score on validation rows.
    data : dict
        Facts about the rows by name.
    settings : dict
        Parameters of the model by name.
    widths : Widths or None, default=None
        Inverse widths before and after learning.
    history : sequence of dict, default=()
        One dict per iteration with "iteration", "objective", "validation_score", "validation_error", "strength" and
        "seconds".
    stopped : str or None, default=None
        Why the iteration stopped.
    channels : ChannelWeights or None, default=None
        Weights of the channels.
    path : ChannelPath or None, default=None
        Weights of the channels by strength of the penalty.
    curve : StrengthCurve or None, default=None
        Held-out error by strength of the penalty.
    score : str or None, default=None
        Score on held-out rows and score of the baseline, in words.
    stages : mapping of str to float, optional
        Seconds of each stage; by default empty.
    versions : mapping of str to str, optional
        Versions of packages by name; by default empty.
    created : datetime, optional
        Time of the result, with its time zone; by default now.
    """

    title: str
    method: str
    metric: str
    data: JSON
    settings: JSON
    widths: Widths | None = None
    history: Sequence[JSON] = ()
    stopped: str | None = None
    channels: ChannelWeights | None = None
    path: ChannelPath | None = None
    curve: StrengthCurve | None = None
    score: str | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    def as_dict(self) -> JSON:
        """Return the result as JSON types, without the widths of each iteration."""
        facts: JSON = {
            "method": self.method, "data": self.data, "settings": self.settings, "stopped": self.stopped,
            "history": [{k: v for k, v in step.items() if k != "widths"} for step in self.history],
            "seconds": self.stages,
        }  # fmt: skip
        if self.widths is not None:
            rows = zip(self.widths.names, self.widths.start, self.widths.found, strict=True)
            facts["widths"] = [{"name": n, "start": s, "found": f} for n, s, f in rows]
        if self.channels is not None:
            facts["channels"] = dict(zip(self.channels.names, self.channels.shares, strict=True))
        return plain(facts)
