"""The ``chimap fit`` that does what a comparison recommends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap.cli.support import show
from chimap.cli.support.fit_settings import Settings

if TYPE_CHECKING:
    from chimap._types import Parameters
    from chimap.cli.support.table import Table

FLAGS = {"normalize": "normalization", "n_terms": "terms", "n_components": "components"}
"""Parameters of estimators whose flag has another name."""


def fit_command(settings: Parameters, data: str, labels: str | None, table: Table, given: Parameters) -> str:
    """The command, on one line.

    settings: of the estimator. given: flags of ``compare`` that the fit has, too; those that are defaults are left out.
    """
    parts = ["chimap fit", show.quoted(data)]
    words: Parameters = {
        "labels": labels, **{name.replace("_", "-"): value for name, value in table.given().items()}
    }  # fmt: skip
    words |= {
        name: value for name, value in given.items() if value != getattr(Settings, name.replace("-", "_"))
    }
    for name, value in settings.items():
        flag = FLAGS.get(name, name).replace("_", "-")
        if value is not None and value != getattr(Settings, flag.replace("-", "_"), None):
            words[flag] = f"{value:.6g}" if isinstance(value, float) else value
    for flag, value in words.items():
        if value is True:
            parts.append(f"--{flag}")
        elif value is not None:
            parts.append(f"--{flag} {show.quoted(value)}")
    return " ".join([*parts, "--output my.model"])
