"""The page of an explanation: what is on it, and that names stay text."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.explain.effects import BinEffect
from chimap.models.explain import KINDS
from chimap.reports.explained_rows import explained_rows, told_by_margins, with_counterfactuals
from chimap.reports.pictures import check_shape, painted, painted_photo, picture_shape
from chimap.reports.sections.importance import KINDS as IN_WORDS
from tests.histograms import classes as of_classes

from .explanations import explanation
from .test_evaluation_page import Page


@pytest.mark.parametrize("features", ["additive", "landmarks"])
def test_bins_functions_and_rows(features):
    found = explanation(features)
    page = found.to_html()
    assert "<b>chi2" not in page
    assert "&lt;row 0&gt;" in page
    assert page.count("<svg") == 3 + 2
    assert page.count('class="legend"') == 1  # of all functions
    assert found.sentence in page
    assert "points to" in found.sentence
    assert page.count("data:image/png") == 1 + 4
    assert ("The model is the sum of these functions" in page) == (features == "additive")
    assert ("Landmarks or rows that contribute the most" in page) == (features == "landmarks")
    assert "http" not in page.replace("http://www.w3.org", "")
    assert page == found.to_html()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_importance_has_words(kind):
    one = explanation()
    short = replace(one, importance=replace(one.importance, kind=kind), effects=(), rows=())
    assert IN_WORDS[kind] in short.to_html()


def test_of_two_classes_and_of_a_regression():
    assert "Contributions in favour of" in explanation(two=True).to_html()
    assert "Contributions that raise" in explanation(regression=True).to_html()


@pytest.mark.parametrize(
    ("slopes", "classes", "said"),
    [
        ([2.0], ("bog", "wood"), "wood"),
        ([-2.0], ("bog", "wood"), "bog"),
        ([1.0, 3.0, -4.0], ("bog", "wood", "sea"), "wood"),  # a score that rises speaks for its class
        ([-1.0, -3.0, -2.0], ("bog", "wood", "sea"), "not wood"),
        ([2.0], None, "more"),
        ([-1.0, -3.0], None, "less logP"),
    ],
)
def test_what_a_bin_speaks_for(slopes, classes, said):
    values = np.linspace(0, 10, 11)
    effect = BinEffect(0, "otu", values, np.outer(values - 4, slopes), np.zeros(0), np.zeros(0))
    names = ("prediction",) if classes is None and len(slopes) == 1 else (classes or ("ESOL", "logP"))
    found = replace(explanation(), effects=(effect,), output_names=names, classes=classes)
    assert found.speaks_for(effect) == said
    assert found.sentence == f"otu points to {said} (more than 4)."
    assert said in "".join(Page(found.to_html()).text)


def test_rows_are_told_by_their_margins():
    wrong, right = np.array([-0.2, -0.1]), np.array([0.1, 0.2])
    assert "worst mistakes" in told_by_margins(wrong, True, True)
    assert "then the closest calls" in told_by_margins(np.array([-0.1, 0.1]), True, True)
    assert told_by_margins(right, True, True).startswith("The closest calls first; no row is wrong")
    assert "least certain" in told_by_margins(right, False, True)
    assert "largest errors" in told_by_margins(wrong, True, False)


def test_rows_that_a_prediction_rests_on_have_their_ids():
    X, y = of_classes(60, 8)
    source = ArraySource(X, y)
    source.row_ids = np.array([f"plot {i}" for i in range(len(y))])
    model = HistogramClassifier("exp-chi2", features="exact", alpha=1.0).fit_source(source)
    best = model.nearest(X[:1], k=3)[0]
    assert best.ids.tolist() == [f"plot {i}" for i in best.places]
    shown, _ = explained_rows(model.fitted, source, np.array([0]), y, None)
    assert [one.name for one in shown[0].likenesses][:3] == best.ids.tolist()


def test_rows_of_both_classes_rest_on_rows_that_speak_for_their_prediction():
    X, y = of_classes(60, 8)
    source, y = ArraySource(X, y == y[0]), y == y[0]
    model = HistogramClassifier("exp-chi2", features="exact", alpha=1.0).fit_source(source)
    places = np.array([np.flatnonzero(y)[0], np.flatnonzero(~y)[0]])
    shown, _ = explained_rows(model.fitted, source, places, y, None)
    assert [row.likenesses[0].contribution > 0 for row in shown] == [True, True]
    assert {row.predicted for row in shown} == {True, False}
    X[:, 0] = 0  # no row has more than none of it
    with pytest.warns(UserWarning, match=r"no change of these columns was found .* of rows 0, 2"):
        with_counterfactuals(model.fitted, ArraySource(X), np.array([0, 1]), shown, [0], np.arange(60))


def test_json_holds_the_same(tmp_path):
    found = explanation()
    found.save(tmp_path / "why.html")
    plain = json.loads(json.dumps(found.as_dict()))
    assert len(plain["importance"]["bins"]) == 20
    assert plain["rows"][0]["contributions"][0]["name"].startswith("pixel")
    assert len(plain["functions"]) == 3
    with pytest.raises(FileExistsError):
        found.save(tmp_path / "why.html")


def test_the_functions_of_an_additive_model_add_up_to_its_contributions():
    from sklearn.datasets import load_digits

    from chimap import HistogramClassifier

    X, y = load_digits(return_X_y=True)
    model = HistogramClassifier("chi2", precision="float64").fit(X, y)
    effect = model.effects([21], X)[0]
    ends = np.tile(model.mean_row_, (2, 1))
    ends[:, 21] = effect.values[[0, -1]]
    contributions = model.explain(ends).contributions[:, 21]
    np.testing.assert_allclose(np.diff(effect.effects[[0, -1]], axis=0), np.diff(contributions, axis=0), atol=1e-9)


def test_rows_that_are_no_pictures_are_not_painted():
    assert picture_shape(np.random.default_rng(0).random((50, 30))) is None
    assert picture_shape(np.zeros((50, 64))) is None
    with pytest.raises(DataError, match="has 60 pixels, but a row has 64"):
        check_shape((6, 10), 64)


def test_what_adds_is_blue_and_what_takes_is_orange():
    import base64
    import io

    from PIL import Image

    source = painted(np.array([1.0, -1.0, 0.0, 0.0]), (2, 2))
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))), float)
    left, right = picture[0, 0], picture[0, -1]
    assert left[2] > left[0]
    assert right[0] > right[2]
    assert picture[-1, 0].tolist() == [255, 255, 255]


def test_a_photograph_is_painted_blue_for_and_orange_against():
    image = np.full((90, 120, 3), 128, np.uint8)
    contributions = np.zeros((45, 60))  # of the image as it was described, at half the size
    contributions[10, 12], contributions[10, 48] = 1.0, -1.0
    address = painted_photo(image, contributions)
    kind, _, data = address.partition(",")
    assert kind == "data:image/jpeg;base64"
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))).astype(int)
    assert pixels.shape == (168, 224, 3)
    at = pixels[10 * 168 // 45, [12 * 224 // 60, 48 * 224 // 60]]
    assert at[0, 2] > at[0, 0] + 60
    assert at[1, 0] > at[1, 2] + 60
    assert np.ptp(pixels[150, 112]) < 12  # grey where nothing speaks
