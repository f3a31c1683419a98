"""Model files: the same model comes back, and nothing else is taken for one."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

import chimap
from chimap import HistogramClassifier, HistogramRegressor, Moments
from chimap._validation import DataError

from ..histograms import classes


def test_text_labels_and_training_notes(tmp_path):
    X, y = classes(200)
    model = HistogramClassifier("exp-chi2", n_components=32, random_state=0).fit(X, np.array(["a", "bc", "d"])[y])
    model.training_ = {"file": "x.npz", "rows": 200, "split": None, "counts": [["a", 3]]}
    model.save(tmp_path / "a.model")
    loaded = chimap.load(tmp_path / "a.model")
    assert loaded.classes_.tolist() == ["a", "bc", "d"]
    assert loaded.training_ == model.training_


@pytest.mark.slow
def test_a_model_of_a_folder_that_the_process_has_not_imported(tmp_path):
    from chimap.images import SIFT, HardCoding, Vocabulary

    X, y = classes(100)
    model = HistogramClassifier("exp-chi2", n_components=32, random_state=0).fit(X, y)
    model.training_ = {"of images": [SIFT(step=5), HardCoding(), Vocabulary(np.eye(3, dtype=np.float32), 1.0)]}
    model.save(tmp_path / "a.model")
    opens = (
        "import sys, chimap.estimators as learning; assert 'chimap.images' not in sys.modules;"
        "print(learning.HistogramClassifier.load(sys.argv[1]).training_['of images'][0])"
    )
    told = subprocess.run(
        [sys.executable, "-c", opens, tmp_path / "a.model"], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == str(SIFT(step=5))


@pytest.fixture
def saved(tmp_path):
    X, y = classes(100)
    path = tmp_path / "a.model"
    HistogramClassifier("exp-chi2", n_components=32, random_state=0).fit(X, y).save(path)
    return path


def test_an_existing_file_stays(saved):
    before = saved.read_bytes()
    model = chimap.load(saved)
    with pytest.raises(FileExistsError, match="exists"):
        model.save(saved)
    assert saved.read_bytes() == before
    model.save(saved, overwrite=True)


def test_cut_off(saved):
    saved.write_bytes(saved.read_bytes()[:-100])
    with pytest.raises(DataError, match="cut off or damaged"):
        chimap.load(saved)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x80\x04\x95."])
def test_not_a_model(saved, content):
    saved.write_bytes(content)
    with pytest.raises(DataError, match="not a chimap file"):
        chimap.load(saved)


def test_safetensors_of_someone_else(saved):
    safetensors.numpy.save_file({"a": np.ones(3)}, saved)
    with pytest.raises(DataError, match="not one of chimap"):
        chimap.load(saved)


def test_moments_are_no_model(saved):
    Moments(2, 1).update(np.ones((3, 2)), np.ones(3)).save(saved)
    with pytest.raises(DataError, match="holds a chimap moments"):
        chimap.load(saved)


def test_machines_that_the_command_line_does_not_open(saved):
    X, y = classes(100)
    chimap.OnlineIntersectionClassifier(random_state=0).fit(X, y).save(saved, overwrite=True)
    with pytest.raises(DataError, match=r"an estimator that only Python opens \(chimap.load\), not a"):
        chimap.load(saved, kind="model")
    assert chimap.OnlineIntersectionClassifier.load(saved).score(X, y) > 0.6


def test_other_class(saved):
    with pytest.raises(DataError, match="holds a HistogramClassifier"):
        HistogramRegressor.load(saved)


def rewrite(path, change):
    with safetensors.safe_open(path, framework="numpy") as file:
        header, arrays = json.loads(file.metadata()["chimap"]), {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
    change(header)
    safetensors.numpy.save_file(arrays, path, metadata={"chimap": json.dumps(header)})


def test_format_of_another_version(saved):
    rewrite(saved, lambda header: header.update(format=99))
    with pytest.raises(DataError, match="format 99"):
        chimap.load(saved)


def test_only_listed_classes_are_made(saved):
    rewrite(saved, lambda header: header["model"].update(object="Popen"))
    with pytest.raises(DataError, match="damaged"):
        chimap.load(saved)


def test_missing_folder(tmp_path):
    X, y = classes(100)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        HistogramClassifier("exp-chi2", n_components=32).fit(X, y).save(tmp_path / "nowhere" / "a.model")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        chimap.load(tmp_path / "a.model")
