"""What a notebook shows of a fitted model and of its race."""

from __future__ import annotations

import sys

import pandas as pd
import pytest
from sklearn.datasets import load_digits

from chimap import HistogramClassifier, HistogramRegressor

X, y = load_digits(n_class=3, return_X_y=True)
X, y = X[:90], y[:90]


@pytest.fixture(scope="module")
def raced():
    return HistogramClassifier(random_state=0).fit(X, y)


def test_a_race_is_a_sentence_and_ten_sorted_rows(raced):
    race, lines = raced.race_, repr(raced.race_).splitlines()
    assert len(lines) == 13
    assert lines[0].startswith(f"{race.winner.name}: accuracy ")
    assert f"best of {len(race.trials)} candidates" in lines[0]
    assert sum(line.startswith("> ") for line in lines) == 1
    scores = [float(line.replace(">", " ").split()[0]) for line in lines[2:12]]
    assert scores == sorted(scores, reverse=True)
    assert lines[-1] == f"  and {len(race.trials) - 10} more: table()"


def test_its_table_is_a_sorted_frame(raced, monkeypatch):
    table = raced.race_.table()
    assert isinstance(table, pd.DataFrame)
    last = table[table["round"] == table["round"].max()]
    assert last["score"].is_monotonic_decreasing
    assert table.loc[table["is_winner"], "name"].tolist() == [raced.race_.winner.name]
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert raced.race_.table() == raced.race_.rows()


def test_the_box_names_the_machine_and_no_attribute_without_a_value(raced):
    box = raced._repr_mimebundle_()["text/html"]
    assert box.startswith(f"<p>{raced.race_.winner.name}: accuracy ")
    assert "fitted on 90 rows</p>" in box
    assert "NoneType" not in box
    assert ">kernel_</a>" in box
    assert "feature_importances_" not in box  # it takes predictions
    given = HistogramRegressor("chi2", normalize="l1", alpha=[0.1, 1.0]).fit(X, y)
    assert given._repr_mimebundle_()["text/html"].startswith("<p>chi2, l1 rows; ")
    assert not HistogramRegressor()._repr_mimebundle_()["text/html"].startswith("<p>")
