"""``chimap info``: describe a model file, a data file, a set of images or this installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chimap._errors import InputError
from chimap.cli.support import options, show
from chimap.cli.support.bundles import Without
from chimap.cli.support.table import CountedColumn, TableOptions


def info(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH", help="A model, visual words, a data file or images.", show_default=False
        ),
    ] = None,
    *,
    labels: options.Labels = None,
    table: Annotated[TableOptions, Without("groups", "split", "sample_weight")],
    counted: CountedColumn,
    memory: Annotated[
        str | None,
        options.optional("SIZE", "Plan a fit on a data file within this much memory."),
    ] = None,
    components: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="Landmarks or random features of the fit planned by --memory.",
            show_default=True,
        ),
    ] = "auto",
    json: options.Json = False,
) -> None:
    """Describe a model, a data file or this machine.

    Without PATH, show versions, the BLAS and its kernels, cores and memory.

    \b
    Examples:
      chimap info
      chimap info my.model
      chimap info data.npz
      chimap info photos/
      chimap info posts/ --text text
      chimap info data.npz --memory 512MiB --components 4096
    """
    from chimap.cli.support import (
        describe_data,
        describe_images,
        describe_machine,
        describe_model,
        image_models,
    )

    if memory is not None and (path is None or describe_model.is_model(path)):
        raise InputError("--memory plans a fit on a data file: name a data file, or leave --memory out.")
    if path is None:
        title, facts, lines = "This installation", *describe_machine.describe()
    elif describe_model.is_model(path) and describe_images.is_words(path):
        title, facts, lines = f"Visual words {path}", *describe_images.describe_words(Path(path))
    elif describe_model.is_model(path):
        title, facts, lines = f"Model {path}", *describe_model.describe(Path(path))
    elif image_models.holds_images(path):
        title, facts, lines = f"Images {path}", *describe_images.describe(path, labels)
    else:
        title = f"Data {path}"
        facts, lines = describe_data.describe(
            path, labels, memory, components, silent=json, table=table, reading=counted.reading()
        )
    if json:
        show.as_json({"command": "info", **facts})
    else:
        show.facts(title, lines)
