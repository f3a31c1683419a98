"""Options that commands take in bundles: which they have, and what becomes of those that they leave out."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Annotated

import pytest

from chimap.cli.commands import evaluate, explain, info, learn_kernel, predict
from chimap.cli.options import Without, flat


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
