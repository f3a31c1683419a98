"""Rows in the space of a kernel, for the commands that test and draw them: their options, and how they are opened."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chimap._errors import InputError
from chimap.cli import flag_values
from chimap.cli.options import TableOptions

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap._types import Parameters
    from chimap.data import Source

AS_ROWS = ("groups", "split", "sample_weight", "covariates", "metadata", "missing", "missing_columns")
"""Options of tables that rows without labels do not have."""


@dataclasses.dataclass(frozen=True)
class KernelSpace:
    """The options that say which kernel compares the rows.

    Parameters
    ----------
    model : FILE, common
        Compare rows as this model does, which 'chimap fit' wrote. --kernel and --normalization are then those of the
        model.
    kernel : NAME, common
        How rows are compared: chi2, intersection, jensen_shannon or hellinger, or one of these with exp- before it.
        Squared distances of shares by intersection are twice those of Bray and Curtis. Others are gaussian, linear,
        minmax, and a sum such as chi2+pq.
    normalization : NAME
        How to rescale the rows first: l1 for shares, log1p or sqrt of every count, log-cpm or log-cp10k (logs of
        shares), presence, tf-idf or none.
    gamma : G
        How local an exp- kernel is: a number, or mean. The larger, the more alike two rows must be to count as alike.
        mean is one over the mean distance of two rows.
    landmarks : N
        How many rows to compare all others with. By default up to 4,096 rows are all compared with each other, and more
        with 512.
    memory : SIZE
        Most memory to use, such as 512MiB.
    """

    model: Path | None = None
    kernel: str = "chi2"
    normalization: str = "l1"
    gamma: str = "mean"
    landmarks: int | None = None
    memory: str = "1GiB"
    seed: int = 0

    def loaded(self) -> BaseEstimator | None:
        """Return the model, if there is one; raise InputError for other options beside it that it would replace."""
        from chimap import load

        if self.model is None:
            return None
        usual = KernelSpace()
        for name in ("kernel", "normalization", "gamma"):
            if getattr(self, name) != getattr(usual, name):
                raise InputError(f"--model brings its own --{name}: leave --{name} out, or --model.")
        return load(self.model, kind="model")

    def settings(self) -> Parameters:
        """Return the parameters of the package that these options stand for."""
        return {
            "kernel": self.kernel,
            "normalize": None if self.normalization == "none" else self.normalization,
            "gamma": flag_values.gamma_of(self.gamma),
            "landmarks": self.landmarks,
            "memory": self.memory,
            "random_state": self.seed,
        }

    def open(
        self, data: str, table: TableOptions, columns: Sequence[str], model: BaseEstimator | None, silent: bool
    ) -> Source:
        """Open DATA without labels, and without these columns of metadata among its bins."""
        from chimap.cli import data_rows
        from chimap.data.covariates import unwrapped

        aside = [unwrapped(name)[0] for name in columns]
        fitted = None if model is None else model.fitted
        return data_rows.open_data(data, None, fitted, silent=silent, table=table, reads_labels=False, metadata=aside)
