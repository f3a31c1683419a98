"""What a fit is told besides its recipe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """What a caller asks of a fit besides its recipe.

    Parameters
    ----------
    can_keep : bool
        Whether rows can be kept in the memory of this process, as the engine says.
    has_checkpoint : bool, default=False
        Whether the state of the fit is written to a file.
    has_unlabelled : bool, default=False
        Whether there are rows without targets.
    has_curve : bool, default=False
        Whether a learning curve is wanted.
    is_batch : bool, default=False
        Whether the rows are a first batch, and more will come.
    has_distances : bool, default=False
        Whether distances of left-out rows to the others are wanted, as they are of a model that is kept.
    """

    can_keep: bool
    has_checkpoint: bool = False
    has_unlabelled: bool = False
    has_curve: bool = False
    is_batch: bool = False
    has_distances: bool = False

    @property
    def may_keep_rows(self) -> bool:
        """Whether the fit may keep all rows, as exact machines do."""
        return self.can_keep and not self.has_unlabelled and not self.is_batch
