"""Images on the command line: features, fit, predict and evaluate, and what they refuse."""

from __future__ import annotations

import csv
import json
import tarfile

import numpy as np
import pytest
from PIL import Image

from chimap import load, open_source
from chimap._validation import DataError
from chimap.cli import image_rows
from chimap.cli.image_rows import ImageSettings
from chimap.engines import Stopwatch
from chimap.images import ImageHistograms

from ..images.pictures import stripes
from .terminal import run_many

pytestmark = pytest.mark.slow

pytest.importorskip("cv2")

QUICK = ["--words", "12", "--step", "8", "--sizes", "4", "--grids", "1x1,2x1"]
SETTINGS = ImageSettings(words=12, step=8, sizes="4", grids="1x1,2x1")
FIT = [*QUICK, "--kernel", "chi2", "--alpha", "0.1"]
BAD_FLAGS = {
    "descriptors": (["--descriptors", "surf"], "--descriptors must be different names among sift"),
    "grids": (["--grids", "2"], "--grids must be ROWSxCOLUMNS"),
    "coding": (["--coding", "fisher"], "--coding must be one of hard, soft"),
    "words": (["--words", "0"], "--words must be a whole number of at least 1"),
    "sizes": (["--sizes", "4,x"], "--sizes must be whole numbers"),
    "part": (["--part", "train"], "no split 'train'"),
    "strict": (["--strict"], "3.png"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of two classes, one of them broken, as a folder and as an archive; and what the commands made of them."""
    folder = tmp_path_factory.mktemp("images")
    for name, angle in (("flat", 0.0), ("steep", 1.2)):
        (folder / "photos" / name).mkdir(parents=True)
        for i in range(20):
            Image.fromarray(stripes(30, 34 + i % 3, angle, i)).save(folder / "photos" / name / f"{i:02d}.png")
    cut = folder / "photos" / "flat" / "03.png"
    cut.write_bytes(cut.read_bytes()[:300])
    with tarfile.open(folder / "photos.tar", "w") as archive:
        archive.add(folder / "photos", "photos")
    (folder / "ones.txt").write_text("1\n" * 20)
    np.savez(folder / "rows.npz", X=np.eye(8), y=np.arange(8) % 2)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    commands = {
        "features": ["features", "photos", "-o", "photos.parquet", *QUICK, "--json"],
        "like": ["features", "photos.tar", "--like", "photos.words", "-o", "again.zarr"],
        "fit": ["fit", "photos", "-o", "photos.model", *FIT, "--test-fraction", "0.3", "--verbose"],
        "two": [
            "fit",
            "photos.tar",
            "-o",
            "two.model",
            *FIT,
            "--descriptors",
            "sift,lbp",
            "--kernel",
            "exp-chi2,chi2",
            "--components",
            "64",
            "--json",
        ],
        "evaluate": ["evaluate", "photos.model", "photos", "--json"],
        "predict": ["predict", "photos.model", "photos.tar", "-o", "answers.csv", "--scores"],
        "info images": ["info", "photos.tar"],
        "info words": ["info", "photos.words", "--json"],
        "rows": ["fit", "rows.npz", "-o", "rows.model", "--components", "16"],
        "images for rows": ["predict", "rows.model", "photos", "-o", "no.csv"],
        "flags for rows": ["fit", "rows.npz", "-o", "no.model", "--words", "5"],
        "compare": ["compare", "photos"],
        "exists": ["features", "photos", "-o", "photos.parquet", *QUICK],
        "like and words": ["features", "photos", "--like", "photos.words", "--words", "3", "-o", "no.parquet"],
        "ending": ["features", "photos", "-o", "no.csv"],
        "missing": ["features", "nowhere", "-o", "no.parquet"],
        "one class": ["fit", "photos/steep", "--labels", "ones.txt", "-o", "no.model"],
        "no labels": ["fit", "photos/steep", "-o", "no.model"],
        "per class": ["evaluate", "photos.model", "photos", "--splits", "2", "--per-class", "30"],
        "other labels": ["evaluate", "photos.model", "photos/steep", "--labels", "ones.txt"],
        **{name: ["features", "photos", "-o", "bad.parquet", *QUICK, *flags] for name, (flags, _) in BAD_FLAGS.items()},
    }
    listed = list(commands.values())
    found = run_many(listed[:6], folder) + run_many(listed[6:], folder)
    return dict(zip(commands, found, strict=True))


def test_features(folder, results):
    assert results["features"].code == 0, results["features"].err
    found = json.loads(results["features"].out)
    assert (found["rows"], found["bins"], list(found["broken"])) == (39, 36, ["flat/03.png"])
    assert "1 of 40 images are broken" in results["features"].err
    assert "chimap evaluate MODEL again.zarr" in results["like"].out
    source = open_source(folder / "photos.parquet")
    words = ImageHistograms.load(folder / "photos.words")
    assert source.labels().tolist() == ["flat"] * 19 + ["steep"] * 20
    np.testing.assert_array_equal(source.take([20])[0], words.histogram(stripes(30, 35, 1.2, 1)))


def test_like_gives_the_same_words(folder, results):
    assert results["like"].code == 0, results["like"].err
    one, other = open_source(folder / "photos.parquet"), open_source(folder / "again.zarr")
    np.testing.assert_array_equal(one.take(np.arange(39)), other.take(np.arange(39)))
    assert one.labels().tolist() == other.labels().tolist()
    assert not (folder / "again.words").exists()


def test_fit_and_evaluate(folder, results):
    assert results["fit"].code == 0, results["fit"].err
    assert "sift, 12 words; grids 1x1, 2x1" in results["fit"].out
    assert "describe" in results["fit"].out
    model = load(folder / "photos.model")
    assert model.predict(model.histograms_.transform([stripes(30, 34, 1.2, 99)])) == ["steep"]
    assert results["evaluate"].code == 0, results["evaluate"].err
    found = json.loads(results["evaluate"].out)
    assert "held out" in found["data"]["which rows"]
    assert found["metrics"]["accuracy"] > 0.9
    words = model.importance(open_source(folder / "photos.parquet").take(np.arange(39))).names
    assert set(words) == set(model.histograms_.get_feature_names_out())


def test_descriptors_are_blocks(folder, results):
    assert results["two"].code == 0, results["two"].err
    model = load(folder / "two.model")
    assert model.features_.names_ == ["sift", "lbp"]
    assert model.kernel_.name == "exp-chi2[36 bins]+chi2[354 bins]"


def test_predictions_have_names(folder, results):
    assert results["predict"].code == 0, results["predict"].err
    lines = list(csv.reader((folder / "answers.csv").open()))
    assert lines[0] == ["name", "prediction", "flat", "steep", "reason"]
    assert len(lines) == 41
    right = [name.split("/")[1] == answer for name, answer, *_ in lines[1:]]
    assert sum(right) > 35
    (broken,) = [line for line in lines[1:] if not line[1]]
    assert broken[0] == "photos/flat/03.png"
    assert broken[2:4] == ["", ""]
    assert "damaged or cut off" in broken[4]
    assert "1 of 40 records cannot be read: 'photos/flat/03.png'" in results["predict"].err


def test_info(results):
    assert "2, 20 images each" in results["info images"].out
    found = json.loads(results["info words"].out)
    assert (found["bins"], found["blocks"]) == (36, {"sift": [0, 36]})


REFUSED = {
    "images for rows": "the model was fitted on rows of bins",
    "flags for rows": "--words is for images",
    "compare": "chimap features IMAGES",
    "exists": "photos.parquet exists",
    "like and words": "leave the other image options out",
    "ending": ".parquet or .zarr",
    "missing": "nowhere",
    "one class": "one class only: all 20 labels are 1",
    "no labels": "has no labels. Put the images of each class into a folder",
    "per class": "class flat has 20 rows, too few for --per-class 30",
    "other labels": "label 1 (whole numbers) is not among the 2 classes",
} | {name: message for name, (_, message) in BAD_FLAGS.items()}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(folder, results, name):
    assert results[name].code == 2, results[name].err
    assert REFUSED[name] in " ".join(results[name].err.split())
    assert "describing" not in results[name].err
    assert not (folder / "bad.parquet").exists()
    assert not list(folder.glob("no.*"))


def test_a_fit_with_a_checkpoint_describes_no_image_twice(folder, tmp_path, monkeypatch):
    """Killed in mid-way, it goes on with the words and images that it has; with the model written, nothing is left."""
    monkeypatch.setattr("chimap.images.table.PART_IMAGES", 5)
    images, y = image_rows.readable_set(str(folder / "photos"), None, SETTINGS, True, Stopwatch())
    is_held_out = np.arange(y.size) % 4 == 0

    def rows(checkpoint):
        found = image_rows.training_rows(images, SETTINGS, is_held_out, 0, 1, True, Stopwatch(), checkpoint)
        return found[0].take(np.arange(y.size)), found[2]

    whole, nothing = rows(None)
    assert nothing is None
    described, original = [], ImageHistograms.histogram

    def histogram(self, image, mask=None):
        described.append(image)
        if len(described) == 18:
            raise KeyboardInterrupt
        return original(self, image, mask)

    monkeypatch.setattr(ImageHistograms, "histogram", histogram)
    with pytest.raises(KeyboardInterrupt):
        rows(tmp_path / "c")
    before = len(described)  # one more than 18 where the thread had begun the next image
    assert (tmp_path / "c.parts" / "words").exists()
    is_held_out[0] = False
    with pytest.raises(DataError, match=r"c\.parts holds parts of a job with other images"):
        rows(tmp_path / "c")
    is_held_out[0] = True
    learned = []
    monkeypatch.setattr(ImageHistograms, "fit", lambda *_, **__: learned.append(1))
    found, parts = rows(tmp_path / "c")
    assert not learned
    assert len(described) - before == y.size - 15
    np.testing.assert_array_equal(found, whole)
    parts.remove()
    assert not list(tmp_path.iterdir())


def test_a_fit_leaves_no_parts(folder, tmp_path):
    [result] = run_many([["fit", folder / "photos", "-o", "m", *FIT, "--checkpoint", "c"]], tmp_path)
    assert result.code == 0, result.err
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
