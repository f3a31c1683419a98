"""The ``chimap fit`` command that a comparison recommends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chimap.cli.support import show
from chimap.cli.support.fit_settings import Settings
from chimap.cli.support.flag_names import flag_of

if TYPE_CHECKING:
    from chimap._types import Parameters
    from chimap.cli.support.table import TableOptions


def fit_command(
    settings: Parameters, data: str, labels: str | None, table: TableOptions, given: Parameters
) -> str:
    """Return the command on one line.

    Parameters
    ----------
    settings : dict
        Settings of the estimator.
    data : str
        Value of DATA.
    labels : str or None
        Value of --labels.
    table : TableOptions
        Roles of the columns.
    given : dict
        Flags of ``chimap compare`` that ``chimap fit`` shares. Those with their default values are left out.

    Returns
    -------
    str
    """
    parts = ["chimap fit", show.quoted(data)]
    flags: Parameters = {
        "labels": labels, **{name.replace("_", "-"): value for name, value in table.given().items()}
    }  # fmt: skip
    flags |= {
        name: value for name, value in given.items() if value != getattr(Settings, name.replace("-", "_"))
    }
    for name, value in settings.items():
        flag = flag_of(name).removeprefix("--")
        if value is not None and value != getattr(Settings, flag.replace("-", "_"), None):
            flags[flag] = f"{value:.6g}" if isinstance(value, float) else value
    for flag, value in flags.items():
        if value is True:
            parts.append(f"--{flag}")
        elif value is not None:
            parts.append(f"--{flag} {show.quoted(value)}")
    return " ".join([*parts, "--output my.model"])
