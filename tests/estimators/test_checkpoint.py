"""Checkpoints: a fit that goes on gives the same model, and what is another fit is refused."""

from __future__ import annotations

import errno
import subprocess
import sys

import numpy as np
import pytest

from chimap import HistogramClassifier, HistogramRegressor, PrincipalFeatures, _files, open_source
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.fit.checkpoint import Checkpoint

from ..chunks import short_chunks  # noqa: F401, a fixture
from ..histograms import classes

pytestmark = pytest.mark.usefixtures("short_chunks")

X, y = classes(1900, 24)
X = X.astype(np.float32)
BLOCKS = [slice(0, 12), slice(12, 24)]
KINDS = {
    "ridge": {},
    "components": {"features": PrincipalFeatures(20), "blocks": BLOCKS},
    "loss": {"loss": "logistic", "alpha": 1.0},
    "landmarks": {"features": "landmarks"},
}


class Interrupted(Exception):
    pass


class Watched(Checkpoint):
    """Written after each chunk; interrupts after so many."""

    def __init__(self, path, chunks=None):
        super().__init__(path, 1e-9)
        self.left = chunks

    def reached(self, *standing):
        super().reached(*standing)
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                raise Interrupted


def model(**settings):
    return HistogramClassifier(
        **({"kernel": "exp-chi2", "n_components": 64, "memory": "3MiB", "random_state": 0, "selection": 2} | settings)
    )


def source(folder):
    if not (folder / "X.npy").exists():
        np.save(folder / "X.npy", X)
    return open_source(folder / "X.npy", y)


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_goes_on_to_the_same_model(settings, tmp_path):
    whole = model(**settings).fit_source(source(tmp_path), checkpoint=Watched(tmp_path / "whole"))
    chunks = 0
    for after in (1, 2, 4):
        path = tmp_path / f"after{after}"
        with pytest.raises(Interrupted):
            model(**settings).fit_source(source(tmp_path), checkpoint=Watched(path, after))
        again = model(**settings, n_jobs=1).fit_source(source(tmp_path), checkpoint=Watched(path))
        np.testing.assert_array_equal(again._coef, whole._coef)
        assert again.alpha_ == whole.alpha_
        np.testing.assert_array_equal(again.decision_function(X[:50]), whole.decision_function(X[:50]))
        chunks += 1
    assert chunks == 3


@pytest.mark.parametrize("settings", [{"alpha": 1.0}, KINDS["components"]], ids=["ridge", "components"])
def test_rows_with_weights_go_on(settings, tmp_path):
    weights = np.random.default_rng(0).integers(0, 3, y.size)
    whole = model(**settings).fit_source(source(tmp_path), sample_weight=weights)
    for after in (1, 3):
        path = tmp_path / f"after{after}"
        with pytest.raises(Interrupted):
            model(**settings).fit_source(source(tmp_path), sample_weight=weights, checkpoint=Watched(path, after))
        again = model(**settings).fit_source(source(tmp_path), sample_weight=weights, checkpoint=Watched(path))
        np.testing.assert_array_equal(again._coef, whole._coef)


def test_interrupted_again_and_again(tmp_path):
    whole = model().fit_source(source(tmp_path))
    path, times = tmp_path / "check", 0
    while True:
        try:
            found = model().fit_source(source(tmp_path), checkpoint=Watched(path, 1))
        except Interrupted:
            times += 1
            continue
        break
    assert times > 3
    np.testing.assert_allclose(found._coef, whole._coef, rtol=1e-6, atol=1e-9)


def test_a_fit_goes_on_in_the_budget_that_it_began_with(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "chimap.race.choose.budgets", lambda memory: iter(["30KiB", "3MiB"] if memory == "auto" else [memory])
    )
    path, whole = tmp_path / "check", model().fit_source(source(tmp_path))
    with pytest.raises(Interrupted):
        model(memory="auto").fit_source(source(tmp_path), checkpoint=Watched(path, 2))
    again = model(memory="auto").fit_source(source(tmp_path), checkpoint=Watched(path))
    assert again.fitted.recipe.memory == "3MiB"
    np.testing.assert_array_equal(again._coef, whole._coef)


def test_a_file_name_is_enough_and_is_cleared_away(tmp_path):
    path = tmp_path / "check"
    model(random_state=None).fit_source(ArraySource(X, y), checkpoint=str(path))
    assert not path.exists()
    with pytest.raises(Interrupted):
        model(random_state=None).fit_source(ArraySource(X, y), checkpoint=Watched(path, 2))
    seed = _files.read_header(path)["state"]["dict"]["seed"]
    again = model(random_state=None).fit_source(ArraySource(X, y), checkpoint=path)
    assert again._seed == seed
    assert not path.exists()


def test_regression(tmp_path):
    target = X[:, 0] + X[:, 1] ** 2
    make = lambda: HistogramRegressor("exp-chi2", n_components=64, memory="3MiB", random_state=0)  # noqa: E731
    whole = make().fit_source(ArraySource(X, target), checkpoint=Watched(tmp_path / "whole"))
    with pytest.raises(Interrupted):
        make().fit_source(ArraySource(X, target), checkpoint=Watched(tmp_path / "check", 2))
    again = make().fit_source(ArraySource(X, target), checkpoint=tmp_path / "check")
    np.testing.assert_array_equal(again._coef, whole._coef)


def test_a_fit_that_is_resumed_does_not_race_again(tmp_path, monkeypatch):
    def fitted(path):
        return HistogramClassifier(normalize="l1", memory="12MiB").fit_source(ArraySource(X, y), checkpoint=path)

    with pytest.raises(Interrupted):
        fitted(Watched(tmp_path / "check", 1))  # with a seed of its own
    monkeypatch.setattr("chimap.race.choose.raced_recipes", None)
    again = fitted(Watched(tmp_path / "check"))
    assert again.race_.rows()
    assert again.kernel_.name.startswith(again.chosen_["kernel"])
    with pytest.raises(TypeError, match="not callable"):  # the race of other settings
        HistogramClassifier(normalize="l1", memory="13MiB").fit_source(ArraySource(X, y), checkpoint=tmp_path / "check")


@pytest.fixture
def interrupted(tmp_path):
    with pytest.raises(Interrupted):
        model().fit_source(ArraySource(X, y), checkpoint=Watched(tmp_path / "check", 2))
    return tmp_path / "check"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "chi2"}, "kernel was 'exp-chi2' and is 'chi2'"),
        ({"n_components": 65}, "n_components was 64 and is 65"),
        ({"random_state": 1}, "random_state was 0 and is 1"),
        ({"blocks": BLOCKS}, "blocks was None and is"),
    ],
)
def test_other_settings_are_refused(interrupted, settings, message):
    with pytest.raises(DataError, match=f"check is the checkpoint of another fit: {message}"):
        model(**settings).fit_source(ArraySource(X, y), checkpoint=interrupted)
    assert interrupted.exists()


def test_other_data_are_refused(interrupted):
    changed = X.copy()
    changed[0, 0] += 1
    for rows, labels in ((changed, y), (X, y[::-1].copy()), (X[:-1], y[:-1])):
        with pytest.raises(DataError, match=r"another fit: source array: (digest|labels|shape) was"):
            model().fit_source(ArraySource(rows, labels), checkpoint=interrupted)


def test_another_version_and_other_files_are_refused(interrupted, monkeypatch):
    monkeypatch.setattr("chimap.fit.checkpoint.__version__", "9.9")
    with pytest.raises(DataError, match=r"it was written by chimap 0\.\S+, and this is 9\.9"):
        model().fit_source(ArraySource(X, y), checkpoint=interrupted)
    monkeypatch.undo()
    interrupted.write_bytes(interrupted.read_bytes()[:-100])
    with pytest.raises(DataError, match="cut off or damaged"):
        model().fit_source(ArraySource(X, y), checkpoint=interrupted)
    fitted = model().fit(X, y)
    fitted.save(interrupted, overwrite=True)
    with pytest.raises(DataError, match="holds a chimap model, not a chimap checkpoint"):
        model().fit_source(ArraySource(X, y), checkpoint=interrupted)


def test_a_full_disk_is_told_of_and_the_last_checkpoint_kept(tmp_path, monkeypatch):
    path, write = tmp_path / "check", _files.write_tensors
    written = []

    def fails_the_second_time(*arguments, **options):
        written.append(arguments)
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(*arguments, **options)

    monkeypatch.setattr(_files, "write_tensors", fails_the_second_time)
    whole = model().fit(X, y)
    with pytest.warns(UserWarning, match=r"No space left on device.*the last complete version is kept"):
        found = model().fit_source(ArraySource(X, y), checkpoint=Watched(path))
    assert [p.name for p in tmp_path.iterdir()] == ["check"]
    np.testing.assert_allclose(found._coef, whole._coef, rtol=1e-6, atol=1e-9)


FULL_DISK = """
import resource, signal, sys, warnings
import numpy as np
import chimap
from chimap.fit.checkpoint import Checkpoint
folder = sys.argv[1]
X = np.random.default_rng(0).random((3000, 8), dtype=np.float32)
y = np.arange(3000) % 2
make = lambda: chimap.HistogramClassifier("exp-chi2", n_components=128, random_state=0, alpha=1.0)
whole = make().fit(X, y)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # no file may be larger: writing fails half-way
try:
    whole.save(f"{folder}/a.model")
except OSError as error:
    print(error)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    found = make().fit_source(chimap.open_source(X, y), checkpoint=Checkpoint(f"{folder}/a.checkpoint", 1e-9))
print([str(w.message) for w in told if "could not be written" in str(w.message)][0])
print(np.array_equal(found.feature_coef_, whole.feature_coef_))
"""


@pytest.mark.slow
def test_writing_that_really_fails_half_way(tmp_path):
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", FULL_DISK, tmp_path], capture_output=True, text=True, check=True)
    saving, warned, same = done.stdout.splitlines()
    assert "a.model could not be written (file too large)" in saving
    assert "a.checkpoint could not be written" in warned
    assert same == "True"
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_or_kept(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder .* does not exist"):
        model().fit_source(ArraySource(X, y), checkpoint=tmp_path / "no" / "check")
    with pytest.raises(ValueError, match="cannot write a checkpoint"):
        model(loss="hinge").fit_source(ArraySource(X, y), checkpoint=tmp_path / "check")
    with pytest.raises(ValueError, match=r"seconds .* must be a positive number"):
        Checkpoint(tmp_path / "check", 0)
