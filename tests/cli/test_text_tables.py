"""Text tables with samples as columns on the command line, and new tables that lack columns."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from .conftest import SMALL
from .terminal import run_many

pytest.importorskip("pyarrow")

N = 48
KINDS = ["cancer" if i % 2 else "n" for i in range(N)]


def metaml(folder, name="abundance.txt", without=(), rename=str):
    """A table of MetAML (see tests/readers/test_transposed.py): metadata on top, clades of two ranks below."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.linspace(0.05, 2, 30), N)
    shares[::2, 20:25] *= 4
    shares[shares < 0.005] = 0
    shares *= 100 / shares.sum(axis=1, keepdims=True)
    lines = [
        ["dataset_name", *["Zeller_fecal_colorectal_cancer"] * N],
        ["sampleID", *(f"CCIS{i:03}" for i in range(N))],
        ["subjectID", *(f"fr-{i // 3}" for i in range(N))],
        ["disease", *KINDS],
        ["age", *(str(40 + i % 30) for i in range(N))],
        ["country", *["france"] * N],
    ]
    clades = [f"k__Bacteria|g__Genus{j % 5}|s__Species_{j}" for j in range(29)] + ["k__Bacteria|g__Genus9"]
    lines += [
        [rename(clade), *map("{:.5f}".format, shares[:, j])] for j, clade in enumerate(clades) if j not in without
    ]
    (folder / name).write_text("".join("\t".join(line) + "\n" for line in lines))


def test_from_a_table_of_samples_as_columns_to_its_explanation(tmp_path):
    metaml(tmp_path)
    fit = ["fit", "abundance.txt", "--labels", "disease", "--groups", "subjectID", "--test-fraction", "0.3"]
    metaml(tmp_path, "abundance.tsv")
    fitted, info, unlabelled = run_many(
        [[*fit, "-o", "my.model", *SMALL], ["info", "abundance.txt", "--labels", "disease"], ["info", "abundance.tsv"]],
        tmp_path,
    )
    assert fitted.code == 0, fitted.err
    assert f"samples are columns: {N} samples, and 30 lines of bins, below 5 of metadata" in fitted.err
    assert "say --no-transpose" in fitted.err
    assert "clades of several ranks. To keep one, say --rank s__: there are 29 s__ and 1 g__" in fitted.err
    assert "subjectID: text" in info.out
    assert "disease: text, 2 different" in unlabelled.out, unlabelled.err
    evaluated, predicted, explained = run_many(
        [
            ["evaluate", "my.model", "abundance.txt", "--output", "report.html", "--json"],
            ["predict", "my.model", "abundance.txt", "-o", "answers.csv"],
            ["explain", "my.model", "abundance.txt", "--output", "why.html"],
        ],
        tmp_path,
    )
    assert evaluated.code == predicted.code == explained.code == 0, evaluated.err + predicted.err + explained.err
    assert "using the column 'disease' as labels" in evaluated.err
    assert 0 < json.loads(evaluated.out)["metrics"]["rows"] < N
    answers = [*csv.DictReader((tmp_path / "answers.csv").open())]
    assert [answer["id"] for answer in answers] == [f"CCIS{i:03}" for i in range(N)]
    assert "Species_2" in (tmp_path / "why.html").read_text()


def test_new_tables_lack_columns_or_name_them_otherwise(tmp_path):
    metaml(tmp_path)
    metaml(tmp_path, "fewer.txt", without=(0, 1, 2))
    metaml(tmp_path, "few.txt", without=range(5, 30))
    metaml(tmp_path, "upper.txt", rename=str.upper)
    [fitted] = run_many([["fit", "abundance.txt", "--labels", "disease", "-o", "my.model", *SMALL]], tmp_path)
    assert fitted.code == 0, fitted.err
    predict = [["predict", "my.model", name, "-o", f"{name}.csv"] for name in ("fewer.txt", "few.txt", "upper.txt")]
    fewer, few, upper, refused, odd = run_many(
        [
            *predict,
            [*predict[0], "--overwrite", "--missing-columns", "refuse"],
            [*predict[0], "--overwrite", "--missing-columns", "nan"],
        ],
        tmp_path,
    )
    assert fewer.code == 0, fewer.err
    assert "27 of 30 columns, 9" in fewer.err
    assert "say --missing-columns refuse" in fewer.err
    assert few.code == 2
    assert "There are 5 of 30 columns, " in few.err
    assert "from 80 % of it on, the others are taken as zero" in few.err
    assert upper.code == 0, upper.err
    assert "30 columns are matched whatever the case of their letters" in upper.err
    assert refused.code == odd.code == 2
    assert "(3 of 30 columns are missing)" in refused.err
    assert "--missing-columns must be one of 'zero', 'refuse'; got 'nan'" in odd.err


def test_a_model_of_all_ranks_sums_new_tables_by_itself(tmp_path):
    metaml(tmp_path)
    metaml(tmp_path, "upper.txt", rename=str.upper)
    metaml(tmp_path, "unseen.txt", rename=lambda clade: clade.replace("Species_5", "Novel_5"))
    metaml(tmp_path, "genera.txt", without=range(29))
    fit = ["fit", "abundance.txt", "--labels", "disease", "-o", "my.model", "--rank", "all", *SMALL]
    [fitted] = run_many([fit], tmp_path)
    assert fitted.code == 0, fitted.err
    assert "bins are summed over clades: 6 of rank genus, 29 of rank species. Ranks of one clade" in fitted.err
    names = ("abundance", "upper", "unseen", "genera")
    same, upper, unseen, genera = run_many(
        [["predict", "my.model", f"{name}.txt", "-o", f"{name}.csv"] for name in names], tmp_path
    )
    assert same.code == upper.code == unseen.code == 0, same.err + upper.err + unseen.err
    assert (tmp_path / "abundance.csv").read_text() == (tmp_path / "upper.csv").read_text()
    assert "1 bin unknown to the fitted model counts in the clades above it" in unseen.err
    assert genera.code == 2
    assert "no clade of rank species that the model knows; it was fitted on sums over genus, species" in genera.err


def test_what_is_wrong_with_ranks_and_orientation(tmp_path):
    metaml(tmp_path)
    fit = ["fit", "abundance.txt", "-o", "my.model", *SMALL, "--labels"]
    rank, upright, label = run_many(
        [[*fit, "disease", "--rank", "o__"], [*fit, "disease", "--no-transpose"], [*fit, "diagnosis"]], tmp_path
    )
    assert rank.code == upright.code == label.code == 2
    assert "no clade of --rank o__; there are 29 s__ and 1 g__" in rank.err
    assert "two columns are called 'Zeller_fecal_colorectal_cancer'" in upright.err
    assert "no column and no file 'diagnosis'; columns are dataset_name, sampleID, subjectID, disease" in label.err
