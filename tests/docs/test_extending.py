"""What a new kernel, map, loss, machine, candidate or section touches: a file of its own and a line of its catalogue.

They are written into a copy of these files that lies over the package. A process that sees this copy fits models by
their names, saves, opens and exports them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import chimap

PACKAGE = Path(chimap.__file__).parent

FILES = {
    "kernels/lognormal.py": """
import numpy as np
from chimap.kernels.additive import AdditiveKernel

lognormal = AdditiveKernel("lognormal", lambda l: np.exp(-(l**2) / 4.5), lambda w: 0.6 * np.exp(-1.125 * w**2))
""",
    "features/additive/root.py": """
import numpy as np
from chimap.features.additive.base import AdditiveMap
from chimap.model_files import register

class RootMap(AdditiveMap):
    kernels = ("hellinger",)

    def __init__(self, kernel="hellinger", n_terms=1):
        self.kernel = kernel
        self.n_terms = n_terms

    def _evaluate(self, magnitudes, bins, out):
        out[:] = 0
        np.sqrt(magnitudes, out=out[:, 0])

    def _onnx_terms(self, x):
        return x.apply("Sqrt").expanded(1)

register(RootMap)
""",
    "normalizations/halves.py": """
from dataclasses import dataclass
from typing import ClassVar
from chimap import _arrays
from chimap.normalizations.base import OfRows

@dataclass(frozen=True)
class Halves(OfRows):
    name: ClassVar[str] = "halves"
    about: ClassVar[str] = "half of each entry"
    takes_signs: ClassVar[bool] = True
    joins_bins: ClassVar[bool] = False

    def __call__(self, rows, blocks):
        return _arrays.map_values(rows, lambda values: values / 2)

    def onnx(self, x, blocks, n_bins):
        return x * 0.5
""",
    "features/sketch.py": """
from typing import Annotated

import numpy as np
from chimap._types import Shape
from chimap.features.base import Features, Footprint
from chimap.kernels import Linear
from chimap.model_files import register

class SignSketch(Features):
    signs_: Annotated[np.ndarray, Shape("n_features_in_", "n_components")]
    kernel_: Linear
    n_features_in_: int
    _n_features_out: int

    def __init__(self, kernel: str | Linear = "linear", n_components: int = 256, random_state: int | None = 0):
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X, y=None):
        shape = X.shape[1], self.n_components
        signs = np.random.default_rng(self.random_state).choice([-1.0, 1.0], shape)
        self.signs_, self.kernel_ = signs / np.sqrt(self.n_components), Linear()
        self._n_features_out, self.n_features_in_ = self.n_components, X.shape[1]
        return self

    def features_into(self, rows, out, shift=None):
        out[:] = rows @ self.signs_.astype(out.dtype)
        if shift is not None:
            out -= shift.astype(out.dtype)

    def onnx(self, x):
        return x @ self.signs_

    @classmethod
    def takes(cls, kernel):
        return isinstance(kernel, Linear)

    def footprint(self, n_bins):
        return Footprint(self.n_components)

    def fitting_bytes(self, n_rows, row_bytes, itemsize):
        return int(8 * self.n_components * row_bytes / itemsize)

register(SignSketch)
""",
    "losses/huber.py": """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from chimap.losses.base import Domain, Loss

@dataclass(frozen=True)
class Huber(Loss):
    name: ClassVar[str] = "huber"
    domain: ClassVar[Domain] = "real"
    curvature: ClassVar[float] = 1.0
    has_parabola: ClassVar[bool] = True

    def value(self, target, score):
        error = np.abs(np.subtract(score, target))
        return np.where(error <= 1, error * error / 2, error - 0.5)

    def gradient(self, target, score):
        return np.clip(np.subtract(score, target), -1, 1)

    def bend(self, target, score):
        return 1 / np.maximum(1, np.abs(np.subtract(score, target)))
""",
    "machines/small.py": """
from chimap.machines.matrix import WholeMatrix

class SmallTables(WholeMatrix):
    name = "small tables"

    def against(self, recipe, facts, asked):
        if facts.n_rows >= 100 or not recipe.leaves_open("features") or recipe.loss != "square":
            return "it is for squares of fewer than 100 rows with no features named"
        return self.declined(recipe)
""",
    "race/logistic.py": """
from chimap.race.specs import KernelSpec, Way

LOGISTIC = Way("logistic", "additive", "logistic", ", logistic")

def logistic(traits):
    return [KernelSpec("linear", None, LOGISTIC)] if traits.n_classes else []
""",
    "readers/bytes.py": """
from contextlib import contextmanager

import numpy as np
from chimap.data.labels import Labels
from chimap.data.source import RangeSource
from chimap.readers.io.files import existing_file
from chimap.readers.label_files import read_labels

class ByteSource(RangeSource):
    is_sparse = False
    n_features = 6
    row_bytes = 24.0
    dtype = np.dtype(np.float32)

    def __init__(self, path: str, labels: Labels = None):
        self.path = self._stored = existing_file(path)
        self.name, self.n_rows = self.path.name, self.path.size // 6
        self._y = read_labels(labels, self.n_rows)

    @contextmanager
    def _reading(self):
        with self.path.open() as file:
            values = np.frombuffer(file.read(), np.uint8).reshape(-1, 6).astype(self.dtype)
        yield lambda start, stop: values[start:stop]
""",
}

FILES["reports/sections/rarest.py"] = """
from chimap.reports.section import Section

def section(evaluation):
    rows = int(evaluation.metrics.support.min())
    return Section("Rarest class", f"{rows} rows", lines={"rarest": f"{rows} rows"})
"""

LINES = {  # file of the catalogue, a text there, what a new entry makes of it, and the import that it needs
    "kernels/lognormal.py": (
        "kernels/__init__.py",
        "CATALOGUE = {",
        'CATALOGUE = {"lognormal": lognormal,',
        "from chimap.kernels.lognormal import lognormal",
    ),
    "features/additive/root.py": (
        "features/additive/base.py",
        '        "optimal": "chimap',
        '        "root": "chimap.features.additive.root:RootMap",\n        "optimal": "chimap',
        "",
    ),
    "normalizations/halves.py": (
        "normalizations/__init__.py",
        "for each in (Shares(),",
        "for each in (Halves(), Shares(),",
        "from chimap.normalizations.halves import Halves",
    ),
    "features/sketch.py": (
        "features/families.py",
        "tuple[type[Features], ...]] = {",
        'tuple[type[Features], ...]] = {"sketch": (SignSketch,),',
        "from chimap.features.sketch import SignSketch",
    ),
    "losses/huber.py": (
        "losses/__init__.py",
        '"square": Square,',
        '"square": Square, "huber": Huber,',
        "from chimap.losses.huber import Huber",
    ),
    "machines/small.py": (
        "machines/catalogue.py",
        "Machine, ...] = (",
        "Machine, ...] = (SmallTables(),",
        "from chimap.machines.small import SmallTables",
    ),
    "race/logistic.py": (
        "race/candidates.py",
        "    _baselines,\n",
        "    _baselines, logistic,\n",
        "from chimap.race.logistic import logistic",
    ),
    "readers/bytes.py": (
        "readers/catalogue.py",
        "READERS: dict[str, Reader] = {",
        'READERS: dict[str, Reader] = {"bytes": Reader(of_file(ByteSource), (".bytes",)),',
        "from chimap.readers.bytes import ByteSource",
    ),
    "reports/sections/rarest.py": (
        "reports/contents.py",
        "_OF_THE_FIT = (",
        '_OF_THE_FIT = ("chimap.reports.sections.rarest:section",',
        "",
    ),
}

OVERLAY = '''
import sys
from importlib.util import spec_from_file_location
from pathlib import Path

over, package = Path(sys.argv[1]), Path(sys.argv[2])

class Overlay:
    """Finds files of the package in the folder that lies over it."""

    def find_spec(self, name, path=None, target=None):
        parts = name.split(".")
        if parts[0] != "chimap":
            return None
        file = Path(*parts[1:]) if parts[1:] else Path()
        if (over / file / "__init__.py").exists():
            return spec_from_file_location(
                name, over / file / "__init__.py", submodule_search_locations=[str(package / file)]
            )
        module = over / file.parent / f"{file.name}.py"
        return spec_from_file_location(name, module) if module.exists() else None

sys.meta_path.insert(0, Overlay())
'''

WORK = """
import numpy as np
import chimap
from chimap.export import export_model

rng = np.random.default_rng(0)
X = rng.dirichlet(np.ones(6), size=80)
y = (X[:, 0] > X[:, 1]).astype(int)
out = over.parent
models = {
    "kernel": chimap.HistogramClassifier("lognormal", alpha=0.1),
    "normalization": chimap.HistogramClassifier("chi2", normalize="halves", alpha=0.1),
    "family": chimap.HistogramClassifier("linear", features="sketch", n_components=32, alpha=0.1),
}
(out / "rows.bytes").write_bytes((255 * X).astype(np.uint8).tobytes())
source = chimap.open_source(out / "rows.bytes", y, columns="0:4")
assert source.n_features == 4
print("file", chimap.HistogramClassifier("chi2", alpha=0.1).fit_source(source).n_rows_)
from chimap.features.additive import CATALOGUE
psi = CATALOGUE["root"]().fit(X)
psi.save(out / "map.model")
assert np.array_equal(chimap.load(out / "map.model").transform(X), psi.transform(X))
for name, model in models.items():
    model.fit(X, y)
    model.save(out / f"{name}.model")
    assert np.array_equal(chimap.load(out / f"{name}.model").predict(X), model.predict(X)), name
    export_model(model, out / f"{name}.onnx")
    print(name, model.score(X, y) > 0.8)
evaluation = chimap.report(models["kernel"], X, y, insight=False)
assert "Rarest class</h2>" in evaluation.to_html() and "rows" in evaluation.summary()["rarest"]
print("section", [s.title for s in evaluation.sections()].count("Rarest class"))
print("loss")
target = X[:, 0] + X[:, 1]
for features in ("exact", "additive"):
    model = chimap.HistogramRegressor("hellinger", features=features, loss="huber", alpha=1e-3).fit(X, target)
    model.save(out / f"{features}.model")
    assert np.array_equal(chimap.load(out / f"{features}.model").predict(X), model.predict(X)), features
    print(features, model.score(X, target) > 0.8)
race = chimap.HistogramClassifier(random_state=0).fit(X, y).race_
print("candidate", *(not trial.error for trial in race.trials if trial.candidate.name.endswith("rows, logistic")))
print("machine", chimap.HistogramClassifier("chi2").fit(X, y).selection_.rule)
"""


def lay_over(folder: Path) -> dict[str, set[str]]:
    """Write the new files and the lines of the catalogues; return the files that each of them touches."""
    touched = {}
    for new, text in FILES.items():
        catalogue, before, after, importing = LINES[new]
        (folder / new).parent.mkdir(parents=True, exist_ok=True)
        (folder / new).write_text(text)
        there = folder / catalogue
        source = (there if there.exists() else PACKAGE / catalogue).read_text()
        assert source.count(before) == 1
        source = source.replace(before, after)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(re.sub("(?m)^from chimap", f"{importing}\nfrom chimap", source, count=1))
        touched[new] = {new, catalogue}
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.py")} == set().union(*touched.values())
    return touched


@pytest.mark.slow
def test_a_new_entry_of_a_catalogue_touches_two_files(tmp_path):
    pytest.importorskip("onnxruntime")
    over = tmp_path / "over"
    touched = lay_over(over)
    assert {len(files) for files in touched.values()} == {2}
    done = subprocess.run(
        [sys.executable, "-c", OVERLAY + WORK, str(over), str(PACKAGE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first, rest = done.stdout.split("loss\n")
    assert first.split() == ["file", "80", "kernel", "True", "normalization", "True", "family", "True", "section", "1"]
    assert rest.split() == ["exact", "True", "additive", "True", "candidate", "True", "machine", "leave-one-out"]
