"""Transformers and pipelines as files."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import chimap
from chimap import _files
from chimap._validation import DataError
from chimap.features.exact import ExactBlocks, ExactFeatures
from chimap.model_files import values

RNG = np.random.default_rng(0)
X = RNG.dirichlet(np.ones(8), size=60)
X[X < 0.02] = 0
Y = RNG.integers(0, 3, 60)

TRANSFORMERS = [
    chimap.OptimalMap("intersection"),
    chimap.DirectMap(),
    chimap.ChebyshevMap(),
    chimap.HomogeneousMap(),
    chimap.AnchorMap(),
    chimap.StaircaseMap(),
    chimap.AdditiveKPCA(),
    chimap.CompressedMap(),
    chimap.DirichletMap(),
    chimap.StationaryMap(),
    chimap.SignStableProjection(n_components=16),
    chimap.FourierFeatures("exp-chi2", n_components=16),
    chimap.FourierFeatures("gaussian", n_components=16, sampling="structured"),
    chimap.SkewedFourierFeatures(n_components=16),
    chimap.LandmarkFeatures(n_components=10),
    chimap.NystroemFeatures("minmax", n_components=10),
    chimap.MinMaxFeatures(n_components=32),
    ExactFeatures(),
    ExactBlocks([ExactFeatures(), ExactFeatures("chi2")], [slice(0, 3), slice(3, None)]),
]
PIPELINES = [
    make_pipeline(Normalizer("l1"), chimap.OptimalMap(), StandardScaler(with_mean=False), LogisticRegression()),
    make_pipeline(chimap.OptimalMap(), RidgeClassifier()),
    make_pipeline(
        "passthrough", chimap.LandmarkFeatures(n_components=10), chimap.HistogramClassifier("linear", alpha=1.0)
    ),
    make_pipeline(chimap.OptimalMap(), make_pipeline(chimap.FourierFeatures("gaussian", n_components=8))),
]


def answers(made, rows):
    found = made.predict(rows) if hasattr(made, "predict") else made.transform(rows)
    return found.toarray() if sp.issparse(found) else found


@pytest.mark.parametrize("made", [*TRANSFORMERS, *PIPELINES], ids=lambda made: type(made).__name__)
@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X)], ids=["dense", "sparse"])
def test_a_saved_transformer_transforms_the_same(made, rows, tmp_path):
    made.fit(rows, Y)
    chimap.save(made, tmp_path / "a.file")
    again = chimap.load(tmp_path / "a.file")
    assert type(again) is type(made)
    assert np.array_equal(answers(made, rows), answers(again, rows))
    assert str(again.get_params()) == str(made.get_params())


def test_transformers_have_save_as_models_have(tmp_path):
    made = chimap.OptimalMap().fit(X)
    made.save(tmp_path / "a.map")
    with pytest.raises(FileExistsError):
        made.save(tmp_path / "a.map")
    made.save(tmp_path / "a.map", overwrite=True)
    assert np.array_equal(chimap.load(tmp_path / "a.map").transform(X), made.transform(X))


def test_fitted_ones_alone_are_saved(tmp_path):
    for made in (chimap.OptimalMap(), make_pipeline(chimap.OptimalMap(), LogisticRegression())):
        with pytest.raises(NotFittedError):
            chimap.save(made, tmp_path / "a.file")
    assert not list(tmp_path.iterdir())


def test_steps_that_no_file_holds_are_named(tmp_path):
    for step in (FunctionTransformer(np.sqrt), TruncatedSVD(2)):
        made = make_pipeline(step, chimap.FourierFeatures("gaussian", n_components=8)).fit(X)
        with pytest.raises(DataError, match=f"cannot save step '{type(step).__name__.lower()}'.*LogisticRegression"):
            chimap.save(made, tmp_path / "a.file")
    cached = make_pipeline(chimap.OptimalMap(), memory=str(tmp_path / "cache")).fit(X)
    with pytest.raises(DataError, match="memory= keeps a cache"):
        chimap.save(cached, tmp_path / "a.file")
    assert not (tmp_path / "a.file").exists()

    class OptimalMap(chimap.OptimalMap):
        """Of the user, with a name of the package's."""

    with pytest.raises(DataError, match="a OptimalMap is not part of a model file"):
        chimap.save(OptimalMap().fit(X), tmp_path / "a.file")


def edited(path, change):
    """The file again, its metadata changed."""
    meta, arrays = _files.read_tensors(path, "transformer")
    body = {"about": meta["about"], "model": meta["model"]}
    change(body["model"], arrays)
    _files.write_tensors(path, "transformer", body, arrays)


def test_files_that_do_not_hold_together_are_refused(tmp_path):
    path = tmp_path / "a.file"
    made = make_pipeline(chimap.OptimalMap(), LogisticRegression()).fit(X, Y)
    steps = lambda body: body["state"]["steps"]["list"]  # noqa: E731
    state = lambda body: steps(body)[1]["list"][1]["state"]  # noqa: E731
    changes = [
        lambda body, arrays: steps(body)[1]["list"][1].update(step="FunctionTransformer"),
        lambda body, arrays: state(body).pop("C"),
        lambda body, arrays: state(body).update(n_features_in_=3),
        lambda body, arrays: steps(body)[1].update(list=["only a name"]),
        lambda body, arrays: body["state"].update(steps={"list": [3]}),
    ]
    for change in changes:
        chimap.save(made, path, overwrite=True)
        edited(path, change)
        with pytest.raises(DataError, match=r"a\.file is damaged"):
            chimap.load(path)
    chimap.save(chimap.NystroemFeatures("chi2", n_components=4).fit(sp.csr_matrix(X)), path, overwrite=True)
    meta, _ = _files.read_tensors(path, "transformer")
    if '"csr"' in json.dumps(meta["model"]):
        edited(path, lambda body, arrays: next(a for n, a in arrays.items() if n.endswith("indices")).__iadd__(100))
        with pytest.raises(DataError, match=r"a\.file is damaged"):
            chimap.load(path)


def test_a_transformer_is_no_model_of_the_command_line(tmp_path):
    chimap.OptimalMap().fit(X).save(tmp_path / "a.map")
    with pytest.raises(DataError, match=r"holds a chimap transformer, not a chimap model"):
        chimap.HistogramClassifier.load(tmp_path / "a.map")


@pytest.mark.slow
def test_a_new_process_finds_every_class_that_is_registered():
    for module in walk_packages(chimap.__path__, "chimap."):
        if not module.name.endswith("__main__"):
            with suppress(ModuleNotFoundError):  # a library that is not installed, such as torch
                import_module(module.name)
    names = sorted(name for name, cls in values._classes.items() if cls.__module__.startswith("chimap."))
    finds = (
        "import sys, chimap.estimators; from chimap.model_files import values;"
        "print(*[name for name in sys.argv[1:] if values._class_of(name).__name__ == name])"
    )
    found = subprocess.run([sys.executable, "-c", finds, *names], capture_output=True, text=True, check=True)
    assert found.stdout.split() == names
