"""The page of a model answers in a real browser as its tables and the model do, and refuses what it cannot read."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from chimap import HistogramClassifier, HistogramRegressor, export_model, open_source
from chimap.export.files import FORMATS
from chimap.export.parts import parts_of
from chimap.export.tables import bin_tables
from chimap.normalizations import CATALOGUE as NORMALIZATIONS
from chimap.selection.calibration import Calibration

from ..histograms import classes, signed_histograms

X, Y = classes(120, 6)
COUNTS = np.round(100 * X)
NAMES = ["birch", "oak", "fern, wood", "sedge", "moss", "sand"]
TABLE = pd.DataFrame(COUNTS, columns=NAMES)
SITES = np.array(["bog", "<b>fen</b>", "heath"])[Y]


@pytest.fixture(scope="module")
def models():
    settings = {"alpha": 1.0, "random_state": 0}
    found = {f"chi2 {name}": HistogramClassifier("chi2", normalize=name, **settings) for name in NORMALIZATIONS}
    found |= {
        f"linear {name}": HistogramClassifier("linear", normalize=name, **settings) for name in (None, "log-cp10k")
    }
    found = {name: model.fit(TABLE, SITES) for name, model in found.items()}
    found["two"] = HistogramClassifier("chi2", threshold="f1", **settings).fit(TABLE, SITES == "bog")
    tasks = pd.DataFrame({"wet": COUNTS[:, 0] > np.median(COUNTS[:, 0]), "old": Y > 0}).astype(int)
    found["tasks"] = HistogramClassifier("jensen_shannon", **settings).fit(TABLE, tasks)
    found["number"] = HistogramRegressor("hellinger", alpha=1.0).fit(TABLE, COUNTS[:, 1])
    found["count"] = HistogramRegressor("chi2", alpha=1.0, loss="poisson").fit(TABLE, COUNTS[:, 1])
    signed = signed_histograms(120, 6)
    found["signed"] = HistogramClassifier("linear", **settings).fit(signed, Y)
    return found


ASKED = """
const out = {contributions: {}, answers: {}, said: {}, shown: {}};
for (const [name, model] of Object.entries(MODELS)) {
  out.answers[name] = ROWS[name].map(row => answered(model, row));
  const byPlace = row => contributionsOf(model, row, 0, 1).sort((a, b) => a.place - b.place);
  out.contributions[name] = ROWS[name].map(row => byPlace(row).map(each => each.value));
}
const chi2 = Object.values(MODELS)[0];
for (const [name, text] of Object.entries(TEXTS)) {
  try { out.said[name] = tableOf(chi2, text); } catch (error) { out.said[name] = error.message; }
}
at("text").value = TEXTS.good;
at("go").click();
out.shown.heads = [...at("heads").querySelectorAll("th")].map(cell => cell.textContent);
out.shown.body = [...at("body").rows].map(line => [...line.cells].map(cell => cell.textContent));
out.shown.why = at("why-title").textContent;
out.shown.bars = at("bars").textContent;
at("text").value = TEXTS["decimal comma"];
at("go").click();
out.shown.error = at("messages").textContent;
out.shown.hidden = at("answers").hidden;
const pre = document.createElement("pre");
pre.id = "found";
pre.textContent = JSON.stringify(out);
document.body.append(pre);
"""

HEAD = 'site,birch,oak,"fern, wood",sedge,moss,sand'
TEXTS = {
    "good": f'\ufeff{HEAD},pH\r\n"wood, ""old""",1,2,3,4,5.5,6e0,7\r\n\r\nfen,0,0,0,0,0,1,7\r\n',
    "tabs": "sand\tmoss\tsedge\tfern, wood\toak\tbirch\n6\t5\t4\t3\t2\t1\n",
    "no heading": "1,2,3,4,5,6\n",
    "a column is missing": "birch,oak,sedge,moss\n1,2,3,4\n",
    "twice": f"{HEAD},oak\na,1,2,3,4,5,6,7\n",
    "a field too many": f"{HEAD}\na,1,2,3,4,5,6\nb,1,2,3,4,5,6,7\n",
    "decimal comma": "birch;oak;fern, wood;sedge;moss;sand\n1;2,5;3;4;5;6\n",
    "text": f"{HEAD}\na,1,2,few,4,5,6\n",
    "nothing": f"{HEAD}\na,1,2,,4,5,6\n",
    "negative": f"{HEAD}\na,1,2,-3,4,5,6\n",
    "open quote": f'{HEAD}\n"a,1,2,3,4,5,6\n',
    "no rows": f"{HEAD}\n",
    "turned": 'x,a,b\nbirch,1,2\noak,0,3\n"fern, wood",1,2\nsedge,1,2\nmoss,1,2\nsand,1,2\n',
    "empty": " \n",
}
SAID = {
    "no heading": 'The first line must name the columns. The model knows "birch", "oak", "fern, wood" and 3 more; '
    'the line has "1", "2", "3" and 3 more.',
    "a column is missing": '2 columns of the model are missing: "fern, wood", "sand". '
    "Add them, with 0 where nothing was counted.",
    "twice": 'Two columns are called "oak". Rename or remove one.',
    "a field too many": "Line 3 has 8 fields, and the first line 7. Decimals take a point, and fields with commas "
    "stand in quotation marks.",
    "decimal comma": 'Line 2, column "oak": "2,5" has a comma. Write decimals with a point, and thousands '
    "without a mark.",
    "turned": "The names of the columns stand in the first column: rows and columns are swapped. Transpose the table.",
    "text": 'Line 2, column "fern, wood": "few" is not a number. Write 0 where nothing was counted, and leave out rows '
    "that were not measured.",
    "nothing": 'Line 2, column "fern, wood": the field is empty. Write 0 where nothing was counted.',
    "negative": 'Line 2, column "fern, wood": -3 is below 0, and the model takes amounts.',
    "open quote": 'Line 2: a quotation mark is not closed. Close it with ".',
    "no rows": "There is a line of names, and no row below it.",
    "empty": "There are no rows yet: paste some, or drop a file.",
}


# with which the class of the largest score is seldom the most probable one, and gets the mean of those above it
POOLED = {"scale": 0.5, "offsets": [-0.4, 0.3, 0.1], "sigmoids": None, "power": 0.0}


def payload(page):
    return json.loads(re.search(r'<script type="application/json" id="model">(.*?)</script>', page, re.DOTALL)[1])


@pytest.fixture(scope="module")
def found(models, tmp_path_factory):
    """What a browser computes with the functions of the page, and what the page shows, from one start of it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser: apt-get install chromium")
    folder = tmp_path_factory.mktemp("page")
    pages = {}
    for name, model in models.items():
        path = export_model(model, folder / "page.html", overwrite=True).path
        pages[name] = path.read_text(encoding="utf-8")
    made = {name: payload(page) for name, page in pages.items()}
    made["pooled"] = made["chi2 l1"] | {"calibration": POOLED}
    rows = {name: rows_of(name)[:20].tolist() for name in made}
    given = {"MODELS": made, "ROWS": rows, "TEXTS": TEXTS}
    asked = "".join(f"const {name} = {json.dumps(value)};\n".replace("<", "\\u003c") for name, value in given.items())
    page = pages["chi2 l1"].replace("</body>", f"<script>{asked}{ASKED}</script></body>")
    (folder / "asked.html").write_text(page, encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    address = (folder / "asked.html").as_uri()
    done = subprocess.run([*command, "--dump-dom", address], capture_output=True, text=True, timeout=120, check=True)
    return json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)[1]))


def rows_of(name):
    return signed_histograms(120, 6) if name == "signed" else COUNTS


@pytest.mark.slow
def test_a_browser_answers_as_the_tables_do(models, found):
    for name, model in models.items():
        parts, rows, answers = parts_of(model), rows_of(name)[:20], found["answers"][name]
        tables = bin_tables(parts, 1e-3)
        scores = tables.scores(rows)
        np.testing.assert_allclose([each["scores"] for each in answers], scores, rtol=0, atol=1e-9, err_msg=name)
        assert np.abs(scores - parts.outputs(rows)).max() <= tables.bound + 1e-5, name
        expected = parts.predicted(scores).reshape(20, -1)
        if parts.classes is None:
            np.testing.assert_allclose([each["answers"] for each in answers], expected, rtol=1e-9)
            continue
        assert [each["answers"] for each in answers] == (expected if name == "tasks" else expected.astype(str)).tolist()
        p = parts.calibration(scores)
        np.testing.assert_allclose([each["probabilities"] for each in answers], p, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.slow
def test_the_answer_is_never_less_probable_than_another_class(models, found):
    calibration = Calibration(POOLED["scale"], np.array(POOLED["offsets"]))
    scores = bin_tables(parts_of(models["chi2 l1"]), 1e-3).scores(COUNTS[:20])
    p = calibration(scores)
    assert ((POOLED["scale"] * scores + POOLED["offsets"]).argmax(axis=1) != scores.argmax(axis=1)).any()
    np.testing.assert_allclose([each["probabilities"] for each in found["answers"]["pooled"]], p, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_contributions_are_those_of_explain(models, found):
    for name, model in models.items():
        explained = model.explain(rows_of(name)[:20]).contributions[:, :, 0]
        bound = 3 * bin_tables(parts_of(model), 1e-3).errors.max() + 1e-5 * np.abs(explained).max()
        assert np.abs(np.array(found["contributions"][name]) - explained).max() <= bound, name


@pytest.mark.slow
def test_what_a_page_reads_and_refuses(found):
    said = found["said"]
    assert said["good"]["rows"][0] == {"name": 'wood, "old"', "values": [1, 2, 3, 4, 5.5, 6]}
    assert [row["name"] for row in said["good"]["rows"]] == ['wood, "old"', "fen"]
    assert said["good"]["notes"] == ['1 column unknown to the model is not used: "pH".']
    assert said["tabs"] == {"rows": [{"name": "1", "values": [1, 2, 3, 4, 5, 6]}], "notes": []}
    assert {name: said[name] for name in SAID} == SAID


@pytest.mark.slow
def test_what_a_page_shows(models, found):
    shown, row = found["shown"], TABLE.iloc[:1].copy()
    row.iloc[0] = [1, 2, 3, 4, 5.5, 6]
    answer = models["chi2 l1"].predict(row)[0]
    p = models["chi2 l1"].predict_proba(row).max()
    assert shown["heads"] == ["Row", "Answer", "Probability", "Weighs most"]
    assert shown["body"][0][:2] == ['wood, "old"', answer]
    assert abs(float(shown["body"][0][2].removesuffix(" %")) - 100 * p) < 1
    assert shown["why"] == f'wood, "old": why {answer}'
    assert all(name in shown["bars"] for name in NAMES)
    assert shown["error"] == SAID["decimal comma"]
    assert shown["hidden"]


def test_a_page_is_one_file_that_loads_nothing(models, tmp_path):
    done = export_model(models["chi2 l1"], tmp_path / "a <i>.html")
    page = done.path.read_text(encoding="utf-8")
    assert done.format == "page"
    assert done.error == bin_tables(parts_of(models["chi2 l1"]), 1e-3).bound
    assert "default-src 'none'" in page
    assert not re.search(r"https?://|<link|\bsrc=|@import|fetch\(|XMLHttp", page)
    assert "<b>fen" not in page
    read = payload(page)
    assert read["title"] == "a <i>"
    assert read["names"] == NAMES
    assert read["classes"] == ["<b>fen</b>", "bog", "heath"]
    assert [*FORMATS][-1] == "page"


def test_what_has_no_page(models, tmp_path, monkeypatch):
    with pytest.raises(
        ValueError, match=r"^a page cannot hold this model: .* exp-chi2, compares whole rows.*'chi2', or with 'linear'"
    ):
        export_model(
            HistogramClassifier("exp-chi2", features="exact", alpha=1.0).fit(TABLE, SITES), tmp_path / "a.html"
        )
    ordered = HistogramClassifier("chi2", alpha=1.0, ordered=["bog", "<b>fen</b>", "heath"]).fit(TABLE, SITES)
    with pytest.raises(ValueError, match=r"have an order or stand in a tree\. Export the model as ONNX"):
        export_model(ordered, tmp_path / "a.html")
    texts = [f"{'oak' if y else 'fern'} wood" for y in Y]
    words = HistogramClassifier("linear", alpha=1.0).fit_source(open_source(texts, SITES.tolist(), ngrams=(1, 2)))
    with pytest.raises(ValueError, match="takes rows of numbers, and this model reads texts"):
        export_model(words, tmp_path / "a.html")
    monkeypatch.setattr("chimap.export.page._MOST_NUMBERS", 10)
    with pytest.raises(ValueError, match=r"more than 10, with which browsers are slow: raise tolerance"):
        export_model(models["two"], tmp_path / "a.html")
    assert not list(tmp_path.iterdir())
