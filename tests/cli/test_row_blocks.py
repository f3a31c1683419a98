"""Machines in blocks of rows on the shell: what is planned, fitted, told of the model, and compared."""

from __future__ import annotations

import json

import numpy as np
import pytest

from chimap import load
from chimap.cli.flag_values import seconds_of

from .terminal import run_many


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("90s", 90),
        ("1h", 3600),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2 min", 120),
        ("1m 5s", 65),
        ("600", 600),
        (".5", 0.5),
        ("1H", 3600),
    ],
)
def test_a_time_is_seconds(text, seconds):
    assert seconds_of(text, "--time-limit") == seconds


@pytest.mark.parametrize("text", ["", "0", "0m", "-5", "10x", "m", "5s10m", "1..5s", ".", "ten", "nan", "inf"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match=r"--time-limit must be a time above 0, such as 10m, 90s.*; got '"):
        seconds_of(text, "--time-limit")


@pytest.mark.slow
def test_blocks_are_planned_and_told(tmp_path):
    X = np.random.default_rng(0).dirichlet(np.full(12, 0.5), 4000)
    y = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 2] > 0.1)  # 16 landmarks are too few for these
    np.savez(tmp_path / "rows.npz", X=X.astype(np.float32), y=y)
    exact = ["--kernel", "exp-chi2", "--memory", "60MiB"]
    plan, planned, fit, info, told = run_many(
        [
            ["info", "rows.npz", "--memory", "60MiB"],
            ["info", "rows.npz", "--memory", "60MiB", "--json"],
            ["fit", "rows.npz", *exact, "--features", "exact", "--time-limit", "10m", "-o", "a.model", "--json"],
            ["info", "a.model"],
            ["info", "a.model", "--json"],
        ],
        cwd=tmp_path,
    )
    for run in (plan, planned, fit, info, told):
        assert run.code == 0, run.err
    fitted = json.loads(fit.out)
    sizes = fitted["block_rows"]
    assert len(sizes) > 1
    assert sum(sizes) == fitted["rows"] == 4000
    assert (fitted["rows_unlearned"], fitted["rows_of_weight_0"]) == (0, 0)
    words = f"4,000 in {len(sizes)} blocks of up to {max(sizes):,}"
    assert words in info.out
    assert "fitted in" in info.out
    facts = json.loads(told.out)
    assert facts["block_rows"] == sizes
    assert facts["seconds"] == pytest.approx(sum(load(tmp_path / "a.model").stage_seconds_.values()))
    facts = json.loads(planned.out)["plan"]
    assert facts["peak_bytes"] <= facts["memory_bytes"]
    assert facts["components"] == 4000
    assert facts["chunk_rows"] == sizes[0]
    assert f"learns 4,000 rows in blocks of up to {sizes[0]:,}, takes about" in " ".join(plan.out.split())
