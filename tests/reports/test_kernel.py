"""The page of a learned kernel: what is on it, and that names stay text."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from chimap.reports import ChannelPath, ChannelWeights, LearnedKernel, Widths

HISTORY = [
    {
        "iteration": i,
        "objective": 1 / (i + 1),
        "validation_error": 1 / (i + 2),
        "validation_score": 1 - 1 / (i + 2),
        "alpha": 0.1,
        "widths": np.ones(2),
        "seconds": float(i),
    }
    for i in range(4)
]


def learned(**changes):
    common = {
        "title": "exp-chi2 on pets.npz",
        "method": "2 widths.",
        "metric": "accuracy",
        "data": {"file": "pets.npz"},
        "settings": {"seed": 0},
        "created": datetime(2026, 1, 2, tzinfo=UTC),
        "history": HISTORY,
        "stopped": "done",
        "widths": Widths(["<b>fur</b>", "eyes"], np.array([1.0, 2.0]), np.array([4.0, 1.0])),
    }
    return LearnedKernel(**common | changes)


def test_widths_and_curve():
    page = learned().to_html()
    assert "<b>fur" not in page
    assert "&lt;b&gt;fur" in page
    assert page.count("<svg") == 2
    assert "4 ×" in page  # narrower
    assert "0.5 ×" in page  # wider
    assert "went from 50.0" in page
    assert page == learned().to_html()


def test_many_widths_are_a_line_and_the_table_is_folded():
    many = Widths([f"bin {i}" for i in range(200)], np.ones(200), np.geomspace(0.1, 10, 200))
    page = learned(widths=many).to_html()
    assert "The other 190" in page
    assert len(page) < 300_000


def test_channels_and_path():
    names = ["colour", "shape", "size"]
    weights = ChannelWeights(names, np.array([[0.5, 0.0, 1.0], [1.5, 0.0, 1.0]]), ["cat", "dog"])
    path = ChannelPath(names, np.geomspace(10, 0.1, 5), np.outer(np.arange(5), [1.0, 0.0, 2.0]), None, 3)
    page = learned(widths=None, history=(), channels=weights, path=path).to_html()
    assert "not used" in page
    assert "Regularisation path" in page
    assert "50.0" in page
    np.testing.assert_allclose(weights.shares, [0.5, 0.0, 0.5])


def test_no_validation_rows():
    history = [{**step, "validation_score": None, "validation_error": None} for step in HISTORY]
    page = learned(history=history).to_html()
    assert "No rows were kept for validation" in page


def test_json_and_file(tmp_path):
    found = learned().as_dict()
    assert json.loads(json.dumps(found))["widths"][1] == {"name": "eyes", "start": 2.0, "found": 1.0}
    assert "widths" not in found["history"][0]
    learned().save(tmp_path / "kernel.html")
    with pytest.raises(FileExistsError):
        learned().save(tmp_path / "kernel.html")


def test_the_highest_score_is_told_where_it_is_not_the_one_that_is_kept():
    history = [dict(step) for step in HISTORY]
    history[1]["validation_score"] = 0.99
    page = " ".join(learned(history=history).to_html().split())
    assert "the highest accuracy, 99.0" in page
    assert "was at iteration 1" in page
    assert "the highest" not in learned().to_html()
