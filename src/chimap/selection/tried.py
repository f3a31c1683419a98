"""Some rows of a pass with their features, by which a score of predictions has its say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from chimap.selection.scoring import OutputScore

TRIED_ROWS = 2000  # whose score is known to a percent
_BLOCK = 512  # rows that are in float64 together


@dataclass(frozen=True)
class TriedRows:
    """Features Z (h, D) and targets Y (h, t), less the shifts of the moments; and the score of outputs for them.

    target_shift (t,): what the targets are less by.
    """

    Z: np.ndarray
    Y: np.ndarray
    target_shift: np.ndarray
    score: OutputScore

    @property
    def weights(self) -> np.ndarray | None:
        """Of the rows, (h,), or None."""
        return self.score.sample_weight

    @property
    def measure(self) -> str:
        """What the score is called."""
        return self.score.name

    def __len__(self) -> int:
        return int(self.Z.shape[0])

    def outputs(self, coef: np.ndarray, origin: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """(z - origin)'coef + intercept, (h, t) float64, of the shifted targets."""
        outputs = np.empty((len(self), coef.shape[1]))
        for part in self.blocks():
            outputs[part] = (self.Z[part].astype(np.float64) - origin) @ coef
        return outputs + intercept

    def scored(self, outputs: np.ndarray) -> float:
        """The score of outputs for the shifted targets; -inf where it is not defined."""
        score = self.score(outputs + self.target_shift)
        return score if np.isfinite(score) else -np.inf

    def projected(self, basis: np.ndarray) -> TriedRows:
        """The same in coordinates of the columns of ``basis`` (D, p)."""
        return replace(self, Z=np.asarray(self.Z @ basis))

    def of_features(self, chosen: np.ndarray) -> TriedRows:
        """Return the same rows with some of their features, given by index."""
        return replace(self, Z=self.Z[:, chosen])

    def blocks(self) -> Iterator[slice]:
        """Of rows."""
        return (slice(first, first + _BLOCK) for first in range(0, len(self), _BLOCK))
