"""Images on the command line: the report with rankings and pictures, repeated splits, a folder around the classes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from chimap import load, open_source
from chimap.images.reading import open_images

from ..benchmarks.copies import caltech101
from ..images.pictures import stripes
from .terminal import run_many

pytestmark = pytest.mark.slow

pytest.importorskip("cv2")

QUICK = ["--words", "4", "--step", "8", "--sizes", "4", "--grids", "1x1"]
COMMANDS = {
    "fit": [
        "fit",
        "photos",
        "-o",
        "photos.model",
        *QUICK,
        "--kernel",
        "chi2",
        "--alpha",
        "0.1",
        "--test-fraction",
        "0.4",
    ],
    "page": ["evaluate", "photos.model", "photos", "-o", "page.html", "--splits", "3", "--per-class", "8"],
    "json": ["evaluate", "photos.model", "photos", "--splits", "3", "--per-class", "8", "--json"],
    "why": ["explain", "photos.model", "photos", "-o", "why.html", "--rows", "0,1"],
    "no splits": ["evaluate", "photos.model", "photos", "--per-class", "5"],
    "caltech": ["features", "caltech", "-o", "caltech.parquet", *QUICK],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("image_reports")
    for name, angle in (("flat", 0.0), ("steep", 1.2)):
        (folder / "photos" / name).mkdir(parents=True)
        for i in range(15):
            Image.fromarray(stripes(30, 34 + i % 3, angle, i)).save(folder / "photos" / name / f"{i:02d}.png")
    caltech101(folder / "caltech")
    return folder


@pytest.fixture(scope="module")
def results(folder):
    return dict(zip(COMMANDS, run_many(list(COMMANDS.values()), folder), strict=True))


def test_the_page_ranks_classes_and_shows_images(folder, results):
    assert results["page"].code == 0, results["page"].err
    assert "mean average precision" in results["page"].out
    page = (folder / "page.html").read_text()
    assert "Precision and recall" in page
    assert "Repeated splits" in page
    assert page.count("data:image/jpeg;base64,") >= 8
    assert json.loads(results["json"].out)["ranking"]["mean_average_precision"] > 0.9


def test_contributions_are_painted_on_the_images(folder, results):
    assert results["why"].code == 0, results["why"].err
    page = (folder / "why.html").read_text()
    assert page.count('src="data:image/jpeg;base64,') == 2 * 2
    assert page.count("Contributions of the pixels") == 2
    model, images = load(folder / "photos.model"), open_images(folder / "photos")
    rows = model.histograms_.transform(images.take([0]))
    explanation = model.explain(rows)
    painted = model.histograms_.painted(images.read(0), explanation.contributions[0, :, 0])
    assert painted.shape == images.read(0).shape[:2]
    assert explanation.base[0] + painted.sum() == pytest.approx(model.decision_function(rows)[0], abs=1e-6)
    with pytest.raises(ValueError, match="one number per column"):
        model.histograms_.painted(images.read(0), np.ones(3))


def test_repeated_splits(results):
    assert results["json"].code == 0, results["json"].err
    found = json.loads(results["json"].out)["splits"]
    assert (found["n_splits"], found["n_train"], found["n_test"]) == (3, 16, 14)
    assert found["class_rate"]["mean"] == pytest.approx(np.mean(found["class_rate"]["splits"]))
    assert found["class_rate"]["mean"] > 0.9
    assert "--per-class sets how --splits splits the rows: add --splits" in results["no splits"].err


def test_a_folder_around_the_classes_is_skipped(folder, results):
    assert results["caltech"].code == 0, results["caltech"].err
    assert sorted(set(open_source(folder / "caltech.parquet").labels())) == [
        "BACKGROUND_Google",
        "Faces",
        "accordion",
        "yin_yang",
    ]
