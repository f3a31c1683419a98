"""A checkpoint that is not as it was written is refused, with a DataError whatever is wrong."""

from __future__ import annotations

import json
import random
from contextlib import suppress

import pytest

import chimap
from chimap._validation import DataError
from chimap.fit.checkpoint import Checkpoint
from chimap.machines.base import Facts, Request
from chimap.machines.catalogue import machine_for
from chimap.machines.method import Method
from chimap.recipe.task import Task

from ..histograms import classes
from .fuzzing import damaged, edited, parts_of, sealed
from .models import X, Y


def of_sums():
    return chimap.HistogramClassifier("chi2", memory="1GiB", random_state=0)


def of_blocks():
    """A machine whose memory holds a block of the rows."""
    return chimap.HistogramClassifier("exp-chi2", features="exact", memory="6MiB", random_state=0)


@pytest.fixture(scope="module", params=[of_sums, of_blocks])
def make(request):
    return request.param


@pytest.fixture(scope="module")
def source(make):
    return chimap.open_source(*((X, Y) if make is of_sums else classes(1100, 8)))


@pytest.fixture(scope="module")
def content(make, source, tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "c"
    make().fit_source(source, checkpoint=Checkpoint(path, 1e-9))
    return path.read_bytes()


def recipe_of(make, source):
    recipe = make()._recipe()
    task, source, _ = Task.of(source, recipe)
    recipe = machine_for(recipe, Facts.of(source, task, None, Request(True, has_checkpoint=True))).recipe
    return Method.of(recipe, source.column_names, has_gaps=task.has_gaps)


def check(make, content, source, path, n, seed):
    recipe = recipe_of(make, source)
    path.write_bytes(content)
    assert Checkpoint(path).open(recipe, [source]) is not None
    draw = random.Random(seed)
    header, numbers = parts_of(content)
    meta = json.loads(header["__metadata__"]["chimap"])
    for i in range(n):
        is_sealed = i % 2 == 0
        file = sealed(header, edited(meta, draw), numbers, seal=is_sealed) if i % 3 else damaged(content, draw)
        path.write_bytes(file)
        with suppress(DataError):
            Checkpoint(path).open(recipe, [source])
        with suppress(DataError):
            Checkpoint(path).choice(make()._recipe())


def test_edits_and_damage(make, content, source, tmp_path):
    check(make, content, source, tmp_path / "c", 60, 1)


@pytest.mark.thorough
def test_thousands_of_edits(make, content, source, tmp_path):
    check(make, content, source, tmp_path / "c", 3000, 2)


def test_a_cut_checkpoint_is_named(make, content, source, tmp_path):
    (tmp_path / "c").write_bytes(content[:-8])
    with pytest.raises(DataError, match=r"c is not a chimap file, or it is cut off or damaged"):
        make().fit_source(source, checkpoint=Checkpoint(tmp_path / "c"))
