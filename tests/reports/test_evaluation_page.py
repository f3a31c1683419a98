"""Pages of evaluations and their figures: complete, well-formed, the same each time, in the page's colours."""

from __future__ import annotations

import html
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from chimap.reports import Evaluation, StrengthCurve, classification_metrics
from chimap.reports.figures import PALETTE
from chimap.reports.sections.confusion import _short_count, classes_a_cell, confusion_heat_map
from chimap.reports.sections.numbers import predicted_against_true, residual_histogram
from chimap.reports.sections.stages import stage_times
from chimap.reports.selection import strength_curve
from chimap.selection.base import SelectionResult

from .cases import CASES, STAGES, classification, curve, page_of, predictions, regression, several_tasks

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Checks that tags nest; collects ids, references, and text."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.references, self.tags, self.text = [], [], [], set(), []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.references += [attrs[key] for key in ("src", "href", "xlink:href", "action") if key in attrs]
        self.references += re.findall(r"url\(([^)]*)\)", " ".join(v or "" for v in attrs.values()))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_page_is_well_formed_and_loads_nothing(name):
    text = page_of(name)
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert len(page.ids) == len(set(page.ids))
    assert all(r.startswith(("#", "data:image/png;base64,", "data:image/jpeg;base64,")) for r in page.references)
    assert {r[1:] for r in page.references if r.startswith("#")} <= set(page.ids)
    assert not {"script", "link", "iframe", "object"} & page.tags
    without_namespaces = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http://" not in without_namespaces
    assert "https://" not in without_namespaces
    assert "@import" not in text


def test_same_evaluation_same_page():
    assert CASES["ten classes"]().to_html() == page_of("ten classes")


def test_page_shows_what_it_is_given():
    text = "".join(Page(page_of("ten classes")).text)
    for shown in ("Flowers", "HistogramClassifier", "4 March 2025", "flowers.npz", "12,000", "exp-chi2", "0.25"):
        assert shown in text
    metrics = classification(10).metrics
    assert f"{100 * metrics.accuracy:.1f}\u202f%" in text
    assert f"{100 * metrics.interval[0]:.1f} to {100 * metrics.interval[1]:.1f}\u202f%" in text
    assert "always answering “class 0”" in text


def test_every_class_is_listed_weakest_first():
    text = "".join(Page(classification(40, "name-{}-").to_html()).text)
    table = text[text.index("of 40 classes with the lowest recall") :]
    assert all(f"name-{i}-" in table for i in range(40))
    recalls = [float(r) for r in re.findall(r"name-\d+-\s+([\d.]+)\u202f%", table)]
    assert len(recalls) == 40
    assert recalls == sorted(recalls)


def test_every_task_is_listed_weakest_first():
    evaluation = several_tasks(14, name="name-{}-")
    text = "".join(Page(evaluation.to_html()).text)
    assert f"{evaluation.metrics.mean('ROC AUC'):.3f}" in text
    assert "1 of the 14 tasks cannot be measured here" in text
    table = text[text.index("weakest of 14 tasks") :]
    said = re.findall(r"name-(\d+)-\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+ to \S+|–)\s+(\S+)\s+(\S+)", table)
    places = [int(row[0]) for row in said]
    assert sorted(places) == list(range(14))
    metrics = evaluation.metrics
    for place, rows, positive, auc, ends, precision, balanced in said:
        i = int(place)
        assert (int(rows), int(positive)) == (metrics.n_seen[i], metrics.n_positive[i])
        values = [metrics.measures[name][i] for name in ("average precision", "balanced accuracy")]
        assert [precision, balanced] == ["–" if np.isnan(v) else f"{v:#.3g}" for v in values]
        assert auc == ("–" if np.isnan(metrics.measures["ROC AUC"][i]) else f"{metrics.measures['ROC AUC'][i]:.3f}")
        low, high = metrics.intervals[i]
        assert ends == ("–" if np.isnan(low) else f"{low:.3f} to {high:.3f}")
    low, high = metrics.interval
    assert f"95 % confidence interval: {low:.3f} to {high:.3f}" in text
    scores = metrics.measures["ROC AUC"][places]
    assert np.isnan(scores[-1])
    assert (np.diff(scores[:-1]) >= 0).all()


def test_optional_parts_may_be_missing():
    page = Page(replace(classification(2), curve=None, stages={}, settings={}, baseline=None).to_html())
    text = "".join(page.text)
    assert "Strength of the penalty" not in text
    assert "Baseline" not in text
    assert "Baseline" not in "".join(Page(replace(regression(1), baseline=None, curve=None).to_html()).text)
    assert "Baseline" not in "".join(Page(several_tasks(3, baseline=None).to_html()).text)


def test_a_model_no_better_than_the_baseline_is_called_so():
    assert "not shown to be better" not in page_of("two classes")
    coin = classification_metrics([0, 1] * 20, [0, 0, 1, 1] * 10)
    assert "not shown to be better" in replace(classification(2), metrics=coin).to_html()


def test_names_are_escaped():
    attack = '<script>alert("{}")</script>'
    evaluation = classification(
        3,
        attack,
        title=attack,
        model_name=attack,
        data={attack: attack},
        settings={attack: [attack]},
        stages={attack: 1.0},
        versions={attack: attack},
    )
    text = evaluation.to_html()
    assert "script" not in Page(text).tags
    assert "&lt;script&gt;" in text


def test_save_writes_the_page(tmp_path):
    target = tmp_path / "report.html"
    assert classification(2).save(str(target)) == target
    assert target.read_text(encoding="utf-8") == page_of("two classes")
    assert list(tmp_path.iterdir()) == [target]


def test_notebooks_show_the_page_in_a_frame_of_its_own():
    """Its style must not reach the notebook, and nothing of the page may close the frame."""
    frame = re.fullmatch(r'<iframe srcdoc="([^"]*)"[^>]*></iframe>', classification(2)._repr_html_())
    assert html.unescape(frame[1]) == page_of("two classes")


def test_existing_page_stays_unless_told(tmp_path):
    target = tmp_path / "report.html"
    target.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        classification(2).save(target)
    assert target.read_text() == "mine"
    classification(2).save(target, overwrite=True)
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_missing_folder_and_folder_as_page_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"):
        classification(2).save(tmp_path / "nowhere" / "report.html")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        classification(2).save(tmp_path, overwrite=True)


@pytest.mark.parametrize(("owner", "step"), [(Evaluation, "to_html"), (os, "replace")])
def test_failure_leaves_nothing_behind(tmp_path, monkeypatch, owner, step):
    def fail(*args, **kwargs):
        raise RuntimeError("no more ink")

    target = tmp_path / "report.html"
    target.write_text("mine")
    monkeypatch.setattr(owner, step, fail)
    with pytest.raises(RuntimeError, match="no more ink"):
        classification(2).save(target, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert target.read_text() == "mine"


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
    [(7, 2, "7"), (950, 3, "950"), (1234, 3, "1k"), (1234, 4, "1234"), (12_345, 4, "12k"), (3_400_000, 4, "3.4M")],
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
