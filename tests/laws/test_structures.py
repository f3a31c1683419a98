"""Laws of the structures of classes: one object says which answer is best, which sets there are, what is measured."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._onnx import Graph, Value
from chimap.selection.calibration import Calibration
from chimap.selection.conformal import Conformal
from chimap.selection.scoring import HeldOutScore
from chimap.selection.structures import STRUCTURES, Nominal

CLASSES = np.array(["a", "b", "c", "d", "e"])
TREE = {"a": "left", "d": "left", "left": "all", "right": "all", "e": "right", "c": "e", "b": "e"}  # e is a class too
SETTINGS = {"ordered": ["d", "b", "a", "e", "c"], "label_tree": TREE}
UNBOUND = {"nominal": Nominal()} | {name: STRUCTURES[name](setting) for name, setting in SETTINGS.items()}
KINDS = {name: each.of_classes(each.arranged(CLASSES)) for name, each in UNBOUND.items()}
RNG = np.random.default_rng(0)
OUTPUTS = RNG.normal(size=(400, 5)) - 0.3
PLACES = np.array([RNG.choice(5, p=p) for p in np.exp(OUTPUTS) / np.exp(OUTPUTS).sum(axis=1, keepdims=True)])
CALIBRATION = Calibration.of(OUTPUTS, PLACES)
LOGS = CALIBRATION.log(OUTPUTS)


def test_every_structure_is_tested():
    assert SETTINGS.keys() == {*STRUCTURES}


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_arranged_the_same_way_whichever_are_there(kind):
    structure = KINDS[kind]
    arranged = structure.arranged(CLASSES)
    assert sorted(arranged) == sorted(CLASSES)
    for kept in (CLASSES[[0, 2]], CLASSES[1:], arranged):
        assert structure.arranged(kept).tolist() == [each for each in arranged if each in kept]
        bound = structure.of_classes(structure.arranged(kept))
        assert bound.closed(np.ones((1, len(kept)), dtype=bool)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_sets_hold_the_answer_grow_with_the_level_and_are_of_the_kind_of_the_structure(kind):
    structure = KINDS[kind]
    unlike, before = structure.unlikeness(LOGS), np.zeros(LOGS.shape, dtype=bool)
    for threshold in np.quantile(unlike, [0.01, 0.1, 0.3, 0.6, 1.0]):
        sets = unlike <= threshold
        assert (sets >= before).all()
        np.testing.assert_array_equal(structure.closed(sets), sets)
        before = sets
    assert before.all()
    answers = structure.answers(OUTPUTS, CALIBRATION)
    np.testing.assert_array_equal(unlike[np.arange(400), answers], unlike.min(axis=1))


@pytest.mark.parametrize("kind", KINDS)
def test_closed_sets_are_the_least_that_hold_the_others(kind):
    structure, sets = KINDS[kind], np.random.default_rng(1).random((200, 5)) < 0.3
    closed = structure.closed(sets)
    assert (closed >= sets).all()
    np.testing.assert_array_equal(structure.closed(closed), closed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [0.05, 0.2, 0.5])
def test_sets_hold_the_truth_as_often_as_asked(kind, level):
    unlike = KINDS[kind].unlikeness(LOGS)
    scores, missed, halves = unlike[np.arange(400), PLACES], [], np.arange(400)
    for _ in range(200):  # exchangeable halves
        RNG.shuffle(halves)
        threshold = Conformal(scores[halves[:200], None]).threshold(level)[0]
        missed.append((scores[halves[200:]] > threshold).mean())
    # sets of whole branches have few sizes, and hold the truth more often
    assert level - (0.2 if kind == "label_tree" else 0.012) < np.mean(missed) < level + 0.012


@pytest.mark.parametrize("kind", KINDS)
def test_the_graph_answers_the_same(kind):
    onnxruntime = pytest.importorskip("onnxruntime")
    graph = Graph()
    answers = KINDS[kind].onnx(Value(graph, "f", np.float64), CALIBRATION)
    graph.node("Identity", answers, name="answers")
    declared = [graph.info("f", np.float64, ["rows", 5])], [graph.info("answers", np.int64, ["rows"])]
    session = onnxruntime.InferenceSession(graph.model(*declared, {}).SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"f": OUTPUTS})[0], KINDS[kind].answers(OUTPUTS, CALIBRATION))


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_outputs_do_not_depend_on_the_order_of_rows_and_parts_are_left_out(kind):
    structure = KINDS[kind]
    classes = structure.arranged(CLASSES)
    for scoring in (None, "accuracy", *structure.scorers):
        score = structure.score(HeldOutScore(classes[PLACES], classes, scoring, RNG.random(400)))
        rows = RNG.permutation(400)
        assert score(OUTPUTS[rows], rows) == pytest.approx(score(OUTPUTS), abs=1e-12)
        without = score.without_each(OUTPUTS, np.arange(400), np.arange(400) % 4)
        assert without.mean() == pytest.approx(score(OUTPUTS), abs=0.02)
