"""Classes in a tree in estimators and commands: nodes for a level, coverage, files, and what excludes what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import chimap
from chimap import HistogramClassifier
from chimap._errors import InputError
from chimap.cli.fit_settings import Settings
from chimap.cli.predictions import writer
from chimap.engines import Progress

TREE = {"T": "cell", "B": "cell", "CD4": "T", "CD8": "T"}
RNG = np.random.default_rng(0)
Y = np.array(["B", "CD4", "CD8"])[np.arange(300) % 3]
RATES = {"B": [6, 1, 1, 1], "CD4": [1, 4, 2, 1], "CD8": [1, 4, 1, 2]}
X = RNG.poisson([RATES[label] for label in Y]).astype(float)
EXACT = {"kernel": "exp-chi2", "features": "exact", "random_state": 0}
MODEL = HistogramClassifier(label_tree=TREE, **EXACT).fit(X[:200], Y[:200])


def is_below(label, node):
    return label == node or (label in TREE and is_below(TREE[label], node))


def test_nodes_hold_the_truth_as_often_as_asked_and_are_deeper_for_lower_levels():
    truth, sizes = Y[200:], []
    for level in (0.5, 0.8, 0.95, 0.999):
        nodes = MODEL.predict(X[200:], level=level)
        held = np.mean([is_below(label, node) for label, node in zip(truth, nodes, strict=True)])
        assert held >= level - 2 * np.sqrt(level * (1 - level) * (1 / 100 + 1 / 200))
        sizes.append(sum(sum(is_below(label, node) for label in ("B", "CD4", "CD8")) for node in nodes))
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1] == 300  # the root of all rows
    assert "T" in MODEL.predict(X[200:], level=0.9)


def test_answers_are_classes_of_the_tree():
    assert MODEL.classes_.tolist() == ["B", "CD4", "CD8"]
    assert set(MODEL.predict(X)) == {"B", "CD4", "CD8"}
    assert MODEL.selection_.measure == "neg_mean_tree_distance"


def test_a_model_file_and_compiled_tables_have_the_tree(tmp_path):
    MODEL.save(tmp_path / "a.model")
    again = chimap.load(tmp_path / "a.model")
    np.testing.assert_array_equal(again.predict(X, level=0.9), MODEL.predict(X, level=0.9))
    additive = HistogramClassifier("chi2", label_tree=TREE, alpha=1.0).fit(X, Y)
    np.testing.assert_array_equal(additive.compile(1e-5).predict(X), additive.predict(X))


def test_the_report_has_levels():
    found = chimap.report(MODEL, X[200:], Y[200:], insight=False)
    answers = MODEL.predict(X[200:])
    assert found.metrics.as_dict()["level_1"] == pytest.approx(np.mean((answers == "B") == (Y[200:] == "B")))
    assert {"tree distance", "level 1"} <= found.summary().keys()


@pytest.mark.parametrize("ending", [".csv", ".npy", ".npz"])
def test_predictions_are_written_as_nodes(tmp_path, ending):
    file = tmp_path / f"nodes{ending}"
    writer(file, MODEL.fitted, level=0.9)(chimap.open_source(X), Progress())
    expected = MODEL.predict(X, level=0.9).tolist()
    if ending == ".csv":
        assert file.read_text().split()[1:] == expected
    else:
        stored = np.load(file)
        assert (stored if ending == ".npy" else stored["predictions"]).tolist() == expected


def test_flags_read_the_tree(tmp_path):
    file = tmp_path / "tree.tsv"
    file.write_text("".join(f"{child}\t{parent}\n" for child, parent in TREE.items()))
    assert Settings(label_tree=str(file)).weighing("classify", Y)["label_tree"] == TREE
    assert Settings(label_tree="paths").weighing("classify", Y)["label_tree"] == "paths"
    with pytest.raises(InputError, match="--label-tree is for classes"):
        Settings(label_tree=str(file)).weighing("regress", np.arange(3.0))


def test_what_has_no_nodes_is_refused():
    flat = HistogramClassifier("chi2", alpha=1.0).fit(X, Y)
    for ask in (lambda: flat.predict(X, level=0.9), lambda: writer(Path("a.csv"), flat.fitted, level=0.9)):
        with pytest.raises(InputError, match="labels in a tree"):
            ask()
    with pytest.raises(InputError, match="exclude each other"):
        MODEL.predict(X, level=0.9, unassigned=0.1)
    with pytest.raises(InputError, match="exclude each other"):
        HistogramClassifier("chi2", label_tree=TREE, ordered=["B", "CD4", "CD8"]).fit(X, Y)
