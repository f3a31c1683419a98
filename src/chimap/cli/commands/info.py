"""``chimap info``: describe a model file, a data file, a set of images or this installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from chimap._errors import InputError
from chimap.cli import machine, show
from chimap.cli.options import CountedColumn, TableOptions
from chimap.cli.parser import Without


def info(
    path: str | None = None,
    *,
    labels: str | None = None,
    table: Annotated[
        TableOptions, Without("groups", "split", "sample_weight", "missing_columns", "covariates", "metadata")
    ],
    counted: CountedColumn,
    memory: str | None = None,
    components: str = "auto",
    json: bool = False,
) -> None:
    """Describe a model, a table, pictures or this computer.

    Without PATH, show versions, the BLAS and its kernels, cores and memory.

    Parameters
    ----------
    path
        A model, visual words, a table or pictures; without it, this computer.
    memory : SIZE, common
        Say how a fit on a table would go within this much memory, such as 512MiB.
    components : N
        How many landmark rows or random features that fit has: auto, or a number.

    \b
    Examples:
      chimap info plots.model
      chimap info plots.csv --labels site
      chimap info
      chimap info data.npz
      chimap info photos/
      chimap info posts/ --text text
      chimap info data.npz --memory 512MiB --components 4096
    """
    from chimap._files import read_header
    from chimap.cli import describe
    from chimap.readers.image_names import holds_images

    is_ours = path is not None and describe.is_model(path)
    if memory is not None and (path is None or is_ours):
        raise InputError("--memory plans a fit on a data file: name a data file, or leave --memory out.")
    if path is None:
        title, facts, lines = "This installation", *machine.describe()
    elif is_ours and read_header(path).get("kind") == "words":
        title, facts, lines = f"Visual words {path}", *describe.words(Path(path))
    elif is_ours:
        title, facts, lines = f"Model {path}", *describe.model(Path(path))
    elif holds_images(path):
        title, facts, lines = f"Images {path}", *describe.images(path, labels)
    else:
        title = f"Data {path}"
        facts, lines = describe.data(
            path, labels, memory, components, silent=json, table=table, reading=counted.reading()
        )
    if json:
        show.as_json({"command": "info", **facts})
    else:
        show.facts(title, lines)
