"""Tables of other ecosystems on the command line: from a file to predictions, with nothing between."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import chimap

from ..readers.ecosystems import IDS, anndata_object, biom_hdf5
from ..readers.small_sources import LABELS
from ..readers.test_fields import KINDS, write_csv
from ..readers.test_molecules import SMILES
from .conftest import SMALL
from .terminal import run_many


def test_a_biom_table_with_its_metadata_is_fitted_and_evaluated(tmp_path):
    biom_hdf5(tmp_path)
    rows = [f"{name}\t{'gut' if label > 0 else 'skin'}" for name, label in zip(IDS, LABELS, strict=True)]
    (tmp_path / "metadata.tsv").write_text("\n".join(["sample\tbody_site", *rows[5:]]) + "\n")
    labels = "metadata.tsv::body_site"
    fit = ["fit", "table.biom", "--labels", labels, "-o", "my.model", "--test-fraction", "0.3", *SMALL]
    [fitted] = run_many([fit], tmp_path)
    evaluated, predicted = run_many(
        [
            ["evaluate", "my.model", "table.biom", "--labels", labels],
            ["predict", "my.model", "table.biom", "-o", "answers.csv"],
        ],
        tmp_path,
    )
    assert fitted.code == evaluated.code == predicted.code == 0, fitted.err + evaluated.err + predicted.err
    assert "132 of 137 rows of table.biom have a label" in fitted.err
    assert "held out when the model was fitted" in evaluated.out
    answers = [*csv.DictReader((tmp_path / "answers.csv").open())]
    assert [answer["id"] for answer in answers] == IDS
    assert {answer["prediction"] for answer in answers} <= {"gut", "skin"}


def test_info_of_a_folder_of_texts(tmp_path):
    for label, word in (("sea", "ship"), ("land", "road")):
        (tmp_path / "posts" / label).mkdir(parents=True)
        for i in range(3):
            (tmp_path / "posts" / label / f"{i}.txt").write_text(f"the {word} {word} {i}")
    told, plain, lost = run_many(
        [["info", "posts", "--text", "text"], ["info", "posts"], ["info", "posts", "--text", "nope"]], tmp_path
    )
    assert told.code == 0, told.err
    assert "rows      6" in told.out
    assert "land/0.txt" in told.out
    assert "2 classes" in told.out
    assert (plain.code, lost.code) == (2, 2)
    assert "--text" in plain.err
    assert "no column 'nope'; there are id, text, label" in lost.err


def test_neighbours_among_words_in_a_shell(tmp_path):
    write_csv(tmp_path)
    texts = ["fit", "texts.csv", "--text", "body", "--labels", "kind", *SMALL, "--overwrite"]
    pairs, symbols, settled = run_many(
        [
            [*texts, "--ngrams", "1,2", "--min-count", "3", "-o", "pairs.model"],
            [*texts, "--tokens", "symbols", "--ngrams", "3", "-o", "symbols.model"],
            [*texts, "--ngrams", "auto", "-o", "settled.model", "--verbose"],
        ],
        tmp_path,
    )
    assert pairs.code == symbols.code == settled.code == 0, pairs.err + symbols.err + settled.err
    assert settled.err.count("pairs of words are not counted: accuracy") == 1
    assert chimap.load(tmp_path / "settled.model").reading_.ngrams == (1, 1)
    model = chimap.load(tmp_path / "pairs.model")
    assert (model.reading_.ngrams, model.reading_.min_count) == ((1, 2), 3)
    assert {name.count(" ") for name in model.feature_names_in_} == {0, 1}
    assert {len(name) for name in chimap.load(tmp_path / "symbols.model").feature_names_in_} == {3}
    answered, scored = run_many(
        [
            ["predict", "pairs.model", "texts.csv", "-o", "kinds.csv"],
            ["evaluate", "settled.model", "texts.csv", "--splits", "2", "--all-rows", "--json"],
        ],
        tmp_path,
    )
    assert answered.code == scored.code == 0, answered.err + scored.err
    assert "whether pairs of them are if a fit settled that" in scored.json["splits"]["note"]
    assert [row["prediction"] for row in csv.DictReader((tmp_path / "kinds.csv").open())] == KINDS
    wrong = {
        ("--ngrams", "2,1"): "--ngrams must be the fewest and the most neighbours",
        ("--ngrams", "0"): "--ngrams must be the fewest and the most neighbours",
        ("--ngrams", "two"): "such as 1,2, or one number, or auto; got 'two'",
        ("--ngrams", "auto", "--tokens", "characters"): "'auto' is for words that are not hashed",
        ("--min-count", "1000"): "no word is in 1000 texts or more; the most common,",
        ("--min-count", "0"): "--min-count must be a positive whole number",
    }
    for flags, result in zip(
        wrong, run_many([[*texts, *flags, "-o", "x.model"] for flags in wrong], tmp_path), strict=True
    ):
        assert result.code == 2, flags
        assert wrong[flags] in result.err
    [alone] = run_many([["fit", "texts.csv", "--ngrams", "1,2", "--labels", "kind", "-o", "x.model"]], tmp_path)
    assert "--ngrams is for texts: name their column with --text" in alone.err


def test_cells_text_and_molecules(tmp_path):
    pytest.importorskip("rdkit")
    anndata_object(np.asarray(np.eye(len(IDS), 12), np.float32)).write_h5ad(tmp_path / "cells.h5ad")
    write_csv(tmp_path)
    lines = [f"{smiles},{int('c1' in smiles)}" for smiles in SMILES * 10]
    (tmp_path / "molecules.csv").write_text("\n".join(["smiles,ring", *lines]) + "\n")
    fits = [
        ["fit", "cells.h5ad", "--labels", "cell_type", "-o", "cells.model", *SMALL],
        ["fit", "texts.csv", "--text", "body", "--labels", "kind", "-o", "texts.model", *SMALL],
        [
            "fit",
            "molecules.csv",
            "--smiles",
            "smiles",
            "--morgan-radius",
            "1",
            "--labels",
            "ring",
            "-o",
            "molecules.model",
            *SMALL,
        ],
    ]
    predictions = [
        ["predict", "cells.model", "cells.h5ad", "-o", "cells.csv"],
        ["predict", "texts.model", "texts.csv", "-o", "kinds.csv"],
        ["predict", "molecules.model", "molecules.csv", "-o", "rings.csv"],
    ]
    for commands in (fits, predictions):
        for result in run_many(commands, tmp_path):
            assert result.code == 0, result.err
    for name, expected in (("kinds", KINDS), ("rings", [line.rpartition(",")[2] for line in lines])):
        answers = [*csv.DictReader((tmp_path / f"{name}.csv").open())]
        assert [answer["prediction"] for answer in answers] == expected
    [both] = run_many([["fit", "texts.csv", "--text", "body", "--smiles", "id", "-o", "x.model"]], tmp_path)
    assert both.code == 2
    assert "--text and --smiles name one column each" in both.err
