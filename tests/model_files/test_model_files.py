"""Model files are validated as a whole when they are opened: whatever was edited ends in a DataError."""

from __future__ import annotations

import contextlib
import json
import random
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

import chimap
from chimap import _files
from chimap._validation import DataError
from chimap.model_files import model_file

from .fuzzing import damaged, edited, parts_of, sealed
from .models import ANSWERS, MODELS, PIPELINES, X, Y

WRITTEN = Path(__file__).parent / "written"


@pytest.fixture(scope="session")
def contents(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for name, make in (MODELS | PIPELINES).items():
        chimap.save(make(), folder / name)
        found[name] = (folder / name).read_bytes()
    return found


def opened(content: bytes, path: Path):
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return chimap.load(path)


def use(model) -> None:
    """What it was saved for: whatever opens works, or refuses the rows by a DataError."""
    with warnings.catch_warnings(), contextlib.suppress(DataError):
        warnings.simplefilter("ignore")
        (model.predict if hasattr(model, "predict") else model.transform)(X)


def check_edits(content: bytes, path: Path, n: int, seed: int, seal: bool) -> None:
    draw = random.Random(seed)
    header, numbers = parts_of(content)
    meta = json.loads(header["__metadata__"]["chimap"])
    for _ in range(n):
        other = edited(meta, draw)
        same = repr(other) == repr(meta)
        file = sealed(header, other, numbers, seal=seal)
        if seal:
            try:
                model = opened(file, path)
            except DataError:
                continue
            use(model)
        elif not same:
            with pytest.raises(DataError):
                opened(file, path)


@pytest.mark.parametrize("name", MODELS | PIPELINES)
class TestEdits:
    def test_of_the_metadata(self, contents, tmp_path, name):
        check_edits(contents[name], tmp_path / "m", 30, 1, seal=False)

    def test_of_metadata_whose_digest_was_made_again(self, contents, tmp_path, name):
        check_edits(contents[name], tmp_path / "m", 40, 2, seal=True)

    def test_of_the_bytes(self, contents, tmp_path, name):
        draw = random.Random(3)
        for _ in range(30):
            file = damaged(contents[name], draw)
            if file != contents[name]:
                with pytest.raises(DataError):
                    opened(file, tmp_path / "m")

    @pytest.mark.thorough
    def test_of_everything_by_thousands(self, contents, tmp_path, name):
        check_edits(contents[name], tmp_path / "m", 1500, 4, seal=False)
        check_edits(contents[name], tmp_path / "m", 1500, 5, seal=True)


def change(model, name: str, value) -> None:
    """Put another value at a path of attributes, as a crafted file would."""
    *path, last = name.split(".")
    for key in path:
        model = getattr(model, key)
    object.__setattr__(model, last, value)


def without_gamma(features: list) -> list:
    """Return features of which the first has a kernel whose gamma is still to be taken from rows."""
    change(features[0], "kernel_", replace(features[0].kernel_, gamma="mean"))
    return features


CRAFTED = {
    "tables cut short": ("compiled", "tables_.lines", lambda a: a[:-1]),
    "fewer pieces": ("compiled", "tables_.lines", lambda a: a[:, :-3]),
    "fewer rates": ("compiled", "tables_.rates", lambda a: a[:2]),
    "tables that are not finite": ("compiled", "tables_.lines", lambda a: a * np.nan),
    "weights that are not finite": ("random-features", "_coef", lambda a: np.where(a == a[0, 0], np.nan, a)),
    "infinite intercept": ("additive", "_intercept", lambda a: a + np.inf),
    "weights of fewer features": ("random-features", "_coef", lambda a: a[:-1]),
    "weights of fewer outputs": ("additive", "_coef", lambda a: a[:, :-1]),
    "fewer classes": ("random-features", "classes_", lambda a: a[:-1]),
    "one of two classes": ("raced", "classes_", lambda a: a[:-1]),
    "fewer classes of targets": ("random-features", "_codec.classes", lambda a: a[:-1]),
    "a mean row of fewer bins": ("landmarks", "mean_row_", lambda a: a[:-1]),
    "deviations of fewer bins": ("landmarks", "deviation_row_", lambda a: a[:-1]),
    "largest values of fewer bins": ("landmarks", "largest_row_", lambda a: a[:-1]),
    "held-out scores of no class": ("landmarks", "_conformal.scores", lambda a: a[:, :0]),
    "training mass of more bins": ("landmarks", "mass_.shares", lambda a: np.append(a, 0.0)),
    "three signs of novelty": ("raced", "_novelty.signs", lambda a: np.repeat(a[:, :1], 3, axis=1)),
    "probabilities without an offset": ("raced", "_calibration.offsets", lambda a: a[:0]),
    "fewer strengths than scores": ("landmarks", "selection_.scores", lambda a: a[:-1]),
    "fewer weights than folds": ("landmarks", "selection_.weights", lambda a: a[:0]),
    "a choice of none": ("landmarks", "selection_.chosen", lambda a: 99),
    "fewer frequencies": ("random-features", "features_.projection_.matrix", lambda a: a[:, :-1]),
    "another number of inputs": ("random-features", "features_.projection_.matrix", lambda a: a[:-1]),
    "fewer bins of the map": ("additive", "features_.largest_", lambda a: a[:-1]),
    "codes of fewer bins": ("lookup", "tables_.map.scale_", lambda a: a[:-1]),
    "fewer outputs than classes": ("online", "tables_", lambda a: a[:-1]),
    "online tables of fewer bins": ("online", "tables_", lambda a: a[:, :-1]),
    "one knot": ("online", "tables_", lambda a: a[:, :, :1]),
    "fewer codes": ("lookup-in-double", "tables_", lambda a: a[:, :, :-1]),
    "more bins": ("regression", "n_features_in_", lambda n: n + 1),
    "a kernel that is not fitted": ("exact-on-blocks", "features_.features_", without_gamma),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_what_does_not_fit_together_is_refused(tmp_path, name):
    kind, attribute, edit = CRAFTED[name]
    model = MODELS[kind]()
    value = model
    for key in attribute.split("."):
        value = getattr(value, key)
    change(model, attribute, edit(value))
    path = tmp_path / "m"
    model_file.save(model, path)
    with pytest.raises(DataError, match=r"m is damaged: .*Write it again"):
        chimap.load(path)


def test_what_no_file_holds_is_refused_with_a_remedy(tmp_path):
    model = chimap.HistogramClassifier("chi2", selection=KFold(3)).fit(X, Y)
    with pytest.raises(DataError, match=r"cannot save model.selection: a KFold is not part .* Give the estimator"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_model_that_took_batches_is_solved_before_it_is_saved(tmp_path):
    model = chimap.HistogramRegressor("chi2", alpha=0.1).partial_fit(X, X[:, 0])
    chimap.save(model.partial_fit(2 * X, X[:, 1]), tmp_path / "m")
    assert chimap.load(tmp_path / "m").predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("number", "remedy"), [(_files.FORMAT + 1, "pip install --upgrade chimap"), (1, "with the one that wrote it")]
)
def test_other_formats_are_refused_with_a_remedy(contents, tmp_path, number, remedy):
    header, numbers = parts_of(contents["additive"])
    meta = json.loads(header["__metadata__"]["chimap"]) | {"format": number, "version": "9.1"}
    with pytest.raises(DataError) as caught:
        opened(sealed(header, meta, numbers, seal=True), tmp_path / "m")
    assert f"was written by chimap 9.1 in format {number}; chimap {chimap.__version__} reads format" in str(
        caught.value
    )
    assert remedy in str(caught.value)


def test_the_version_is_told(contents, tmp_path):
    (tmp_path / "m").write_bytes(contents["additive"])
    assert _files.read_header(tmp_path / "m")["version"] == chimap.__version__


@pytest.mark.parametrize("name", MODELS)
def test_files_that_were_written_before_are_read(name):
    """Written by ``python -m tests.model_files.write``, and again where FORMAT rises."""
    model = chimap.load(WRITTEN / f"{name}.model")
    expected = np.load(WRITTEN / "predictions.npz")[name]
    found = model.predict(X)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    else:
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ANSWERS)
def test_files_that_were_written_before_answer_the_same(name):
    """To 1e-6, by which products of float32 differ among processors."""
    model, expected = chimap.load(WRITTEN / f"{name}.model"), np.load(WRITTEN / "predictions.npz")
    for what, answer in ANSWERS[name](model).items():
        np.testing.assert_allclose(answer, expected[f"{name}: {what}"], rtol=1e-6, atol=1e-6, err_msg=what)
