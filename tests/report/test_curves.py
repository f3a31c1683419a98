"""Figures: well-formed SVG, the same each time, in the page's colours, with the names as they are."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from chimap.report import StrengthCurve, classification_metrics
from chimap.report._figure import PALETTE
from chimap.report.confusion import _short_count, classes_a_cell, confusion_heat_map
from chimap.report.curves import predicted_against_true, residual_histogram, stage_times, strength_curve
from chimap.selection import SelectionResult

from .cases import STAGES, classification, curve, predictions, regression

DRAWINGS = {
    "strength": lambda: strength_curve(curve()),
    "strength, steep": lambda: strength_curve(StrengthCurve([1, 10, 100], [1, 30, 1000], [1, 1, 1], 1)),
    "strength, one": lambda: strength_curve(StrengthCurve([0.5], [1.0], [0.1], 0.5)),
    "strength, narrow": lambda: strength_curve(StrengthCurve([1, 2, 3], [1, 2, 3], [0, 0, 0], 2.5)),
    "stages": lambda: stage_times(STAGES),
    "stages, no time": lambda: stage_times({"read": 0.0}),
    "predicted, dots": lambda: predicted_against_true(regression(100).metrics),
    "predicted, hexagons": lambda: predicted_against_true(regression(1000).metrics),
    "residuals": lambda: residual_histogram(regression(1000).metrics),
    "confusion": lambda: confusion_heat_map(classification(10).metrics),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_drawing_is_svg_and_reproducible_in_colours_of_the_page(draw):
    svg = draw()
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label")
    assert svg == draw()
    # every colour is one that a page can change
    bare = re.sub(r"var\(--[a-z-]+, #[0-9a-f]{6}\)", "", svg)
    assert not re.search(r"(?:fill|stroke): ?#", bare)
    assert set(re.findall(r"var\(--([a-z-]+), ", svg)) <= set(PALETTE)


def test_names_are_shown_as_they_are():
    names = ["$x_1$", "<b> & 'c'", "#1b2430", "url(#a)", "two\nlines\x00", "犬"]
    y_true, y_pred = predictions(len(names))
    metrics = classification_metrics(y_true, y_pred)
    svg = confusion_heat_map(type(metrics)(tuple(names), *list(vars(metrics).values())[1:]))
    texts = {element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")}
    assert {"$x_1$", "<b> & 'c'", "#1b2430", "url(#a)", "two lines", "犬"} <= texts


def test_users_own_settings_change_nothing():
    expected = strength_curve(curve())
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "svg.fonttype": "path"}):
        assert strength_curve(curve()) == expected


@pytest.mark.parametrize(
    ("count", "longest", "expected"),
    [
        (7, 2, "7"),
        (950, 3, "950"),
        (1234, 3, "1k"),
        (1234, 4, "1234"),
        (12_345, 4, "12k"),
        (3_400_000, 4, "3.4M"),
    ],
)
def test_counts_fit_their_cell(count, longest, expected):
    assert _short_count(count, longest) == expected


def test_cells_of_a_thousand_classes_stay_visible():
    assert [classes_a_cell(k) for k in (2, 260, 261, 1000)] == [1, 1, 2, 4]


def test_extreme_residuals_are_counted_beside_the_axis():
    metrics = regression(1000).metrics
    predictions = metrics.predictions.copy()
    predictions[:2] += 1e6
    object.__setattr__(metrics, "predictions", predictions)
    assert "2 rows are outside" in residual_histogram(metrics)
    assert np.isfinite(metrics.residuals).all()


def test_a_strength_that_another_score_chose_is_told():
    settings = {"alpha": np.array([1.0, 10.0]), "df": np.array([9.0, 4.0]), "accuracy": np.array([0.9, 0.8])}
    result = SelectionResult("gcv", settings, np.array([[0.3], [0.2]]), np.array([50]), 0, "gcv")
    curve = StrengthCurve.of(result)
    assert curve.method.endswith("chosen by accuracy on held-out rows")
    assert curve.chosen == 1.0
