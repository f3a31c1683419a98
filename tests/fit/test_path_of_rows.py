"""The way of the rows: from an estimator to the sums through few files, each entered once."""

from __future__ import annotations

import traceback
from itertools import groupby
from pathlib import Path

import numpy as np

import chimap
from chimap import HistogramClassifier
from chimap.moments import FoldMoments

PACKAGE = Path(chimap.__file__).parent
MOST_FILES = 6


def test_rows_enter_six_files_on_their_way_to_the_sums(monkeypatch):
    paths: list[list[str]] = []
    add_shifted = FoldMoments.add_shifted

    def recorded(moments: FoldMoments, *rows: object) -> None:
        files = [frame.filename for frame in traceback.extract_stack()]
        paths.append([file for file, _ in groupby(files) if Path(file).is_relative_to(PACKAGE)])
        add_shifted(moments, *rows)

    monkeypatch.setattr(FoldMoments, "add_shifted", recorded)
    rng = np.random.default_rng(0)
    model = HistogramClassifier("exp-chi2", features="landmarks", n_components=20, random_state=0)
    model.fit(rng.random((300, 10)), rng.integers(0, 2, 300))
    path = paths[-1]
    assert len(set(path)) == len(path)  # no file is entered twice
    assert len(path) + 1 <= MOST_FILES, path  # and the file of the sums itself
