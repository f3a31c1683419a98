"""A checkpoint that is not as it was written is refused, and the model that would resume stays as it was."""

from __future__ import annotations

import json
import random

import pytest

import chimap
from chimap._validation import DataError
from chimap.fit.checkpoint import Checkpoint

from .fuzzing import damaged, edited, parts_of, sealed
from .models import X, Y


@pytest.fixture(scope="module")
def source():
    return chimap.open_source(X, Y)


@pytest.fixture(scope="module")
def content(source, tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "c"
    model = chimap.HistogramClassifier("chi2", random_state=0)
    model.fit_source(source, checkpoint=Checkpoint(path, 1e-9))
    return path.read_bytes()


def check(content, source, path, n, seed):
    draw = random.Random(seed)
    header, numbers = parts_of(content)
    meta = json.loads(header["__metadata__"]["chimap"])
    for i in range(n):
        model = chimap.HistogramClassifier("chi2", random_state=0)
        model._seed = 0
        is_sealed = i % 2 == 0
        file = (
            sealed(header, edited(meta, draw), numbers, seal=is_sealed) if i % 3 else damaged(content, draw)
        )
        path.write_bytes(file)
        before = dict(vars(model))
        try:
            Checkpoint(path).open(model, [source])
        except DataError:
            assert vars(model).keys() == before.keys()


def test_edits_and_damage(content, source, tmp_path):
    check(content, source, tmp_path / "c", 60, 1)


@pytest.mark.thorough
def test_thousands_of_edits(content, source, tmp_path):
    check(content, source, tmp_path / "c", 3000, 2)


def test_a_cut_checkpoint_is_named(content, source, tmp_path):
    (tmp_path / "c").write_bytes(content[:-8])
    with pytest.raises(DataError, match=r"c is not a chimap file, or it is cut off or damaged"):
        chimap.HistogramClassifier("chi2", random_state=0).fit_source(
            source, checkpoint=Checkpoint(tmp_path / "c")
        )
