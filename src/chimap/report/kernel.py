"""What kernel learning came to, as the page and ``--json`` show it."""

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
    """Inverse widths of a kernel before and after learning; names of the groups of columns, start and found (r,)."""

    names: Sequence[str]
    start: np.ndarray
    found: np.ndarray

    @property
    def ratios(self) -> np.ndarray:
        """How many times narrower the kernel has become in each group, (r,); below 1 it is wider."""
        return np.asarray(self.found) / np.asarray(self.start)


@dataclass(frozen=True)
class ChannelWeights:
    """Weights of the kernels of channels: names (r,), weights (t, r), one row a target, outputs the targets' names."""

    names: Sequence[str]
    weights: np.ndarray
    outputs: Sequence[str]

    @property
    def shares(self) -> np.ndarray:
        """Share of each channel in all weights, (r,)."""
        totals = np.asarray(self.weights).sum(axis=0)
        return totals / (totals.sum() or 1.0)


@dataclass(frozen=True)
class ChannelPath:
    """The regularisation path: alphas (s,) descending, totals (s, r) of the channels' weights over all targets,
    errors (s,) of rows held out or None, chosen: index of the strength that is used."""

    names: Sequence[str]
    alphas: np.ndarray
    totals: np.ndarray
    errors: np.ndarray | None
    chosen: int


@dataclass(frozen=True)
class LearnedKernel:
    """All that a page on kernel learning shows; what a method does not have is None.

    history: dictionaries of "iteration", "objective", "validation_score", "strength", "seconds"; stopped: why it ended.
    curve: held-out error by strength. score: what was measured on rows held out, in words, and what needs no model.
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
        """In JSON's own types, without the widths of each iteration."""
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
