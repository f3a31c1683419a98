"""Help in panels, options from a file, the version, completion."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .terminal import run_many

PANELS = ["Arguments:", "Data:", "Model:", "Images:", "Output and runtime:"]


def test_help_in_panels(folder):
    short, everything = run_many([["fit", "--help"], ["fit", "--help-all"]], folder)
    for result, panels in ((short, [name for name in PANELS if name != "Images:"]), (everything, PANELS)):
        assert result.code == 0
        assert [line for line in result.out.splitlines() if line in PANELS] == panels
    assert "--checkpoint-every" not in short.out
    assert "--checkpoint-every" in everything.out
    assert "more options and full descriptions: chimap fit --help-all" in short.out


def test_every_option_of_a_fit_has_a_panel(folder):
    """Options outside the panels of data, model and images are about output and runtime; this test lists them."""
    from chimap.cli.commands import named
    from chimap.cli.parser import PANELS

    running = {
        "data",
        "output",
        "memory",
        "precision",
        "device",
        "engine",
        "scheduler",
        "checkpoint",
        "checkpoint_every",
        "jobs",
        "seed",
        "config_file",
        "save_config",
        "overwrite",
        "json",
        "verbose",
        "report",
    }
    in_panels = {name for names in PANELS.values() for name in names.split()}
    assert {option.name for option in named("fit").params} - in_panels <= running


def test_options_from_a_file(folder, tmp_path):
    (tmp_path / "bad.toml").write_text("kernels = 'chi2'")
    (tmp_path / "broken.toml").write_text("kernel = chi2")
    (tmp_path / "few.toml").write_text("kernel = 'chi2'\ntest-fraction = 0.5\nfolds = 1")
    config, other = tmp_path / "fit.toml", tmp_path / "other.model"
    data = folder / "digits.npz"
    first, again, bad, broken, value = run_many(
        [
            ["fit", data, "-o", tmp_path / "m", "--kernel", "chi2", "--test-fraction", "0.5", "--save-config", config],
            ["fit", "--config", config, "-o", other, "--kernel", "hellinger", "--json"],
            ["fit", data, "-o", other, "--config", tmp_path / "bad.toml"],
            ["fit", data, "-o", other, "--config", tmp_path / "broken.toml"],
            ["fit", data, "-o", tmp_path / "n", "--config", tmp_path / "few.toml"],
        ],
        folder,
    )
    assert first.code == 0, first.err
    lines = config.read_text().splitlines()
    assert lines[1:] == [f'data = "{data}"', f'output = "{tmp_path / "m"}"', 'kernel = "chi2"', "test-fraction = 0.5"]
    assert again.json["settings"]["kernel"] == "hellinger"
    assert again.json["settings"]["test_fraction"] == 0.5
    assert [result.code for result in (bad, broken, value)] == [2, 2, 2]
    assert "chimap fit has no option 'kernels'. Its options are" in bad.err
    assert "is not valid TOML" in broken.err
    assert "--folds must be a whole number of at least 2; got 1" in value.err


def test_version_and_build(folder):
    import chimap

    result = run_many([["--version"]], folder)[0]
    assert result.out.startswith(f"chimap {chimap.__version__} (Python {sys.version_info.major}.")
    assert "numba " in result.out


@pytest.mark.parametrize(("words", "wanted"), [("chimap ex", "export"), ("chimap fit --kern", "--kernel")])
def test_completion(words, wanted):
    environment = os.environ | {
        "_CHIMAP_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "chimap"], env=environment, capture_output=True, text=True, check=False
    )
    assert f"plain,{wanted}" in done.stdout.split(), done.stderr
