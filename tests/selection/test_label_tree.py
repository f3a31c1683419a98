"""Classes in a tree: nodes, answers, sets and distances against definitions; trees that are none."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._errors import DataError, InputError
from chimap.selection.label_tree import LabelTree, tree_of_file

EDGES = {"T": "cell", "B": "cell", "CD4": "T", "CD8": "T", "naive": "CD4", "memory": "CD4", "plasma": "B"}
CLASSES = np.array(["CD8", "memory", "naive", "B", "plasma"])  # B is a node above plasma, too
UNBOUND = LabelTree.of(EDGES)
ARRANGED = UNBOUND.arranged(CLASSES)
TREE = UNBOUND.of_classes(ARRANGED)
P = np.random.default_rng(0).dirichlet(np.full(5, 0.6), size=300)


def test_probabilities_of_nodes_are_sums_over_the_classes_at_and_below():
    assert ARRANGED.tolist() == ["B", "plasma", "memory", "naive", "CD8"]
    assert TREE.names.tolist() == ["cell", "B", "plasma", "T", "CD4", "memory", "naive", "CD8"]
    of = dict(zip(TREE.names, TREE.probabilities(P).T, strict=True))
    p = dict(zip(ARRANGED, P.T, strict=True))
    np.testing.assert_allclose(of["cell"], 1)
    np.testing.assert_allclose(of["B"], p["B"] + p["plasma"])
    np.testing.assert_allclose(of["T"], p["CD8"] + p["memory"] + p["naive"])
    np.testing.assert_allclose(of["CD4"], p["memory"] + p["naive"])


def test_the_answer_follows_the_most_probable_child():
    of = dict(zip(TREE.names, TREE.probabilities(P).T, strict=True))
    p = dict(zip(ARRANGED, P.T, strict=True))
    below_cd4 = np.where(p["memory"] >= p["naive"], "memory", "naive")
    below_t = np.where(of["CD4"] >= p["CD8"], below_cd4, "CD8")
    below_b = np.where(p["plasma"] >= p["B"], "plasma", "B")
    expected = np.where(of["B"] >= of["T"], below_b, below_t)
    np.testing.assert_array_equal(ARRANGED[TREE.best(P)], expected)


def test_nodes_on_the_first_level_are_no_less_probable_than_those_of_the_most_probable_class():
    of_nodes, nodes = TREE.probabilities(P), TREE.names.tolist()
    tops = np.array([nodes.index("B"), nodes.index("B"), *[nodes.index("T")] * 3])
    found, flat = (of_nodes[np.arange(300), tops[classes]] for classes in (TREE.best(P), P.argmax(axis=1)))
    assert (found >= flat).all()
    assert (found > flat).any()


def test_sets_are_the_deepest_node_on_the_way_down_that_is_probable_enough():
    of = dict(zip(TREE.names, TREE.probabilities(P).T, strict=True))
    unlike = TREE.unlikeness(np.log(P))
    for least in (0.3, 0.5, 0.7, 0.9):
        nodes = TREE.nodes_of(unlike < least)
        for row, (node, answer) in enumerate(zip(nodes, ARRANGED[TREE.best(P)], strict=True)):
            way = [answer]
            while way[0] in EDGES:
                way.insert(0, EDGES[way[0]])
            assert node == [each for each in way if of[each][row] >= least or each == "cell"][-1]


def test_distances_are_edges_between_the_classes():
    expected = {
        ("B", "plasma"): 1,
        ("memory", "naive"): 2,
        ("CD8", "naive"): 3,
        ("plasma", "naive"): 5,
        ("B", "CD8"): 3,
    }
    place = {name: i for i, name in enumerate(ARRANGED)}
    for (one, other), edges in expected.items():
        assert TREE.distances[place[one], place[other]] == TREE.distances[place[other], place[one]] == edges
    assert (np.diag(TREE.distances) == 0).all()


def test_measures_are_accuracies_of_ancestors_and_the_mean_distance():
    confusion = np.zeros((5, 5), dtype=int)
    confusion[0, 1], confusion[2, 3], confusion[3, 4], confusion[4, 0], confusion[1, 1] = 1, 2, 3, 4, 10
    found = {measure.name: measure.value for measure in TREE.measures(confusion)}
    assert found["tree distance"] == pytest.approx((1 + 2 * 2 + 3 * 3 + 4 * 3) / 20)
    assert found["level 1"] == pytest.approx(16 / 20)  # those of the fourth line are in the other branch
    assert found["level 2"] == pytest.approx(12 / 20)
    assert TREE.scored("neg_mean_tree_distance", confusion) == -found["tree distance"]


def test_labels_may_be_paths():
    tree = LabelTree.of("paths")
    classes = tree.arranged(np.array(["gut/ileum", "skin", "gut/colon/left"]))
    assert classes.tolist() == ["gut/colon/left", "gut/ileum", "skin"]
    bound = tree.of_classes(classes)
    assert bound.names.tolist() == ["/", "gut", "gut/colon", "gut/colon/left", "gut/ileum", "skin"]
    sets = np.array([[True, True, False], [True, False, False], [True, False, True], [False] * 3])
    assert bound.nodes_of(sets).tolist() == ["gut", "gut/colon/left", "/", "/"]


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"a": "b", "b": "a"}, "a circle: (a > b > a|b > a > b)"),
        ({"a": "b", "b": "c", "c": "b", "x": "top"}, "a circle"),
        ({"a": "left", "b": "right"}, "2 roots: left, right"),
        ([("a", "left"), ("a", "right"), ("left", "x"), ("right", "x")], "'a' has two parents: left, right"),
        ("tree.tsv", "must be a mapping"),
        ({}, "must be a mapping"),
        (3, "must be a mapping"),
        ([("a", "b", "c")], "must be a mapping"),
    ],
)
def test_trees_that_are_none_are_refused(tree, said):
    with pytest.raises(InputError, match=said):
        LabelTree.of(tree)


def test_a_class_that_the_tree_lacks_is_refused():
    with pytest.raises(InputError, match="no node 'NK', which is a class"):
        UNBOUND.arranged(np.array(["B", "NK"]))


def test_files_have_a_child_and_its_parent_on_each_line(tmp_path):
    file = tmp_path / "tree.tsv"
    file.write_text("# lineage\nT\tcell\n\nB cell\tcell\r\nT\tcell\n", encoding="utf-8")
    assert tree_of_file(file) == {"T": "cell", "B cell": "cell"}
    for text, said in (("T cell\n", "line 1"), ("a\tb\nc\td\te\n", "line 2"), ("a\tb\na\tc\n", "line 2: 'a' is below")):
        file.write_text(text)
        with pytest.raises(DataError, match=said):
            tree_of_file(file)
