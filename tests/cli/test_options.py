"""Options that commands take in bundles: which they have, and what becomes of those that they leave out."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Annotated

import pytest
import typer.main

from chimap.cli.commands import evaluate, explain, info, learn_kernel, predict
from chimap.cli.commands.compare import CompareSettings
from chimap.cli.commands.learn_kernel import KernelSettings
from chimap.cli.fit_settings import Settings
from chimap.cli.image_rows import ImageSettings
from chimap.cli.main import COMMANDS, app
from chimap.cli.options import CountedColumn, TableOptions, Without, _about, flat


@dataclasses.dataclass(frozen=True)
class Bundle:
    kept: int = 1
    left_out: str = "as usual"


def test_an_option_that_is_left_out_keeps_its_default():
    taken = []

    def command(first: str, bundle: Annotated[Bundle, Without("left_out")]) -> None:
        taken.append((first, bundle))

    assert [*inspect.signature(flat(command)).parameters] == ["first", "kept"]
    flat(command)(first="a", kept=2)
    assert taken == [("a", Bundle(2, "as usual"))]
    with pytest.raises(TypeError, match="left_out"):
        flat(command)(first="a", kept=2, left_out="b")


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        (learn_kernel.learn_kernel, {"gamma", "map", "features", "sampling", "scoring", "device", "engine"}),
        (predict.predict, {"groups", "split", "sample_weight"}),
        (explain.explain, {"groups", "split", "sample_weight"}),
        (info.info, {"groups", "split", "sample_weight"}),
        (evaluate.evaluate, {"sample_weight"}),
    ],
)
def test_commands_have_no_options_that_they_would_ignore(command, absent):
    assert not absent & inspect.signature(flat(command)).parameters.keys()


def test_every_option_has_a_text_and_every_text_an_option():
    for command in typer.main.get_command(app).commands.values():
        for parameter in command.params:
            assert parameter.help or parameter.name == "help", f"{command.name} --{parameter.name}"
    for owner in (*COMMANDS, TableOptions, CountedColumn, Settings, KernelSettings, CompareSettings, ImageSettings):
        takes = inspect.signature(owner).parameters
        assert {*_about(owner)[1]} <= {*takes}, owner.__name__


def test_a_docstring_describes_options():
    def command(first: str, rows: int = 2, dry: bool = False, none: str | None = None) -> None:
        """Do it.

        Parameters
        ----------
        rows : N
            How many,
            over two lines.
        dry
            Only say so.
        none : NAME
            Perhaps {engines}.

        Examples:
          do it
        """

    options = inspect.signature(flat(command)).parameters
    assert flat(command).__doc__ == "Do it.\n\nExamples:\n  do it"
    rows, dry, none = (options[name].annotation.__metadata__[0] for name in ("rows", "dry", "none"))
    assert (rows.metavar, rows.help, rows.show_default) == ("N", "How many, over two lines.", True)
    assert (dry.default, dry.metavar) == ("--dry", None)  # typer keeps the first flag there
    assert (none.help, none.show_default) == ("Perhaps local or dask.", False)
