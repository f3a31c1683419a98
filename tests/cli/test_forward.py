"""Forward in time, from a shell: fit, evaluate and compare train before a cut and score after it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from .terminal import run_many

pytestmark = pytest.mark.slow

N = 100
FORWARD = ["--labels", "site", "--splits", "forward", "--time", "date"]
FIT = ["fit", "visits.csv", *FORWARD, "--exclude", "subject", "--kernel", "chi2"]


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """Counts of two sites over 100 days, in random order, from 25 subjects."""
    folder = tmp_path_factory.mktemp("visits")
    rng = np.random.default_rng(0)
    is_bog = rng.integers(0, 2, N).astype(bool)
    table = pd.DataFrame(rng.poisson(np.where(is_bog[:, None], [8, 2, 3], [2, 8, 3])), columns=["a", "b", "c"])
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N), "D")
    table = table.assign(date=day.strftime("%Y-%m-%d"), subject=np.arange(N) // 4, site=np.where(is_bog, "bog", "fen"))
    table = table.sample(frac=1, random_state=0).reset_index(drop=True)
    table.to_csv(folder / "visits.csv", index=False)
    table.assign(date=pd.to_datetime(table.date)).to_parquet(folder / "visits.parquet", index=False)
    for name, date in {"gap": "", "no-date": "9.4.2024"}.items():
        table.assign(date=[date, *table.date[1:]]).to_csv(folder / f"{name}.csv", index=False)
    table.assign(date="2024-01-01").to_csv(folder / "same.csv", index=False)
    table.assign(site=np.where(table.date > "2024-04-05", "new", table.site)).to_csv(folder / "new.csv", index=False)
    return folder


def test_the_latest_fifth_is_held_out_and_windows_expand(visits):
    fitted, by_subject, stored, *_ = run_many(
        [
            [*FIT, "-o", "a.model", "--json"],
            [*FIT[:-4], "--kernel", "chi2", "--groups", "subject", "--test-fraction", "0.3", "-o", "b.model", "--json"],
            ["fit", "visits.parquet", *FIT[2:], "-o", "c.model", "--json"],
        ],
        visits,
    )
    assert fitted.code == by_subject.code == stored.code == 0, fitted.err + by_subject.err + stored.err
    assert (fitted.json["rows"], fitted.json["rows_held_out"], fitted.json["bins"]) == (80, 20, 3)
    assert (by_subject.json["rows"], by_subject.json["rows_held_out"]) == (68, 32)  # subjects of four days
    assert stored.json["held_out"] == fitted.json["held_out"]
    again, windows, three, raced, page = run_many(
        [
            ["evaluate", "a.model", "visits.csv", "--json"],
            ["evaluate", "a.model", "visits.csv", *FORWARD, "--json"],
            ["evaluate", "a.model", "visits.csv", "--splits", "forward:3", "--time", "date", "--groups", "subject"],
            ["compare", "visits.csv", *FORWARD, "--groups", "subject", "--json"],
            ["evaluate", "a.model", "visits.csv", *FORWARD, "-o", "page.html"],
        ],
        visits,
    )
    assert again.json["metrics"]["accuracy"] == fitted.json["held_out"]["accuracy"]
    assert again.json["metrics"]["rows"] == 20
    assert (windows.json["splits"]["n_splits"], windows.json["splits"]["n_train"]) == (5, 17)
    assert "forward " in three.out
    assert three.code == page.code == 0
    assert (raced.json["data"]["training rows"], raced.json["data"]["held-out rows"]) == (80, 20)
    assert "--groups subject --splits forward --time date" in raced.json["fit_command"]
    assert "Forward in time" in (visits / "page.html").read_text()


def test_what_cannot_go_forward_says_why(visits):
    evaluate = ["evaluate", "e.model", "visits.csv"]
    assert run_many([[*FIT, "-o", "e.model"]], visits)[0].code == 0
    without_time = ["--labels", "site", "--splits", "forward"]
    refused = {
        r"gap.csv, row 0: no value in 'date'": ["fit", "gap.csv", *FIT[2:]],
        r"no-date.csv, date, row 0: '9.4.2024' is no time": ["fit", "no-date.csv", *FIT[2:]],
        r"--time: all rows are of one time": ["fit", "same.csv", *FIT[2:]],
        r"class, such as new, are held out as the latest by date": ["fit", "new.csv", *FIT[2:]],
        r"--splits forward needs times: name their column": ["fit", "visits.csv", *without_time],
        r"--time is the column of --splits forward": ["fit", "visits.csv", "--labels", "site", "--time", "date"],
        r"the latest rows, and --split subject others": [*FIT, "--split", "subject"],
        r"--splits must be a number of random splits, .* got forward:x": [
            *evaluate,
            "--splits",
            "forward:x",
            "--time",
            "date",
        ],
        r"100 different times allow 99 splits": [*evaluate, "--splits", "forward:100", "--time", "date"],
        r"--splits forward takes them by time": [*evaluate, *FORWARD, "--per-class", "3"],
        r"needs times: name their column with --time, such as": [*evaluate, "--splits", "forward"],
        r"--time is the column of --splits forward: ": ["compare", "visits.csv", "--time", "date"],
    }
    runs = [[*given, "-o", f"x{i}.model"] if given[0] == "fit" else given for i, given in enumerate(refused.values())]
    for message, result in zip(refused, run_many(runs, visits), strict=True):
        assert result.code != 0
        text = " ".join(result.err.split())
        assert re.search(message, text), (message, text)
