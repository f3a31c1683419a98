"""Options that commands take in bundles: which they have, and what they say and do where they are left out."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Annotated, Literal, get_args

import click
import pytest

from chimap import (
    AutomaticFeatures,
    FourierKernelLearner,
    HistogramClassifier,
    ImageHistograms,
    MultipleKernelLearner,
    engines,
    export_model,
    kernels,
    losses,
)
from chimap.cli.commands import NAMES, export, fit, learn_kernel, named
from chimap.cli.commands.evaluate import EvaluateSettings
from chimap.cli.commands.learn_kernel import KernelSettings
from chimap.cli.fit_settings import Settings
from chimap.cli.image_rows import ImageSettings
from chimap.cli.main import app
from chimap.cli.messages import flag_of
from chimap.cli.options import SHARED, CountedColumn, Engine, Fingerprint, Precision, Salts, TableOptions, Tokens
from chimap.cli.parser import Without, about_of, command_of
from chimap.export.files import FORMATS
from chimap.export.onnx import INPUT_TYPES
from chimap.features import additive
from chimap.features.families import FAMILIES
from chimap.features.fourier import sampling
from chimap.fit.checkpoint import Checkpoint
from chimap.images import SIFT, descriptors
from chimap.models.explain import KINDS
from chimap.readers import MorganCounts, WordCounts
from chimap.readers.molecules import FINGERPRINTS, SALTS
from chimap.readers.words import TOKENS
from chimap.recipe.recipe import PRECISIONS


@dataclasses.dataclass(frozen=True)
class Bundle:
    """Both.

    Parameters
    ----------
    kept : N
        Kept.
    left_out
        Left out.
    """

    kept: int = 1
    left_out: str = "as usual"


def test_an_option_that_is_left_out_keeps_its_default():
    taken = []

    def command(data: str, *, bundle: Annotated[Bundle, Without("left_out")]) -> None:
        taken.append((data, bundle))

    made = command_of(command)
    assert [parameter.opts for parameter in made.params] == [["data"], ["--kept"]]
    made.main(["a", "--kept", "2"], standalone_mode=False)
    assert taken == [("a", Bundle(2, "as usual"))]


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("learn-kernel", {"gamma", "map", "features", "sampling", "scoring", "device", "engine"}),
        ("predict", {"groups", "split", "sample_weight"}),
        ("explain", {"split", "sample_weight", "covariates"}),
        ("info", {"groups", "split", "sample_weight"}),
        ("evaluate", {"sample_weight"}),
    ],
)
def test_commands_have_no_options_that_they_would_ignore(command, absent):
    assert not absent & {parameter.name for parameter in named(command).params}


def test_every_option_has_a_text_and_every_text_an_option():
    taken = set()
    for name in NAMES:
        command = named(name)
        taken |= {parameter.name for parameter in command.params}
        for parameter in command.params:
            assert parameter.text if parameter.param_type_name == "argument" else parameter.help, parameter.name
    assert SHARED.keys() <= taken
    bundles = (TableOptions, CountedColumn, Settings, KernelSettings, EvaluateSettings, ImageSettings)
    for owner in bundles:
        assert about_of(owner)[1].keys() <= inspect.signature(owner).parameters.keys(), owner.__name__


def _help_of(name: str, everything: bool) -> list[str]:
    context = click.Context(named(name), info_name=f"chimap {name}", obj=everything, terminal_width=80)
    return named(name).get_help(context).splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_help_of_a_command_is_a_screen_with_three_examples(name):
    screen, whole = _help_of(name, False), _help_of(name, True)
    assert len(screen) <= 40
    assert max(map(len, screen)) <= 80
    assert sum(f"  chimap {name}" in line for line in screen) == 3
    assert sum(f"  chimap {name}" in line for line in whole) >= 3
    options = [option for option in named(name).params if option.param_type_name == "option"]
    for option in options:
        flag = option.opts[0] + " "
        assert any(flag in f"{line} " for line in whole)
        assert option.required <= any(flag in f"{line} " for line in screen)
    n_left = len(options) + 1 - sum(line.startswith("  -") for line in screen)  # 1 for --help
    assert any(f"For {n_left} more options" in line for line in screen)


def test_the_first_screen_leads_with_a_csv():
    screen = app.get_help(click.Context(app, info_name="chimap", terminal_width=80)).splitlines()
    assert len(screen) <= 40
    assert max(map(len, screen)) <= 80
    cut = [line for line in screen[1:] if line.endswith("...")]
    assert cut == [], "the first line of the docstring of a command is too long"
    first = next(line for line in screen if line.startswith("    chimap"))
    assert first.split()[:3] == ["chimap", "fit", "plots.csv"]


def test_a_docstring_describes_options():
    def command(
        data: str,
        more: str | None = None,
        *,
        rows: int = 2,
        dry: bool = False,
        none: Path | None = None,
        kind: Literal["a", "b"] = "a",
        output: Path,
        whole: bool = True,
    ) -> None:
        """Do it.

        Parameters
        ----------
        more
            And more.
        rows : N, common
            How many,
            over two lines.
        dry
            Only say so.
        none : NAME
            Perhaps.
        kind
            Which.
        whole
            All.

        Examples:
          do it
        """

    made = command_of(command)
    data, more, rows, dry, none, kind, output, whole = made.params
    assert made.help == "Do it.\n\nExamples:\n  do it"
    assert (data.required, more.required, more.text) == (True, False, "And more.")
    assert (rows.opts, rows.metavar, rows.help, rows.show_default) == (
        ["--rows"],
        "N",
        "How many, over two lines.",
        True,
    )
    assert (dry.opts, dry.secondary_opts, dry.is_flag) == (["--dry"], [], True)
    assert (none.help, none.show_default, none.required) == ("Perhaps.", False, False)
    assert [option.is_common for option in made.params[2:]] == [True, False, False, False, True, False]
    assert list(kind.type.choices) == ["a", "b"]
    assert (output.opts, output.required) == (["--output", "-o"], True)
    assert whole.secondary_opts == ["--no-whole"]


def defaults(owner: object) -> dict[str, object]:
    return {p.name: p.default for p in inspect.signature(owner).parameters.values()}


# in the words of the command line
GRIDS = ",".join(f"{rows}x{columns}" for rows, columns in defaults(ImageHistograms)["grids"])
SIZES_OF_SIFT = ",".join(map(str, defaults(SIFT)["sizes"]))
OTHERWISE = {"normalization": None, "folds": None, "seed": 0, "grids": GRIDS, "sizes": SIZES_OF_SIFT}
DIFFER = {  # by intent
    KernelSettings: {"components"},
    Settings: {"map"},
    CountedColumn: {"memory"},
}


@pytest.mark.parametrize(
    ("options", "owner"),
    [
        (Settings, HistogramClassifier),
        (Settings, AutomaticFeatures),
        (KernelSettings, FourierKernelLearner),
        (ImageSettings, ImageHistograms),
        (ImageSettings, SIFT),
        (CountedColumn, WordCounts),
        (CountedColumn, MorganCounts),
        (export.export, export_model),
    ],
)
def test_defaults_are_those_of_the_package(options, owner):
    by_flag = {flag_of(name)[2:].replace("-", "_"): default for name, default in defaults(owner).items()}
    here = defaults(options)
    both = {name for name in here.keys() & by_flag.keys() - DIFFER.get(options, set()) if not callable(by_flag[name])}
    assert both
    assert {name: here[name] for name in both} == {name: OTHERWISE.get(name, by_flag[name]) for name in both}


def test_defaults_under_other_names_are_those_of_the_package():
    molecules, counted = defaults(MorganCounts), CountedColumn()
    assert (counted.fingerprint, counted.morgan_radius) == (next(iter(FINGERPRINTS)), None)
    assert counted.morgan_size == molecules["size"]
    assert inspect.signature(CountedColumn.reading).parameters["memory"].default == defaults(WordCounts)["memory"]
    assert defaults(fit.fit)["checkpoint_every"] == defaults(Checkpoint)["seconds"]
    learners = {"widths": FourierKernelLearner, "multiple": MultipleKernelLearner}
    assert {name: defaults(learner)["n_components"] for name, learner in learners.items()} == learn_kernel.COMPONENTS


@pytest.mark.parametrize(
    ("choices", "catalogue"),
    [
        (Engine, engines.ENGINES),
        (Precision, PRECISIONS),
        (Tokens, TOKENS),
        (Fingerprint, FINGERPRINTS),
        (Salts, SALTS),
        (export.Format, FORMATS),
        (export.InputType, INPUT_TYPES),
    ],
)
def test_choices_are_the_names_of_the_catalogues(choices, catalogue):
    assert [*get_args(choices)] == [*catalogue]


ADDITIVE = {*kernels.CATALOGUE, *(f"exp-{name}" for name in kernels.CATALOGUE)}


@pytest.mark.parametrize(
    ("command", "option", "catalogue"),
    [
        ("fit", "kernel", set(kernels.names()) - ADDITIVE | {*kernels.CATALOGUE}),
        ("fit", "features", FAMILIES),
        ("fit", "sampling", sampling.CATALOGUE),
        ("fit", "map", additive.CATALOGUE),
        ("fit", "loss", {*losses.OF_CLASSES, *losses.OF_TARGETS}),
        ("fit", "fingerprint", FINGERPRINTS),
        ("fit", "descriptors", descriptors.CATALOGUE),
        ("explain", "kind", KINDS),
    ],
)
def test_help_names_what_the_catalogues_have(command, option, catalogue):
    text = next(parameter.help for parameter in named(command).params if parameter.name == option)
    assert {*catalogue} <= {*re.findall(r"[\w-]+", text)}
