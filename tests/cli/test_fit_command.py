"""The command that a comparison ends with."""

from __future__ import annotations

import shlex

from chimap.cli.commands import named
from chimap.cli.commands.compare import fit_command
from chimap.cli.options import CountedColumn, TableOptions
from chimap.machines.base import Facts, Request, Winner
from chimap.machines.catalogue import for_all_rows
from chimap.race.candidates import kernels_worth_trying
from chimap.race.traits import SampleTraits
from chimap.recipe import Recipe
from chimap.recipe.task import Task

from ..machines.choices import source_of

FLAGS = {flag for p in named("fit").params for flag in (*p.opts, *p.secondary_opts)}
LOOK = SampleTraits(is_signed=False, density=0.05, has_sums=True, has_counts=True, n_classes=3)
LEARNED = {"alpha": 0.1, "gamma": 0.25}


def every_settings():
    """Of all that a comparison may recommend, for few rows and many, few bins and many."""
    asked = Recipe("HistogramClassifier", True)
    entered = [entry.candidate(asked) for entry in kernels_worth_trying(LOOK)]
    sources = map(source_of, ("100 x 10, 2 classes", "100000 x 10, 2 classes", "100000 x 100000, 2 classes"))
    sizes = [Facts.of(source, Task.of(source, asked)[0], None, Request(can_keep=True)) for source in sources]
    for candidate in entered:
        yield candidate.settings
        for facts in sizes:
            recipe = for_all_rows(candidate.recipe, facts, asked, Winner(LEARNED, False, None))
            yield recipe.with_raced(scoring="roc_auc").raced_settings


def test_every_setting_is_a_flag_of_fit():
    for settings in every_settings():
        words = shlex.split(fit_command(settings, "data.npz", None, (TableOptions(), CountedColumn()), {}))
        assert {word for word in words if word.startswith("--")} <= FLAGS
        assert words[words.index("--kernel") + 1] == settings["kernel"]
        for name, flag in (("normalize", "--normalization"), ("loss", "--loss"), ("n_components", "--components")):
            value = settings.get(name)
            if value not in (None, "square"):
                assert words[words.index(flag) + 1] == str(value)


def test_flags_of_the_data_and_those_that_are_no_defaults_are_kept():
    table = TableOptions(id="name", groups="film", transpose=True, sample_weight="times", missing="-1")
    given = {"memory": "2GiB", "seed": 0, "class_weight": "balanced"}
    line = fit_command({"kernel": "chi2"}, "my data.npz", "meta.tsv::kind", (table, CountedColumn()), given)
    assert line == (
        "chimap fit 'my data.npz' --labels meta.tsv::kind --id name --missing -1 --transpose --groups film "
        "--sample-weight times --memory 2GiB --class-weight balanced --kernel chi2 --output my.model"
    )
