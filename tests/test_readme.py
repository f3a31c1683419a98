"""The README's snippets run as they stand, on small files under the names that it uses."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from .cli.terminal import run_many
from .histograms import classes

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
LANGUAGES = {"sh", "python"}
ELSEWHERE = ("--scheduler tcp:", "--device cuda")  # a cluster and a device that a test does not have
SET_UP = ("python3 -m venv", ".venv/bin/")  # .ci/run does these


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands() -> list[list[list[str]]]:
    """The arguments of every command of chimap, in the order of the README, a list for each of its blocks."""
    calls = [[line for line in block.splitlines() if not line.startswith(SET_UP)] for block in blocks("sh")]
    assert all(line.startswith("chimap ") for block in calls for line in block), "a line of another program"
    return [
        [
            shlex.split(line, comments=True)[1:]
            for line in block
            if not any(word in line for word in ELSEWHERE)
        ]
        for block in calls
    ]


def write_files(folder: Path) -> None:
    X, y = classes(120, 500)
    X = X.astype(np.float32)
    np.savez(folder / "data.npz", X=X, y=y)
    np.savez(folder / "new.npz", X=X[:50])
    np.save(folder / "histograms.npy", X)
    np.save(folder / "labels.npy", y)


def write_table(folder: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = classes(240, 12)
    columns = {f"bin {i}": X[:, i] for i in range(12)} | {"species": [f"species {k}" for k in y]}
    parquet.write_table(pa.table(columns), folder / "huge.parquet")


def write_photos(folder: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    pytest.importorskip("cv2")
    rng = np.random.default_rng(0)
    for name, n_images in (("photos", 12), ("new-photos", 2)):
        for label, period in (("stripes", 4), ("dots", 9)):
            (folder / name / label).mkdir(parents=True)
            for i in range(n_images):
                waves = np.sin(np.arange(64) * 2 * np.pi / (period + i % 2))
                picture = waves[None, :] * (1 if label == "stripes" else waves[:, None])
                values = 127 + 90 * picture + rng.normal(0, 8, (64, 64))
                images.fromarray(values.clip(0, 255).astype(np.uint8)).save(
                    folder / name / label / f"{i}.png"
                )


def test_fences_name_a_language_that_is_tested():
    assert set(re.findall(r"^```(\S*)$", README, re.MULTILINE)) - {""} == LANGUAGES


def test_commands(tmp_path):
    write_files(tmp_path)
    write_table(tmp_path)
    write_photos(tmp_path)
    made: set[str] = set()
    seen = set()
    for block in commands():
        called = []
        for arguments in block:
            seen.add(arguments[0])
            output = arguments[arguments.index("--output") + 1]
            # the README gives one name to several models
            called.append([*arguments, "--overwrite"] if output in made else arguments)
            made.add(output)
        for arguments, result in zip(called, run_many(called, tmp_path), strict=True):
            assert result.code == 0, (arguments, result.err)
    assert seen == {"fit", "evaluate", "predict", "features", "learn-kernel", "export", "compare"}
    for output in made:
        assert (tmp_path / output).stat().st_size > 0


def test_python(tmp_path, monkeypatch, capsys):
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    X, y = classes(300, 20)
    names = {"X": X[:200], "y": y[:200], "X_test": X[200:], "y_test": y[200:]}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    score, alpha = map(float, capsys.readouterr().out.split()[:2])
    assert score > 0.6
    assert alpha == names["model"].alpha_ or alpha > 0
    assert names["model"].n_rows_ == 120
    assert names["fast"].predict(X).shape == (300,)
    assert (tmp_path / "my.model").stat().st_size > 0
