"""The page: whole, self-contained, safe, and either there or not."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import chimap.report.html as html_module
from chimap.report import classification_metrics, render_report, write_report

from .cases import CASES, classification, page_of, regression, several_tasks

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
    assert all(
        r.startswith(("#", "data:image/png;base64,", "data:image/jpeg;base64,")) for r in page.references
    )
    assert {r[1:] for r in page.references if r.startswith("#")} <= set(page.ids)
    assert not {"script", "link", "iframe", "object"} & page.tags
    without_namespaces = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http://" not in without_namespaces
    assert "https://" not in without_namespaces
    assert "@import" not in text


def test_same_evaluation_same_page():
    assert render_report(CASES["ten classes"]()) == page_of("ten classes")


def test_page_shows_what_it_is_given():
    text = "".join(Page(page_of("ten classes")).text)
    for shown in (
        "Flowers",
        "HistogramClassifier",
        "4 March 2025",
        "flowers.npz",
        "12,000",
        "exp-chi2",
        "0.25",
    ):
        assert shown in text
    metrics = classification(10).metrics
    assert f"{100 * metrics.accuracy:.1f}\u202f%" in text
    assert f"{100 * metrics.interval[0]:.1f}\u202f% to {100 * metrics.interval[1]:.1f}\u202f%" in text
    assert "always answering “class 0”" in text


def test_every_class_is_listed_weakest_first():
    text = "".join(Page(render_report(classification(40, "name-{}-"))).text)
    table = text[text.index("of 40 classes with the lowest recall") :]
    assert all(f"name-{i}-" in table for i in range(40))
    recalls = [float(r) for r in re.findall(r"name-\d+-\s+([\d.]+)\u202f%", table)]
    assert len(recalls) == 40
    assert recalls == sorted(recalls)


def test_every_task_is_listed_weakest_first():
    evaluation = several_tasks(14, name="name-{}-")
    text = "".join(Page(render_report(evaluation)).text)
    assert f"{evaluation.metrics.mean('ROC AUC'):.3f}" in text
    assert "1 of the 14 tasks cannot be measured here" in text
    table = text[text.index("weakest of 14 tasks") :]
    said = re.findall(r"name-(\d+)-\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(\S+)", table)
    places = [int(row[0]) for row in said]
    assert sorted(places) == list(range(14))
    metrics = evaluation.metrics
    for place, rows, positive, auc, precision, balanced in said:
        i = int(place)
        assert (int(rows), int(positive)) == (metrics.n_seen[i], metrics.n_positive[i])
        values = [metrics.measures[name][i] for name in ("ROC AUC", "average precision", "balanced accuracy")]
        assert [auc, precision, balanced] == ["–" if np.isnan(v) else f"{v:#.3g}" for v in values]
    scores = metrics.measures["ROC AUC"][places]
    assert np.isnan(scores[-1])
    assert (np.diff(scores[:-1]) >= 0).all()


def test_optional_parts_may_be_missing():
    page = Page(render_report(replace(classification(2), curve=None, stages={}, settings={}, baseline=None)))
    text = "".join(page.text)
    assert "Strength of the penalty" not in text
    assert "Baseline" not in text
    assert "Baseline" not in "".join(
        Page(render_report(replace(regression(1), baseline=None, curve=None))).text
    )
    assert "Baseline" not in "".join(Page(render_report(several_tasks(3, baseline=None))).text)


def test_a_model_no_better_than_the_baseline_is_called_so():
    assert "not shown to be better" not in page_of("two classes")
    coin = classification_metrics([0, 1] * 20, [0, 0, 1, 1] * 10)
    assert "not shown to be better" in render_report(replace(classification(2), metrics=coin))


def test_names_are_escaped():
    attack = '<script>alert("{}")</script>'
    evaluation = classification(
        3, attack, title=attack, model_name=attack, data={attack: attack}, settings={attack: [attack]},
        stages={attack: 1.0}, versions={attack: attack},
    )  # fmt: skip
    text = render_report(evaluation)
    assert "script" not in Page(text).tags
    assert "&lt;script&gt;" in text


def test_write_report_writes_the_page(tmp_path):
    target = tmp_path / "report.html"
    assert write_report(classification(2), str(target)) == target
    assert target.read_text(encoding="utf-8") == page_of("two classes")
    assert list(tmp_path.iterdir()) == [target]


def test_existing_page_stays_unless_told(tmp_path):
    target = tmp_path / "report.html"
    target.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_report(classification(2), target)
    assert target.read_text() == "mine"
    write_report(classification(2), target, overwrite=True)
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_missing_folder_and_folder_as_page_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"):
        write_report(classification(2), tmp_path / "nowhere" / "report.html")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        write_report(classification(2), tmp_path, overwrite=True)


@pytest.mark.parametrize("step", ["render_report", "os.replace"])
def test_failure_leaves_nothing_behind(tmp_path, monkeypatch, step):
    def fail(*args, **kwargs):
        raise RuntimeError("no more ink")

    target = tmp_path / "report.html"
    target.write_text("mine")
    monkeypatch.setattr(html_module if step == "render_report" else html_module.os, step.split(".")[-1], fail)
    with pytest.raises(RuntimeError, match="no more ink"):
        write_report(classification(2), target, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert target.read_text() == "mine"
