"""What an import loads, and what it leaves for the first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numba", "scipy.stats", "matplotlib", "torch", "sklearn", "pandas", "dask", "distributed")


def loaded(code: str) -> set[str]:
    """Modules in memory after the code."""
    program = f"import sys\n{code}\nprint('\\n' + ' '.join(sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(found.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import chimap",
        "import chimap; dir(chimap); chimap.__version__",
        "from chimap.cli.main import main; main(['--help'])",
        "from chimap.cli.main import main; main(['fit', '--help'])",
        "from chimap.cli.main import main; main(['--version'])",
    ],
)
def test_nothing_heavy(code):
    modules = loaded(code)
    assert "chimap" in modules
    assert modules.isdisjoint({*HEAVY, "numpy", "scipy"})


@pytest.mark.slow
def test_estimators_and_reports_leave_what_few_fits_need():
    code = "import chimap, chimap.reports; chimap.HistogramClassifier; chimap.OptimalMap; chimap.open_source"
    modules = loaded(code)
    assert "sklearn" in modules
    assert modules.isdisjoint({"numba", "matplotlib", "jinja2", "torch", "dask", "distributed"})


@pytest.mark.slow
def test_estimators_leave_what_is_half_of_scikit_learn():
    modules = loaded("import chimap; chimap.HistogramClassifier, chimap.OptimalMap")
    assert "sklearn" in modules
    assert modules.isdisjoint({"sklearn.metrics", "sklearn.linear_model", "sklearn.model_selection", "sklearn.svm"})


def test_a_model_is_described_without_what_it_needs_to_predict():
    from pathlib import Path

    model = Path(__file__).parent / "model_files" / "written" / "additive.model"
    modules = loaded(f"from chimap.cli.main import main; main(['info', {str(model)!r}])")
    assert modules.isdisjoint({*HEAVY, "scipy"})


def test_files_are_opened_without_what_fits_need():
    modules = loaded(
        "import numpy as np, tempfile, chimap\n"
        "path = tempfile.mkdtemp() + '/rows.npz'\n"
        "np.savez(path, X=np.eye(3), y=np.arange(3))\n"
        "assert chimap.open_source(path).n_rows == 3"
    )
    assert modules.isdisjoint({"sklearn", "pandas", "matplotlib", "torch", "dask", "distributed"})


def test_a_file_of_rows_is_described_without_what_fits_and_images_need(tmp_path):
    import numpy as np

    path = tmp_path / "rows.npz"
    np.savez(path, X=np.eye(3), y=np.arange(3))
    modules = loaded(f"from chimap.cli.main import main; main(['info', {str(path)!r}])")
    assert "numpy" in modules
    assert modules.isdisjoint({*HEAVY, "scipy", "chimap.images", "chimap.kernels"})
