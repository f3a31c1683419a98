"""Scores study by study, and permutations of the labels within studies."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from chimap import HistogramClassifier, HistogramRegressor
from chimap._errors import InputError
from chimap._validation import DataError
from chimap.engines import Progress
from chimap.reports.sections.studies import permutations_figure, studies_figure
from chimap.reports.studies import (
    PermutationTest,
    StudyScores,
    _left_out,
    _permuted,
    _row_values,
    _Studied,
    save_table,
    study_scores,
)
from chimap.selection.scoring import area_under_curve

STUDIES = np.repeat(["Lyon", "Oslo", "Riga"], [30, 34, 26])


def counts(effect=4.0, seed=0):
    """Counts of 8 species in three studies of unlike depth, with an effect of the label on two species."""
    rng = np.random.default_rng(seed)
    sick = rng.permutation(np.arange(STUDIES.size) % 2 == 0)
    means = np.full((sick.size, 8), 6.0) + effect * sick[:, None] * (np.arange(8) < 2)
    means *= np.unique(STUDIES, return_inverse=True)[1][:, None] + 1.0
    return rng.poisson(means).astype(np.float32), np.where(sick, "sick", "well")


def studied(X, y):
    names, places = np.unique(STUDIES, return_inverse=True)
    return _Studied(X, y, tuple(names), places)


MODELS = {
    "exponential": HistogramClassifier("exp-chi2", features="exact", gamma=0.1, random_state=0),
    "additive": HistogramClassifier("chi2", features="exact", random_state=0),
    "no map": HistogramClassifier("minmax", features="exact", normalize="l1", random_state=0),
    "map": HistogramClassifier("chi2", features="additive", random_state=0),
    "blocks": HistogramClassifier(
        ["chi2", "exp-chi2"], features="exact", gamma=0.1, blocks={"a": slice(0, 4), "b": slice(4, 8)}, random_state=0
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_study_left_out_by_the_factor_is_as_if_refitted_without_it(name):
    X, y = counts()
    model = clone(MODELS[name]).set_params(alpha=2.0).fit(X, y)
    targets, rows = np.where(y == "well", 1.0, -1.0)[:, None], studied(X, y).rows
    outputs = _row_values(model, studied(X, y)).machine(targets, 2.0).left_out(rows)
    for left in rows:
        rest = np.setdiff1d(np.arange(y.size), left)
        refitted = clone(model).fit(X[rest], y[rest]).decision_function(X[left])
        closed = outputs[left, 0]
        if name == "no map":
            assert closed == pytest.approx(refitted, abs=1e-4)
        else:  # a map is fitted on all rows here, and without the study there
            assert np.corrcoef(closed, refitted)[0, 1] > 0.99
            assert closed == pytest.approx(refitted, abs=0.15)


def test_each_column_has_the_strength_that_it_would_have_alone():
    X, y = counts()
    model = clone(MODELS["no map"]).fit(X, y)
    values, rows = _row_values(model, studied(X, y)), studied(X, y).rows
    rng = np.random.default_rng(1)
    Y = np.where(rng.random((y.size, 5)) < 0.5, 1.0, -1.0)
    Y[:, 2] = np.where(y == "well", 1.0, -1.0)
    together = _left_out(values, Y, 1, rows)
    for k in range(5):
        assert together[:, [k]] == pytest.approx(_left_out(values, Y[:, [k]], 1, rows), abs=1e-8)


def test_labels_are_permuted_within_studies_alone(monkeypatch):
    """Two studies of one label each: every permutation is the labels as they are, and all scores are the same."""
    import chimap.reports.studies as module

    X, y = counts()
    seen = []

    def by_one_factor(model, studied, values, orders, scored, progress):
        seen.extend(orders)
        return np.zeros(len(orders))

    monkeypatch.setattr(module, "_by_one_factor", by_one_factor)
    model = clone(MODELS["no map"]).fit(X, y)
    _permuted(model, studied(X, y), 20, 0, Progress())
    assert len(seen) == 21
    assert (seen[0] == np.arange(y.size)).all()
    for order in seen[1:]:
        assert (STUDIES[order] == STUDIES).all()
        assert (np.sort(order) == np.arange(y.size)).all()
        assert (order != seen[0]).any()


def test_the_p_value_is_small_for_an_effect_and_anything_without():
    strong = study_scores(clone(MODELS["exponential"]).fit(*counts()), *counts(), STUDIES, permutations=99)
    assert strong.test.p_value == 0.01
    assert strong.test.method == "one factor for all"
    assert strong.test.score == pytest.approx(strong.mean, abs=0.05)
    p_values = []
    for seed in range(12):
        X, y = counts(effect=0.0, seed=seed)
        model = clone(MODELS["no map"]).fit(X, y)
        p_values.append(_permuted(model, studied(X, y), 39, seed, Progress()).p_value)
    assert min(p_values) >= 1 / 40
    assert 0.2 < np.mean(p_values) < 0.8


def test_the_p_value_counts_ties_and_the_labels_as_they_are():
    assert PermutationTest(0.7, np.array([0.5, 0.7, 0.8, 0.1]), "").p_value == 3 / 5
    assert PermutationTest(0.9, np.zeros(199), "").p_value == 1 / 200


def test_scores_across_and_within_are_those_of_refits():
    X, y = counts()
    model = clone(MODELS["no map"]).set_params(alpha=1.0).fit(X, y)
    found = study_scores(model, X, y, STUDIES)
    assert found.measure == "roc_auc"
    assert found.n_rows.tolist() == [30, 34, 26]
    assert found.test is None
    for k, name in enumerate(found.studies):
        mine = name == STUDIES
        outputs = clone(model).fit(X[~mine], y[~mine]).decision_function(X[mine])
        assert found.across[k] == area_under_curve(y[mine] == "well", outputs)
    assert found.mean == pytest.approx(found.across.mean())
    assert found.spread == pytest.approx(found.across.std(ddof=1))
    assert np.isfinite(found.within).all()


def test_a_study_that_differs_scores_within_and_not_across():
    """The label turns round in one study: within studies it is learned, across them it misleads."""
    X, y = counts(effect=8.0)
    y = np.where((STUDIES == "Oslo") == (y == "sick"), "well", "sick")
    model = clone(MODELS["exponential"]).fit(X, y)
    found = study_scores(model, X, y, STUDIES)
    assert found.mean_within > 0.8
    assert found.across[1] < 0.3


def test_losses_without_a_shared_factor_are_refitted():
    X, y = counts()
    model = HistogramClassifier("chi2", loss="logistic", alpha=1.0, random_state=0).fit(X, y)
    seen, said = [], []

    class Counting(Progress):
        def stage(self, name, total, unit="rows"):
            seen.append((name, total))

        def note(self, text, *, matters=False):
            said.append(text)

    found = study_scores(model, X, y, STUDIES, permutations=4, progress=Counting())
    assert found.test.method == "a fit for each"
    assert found.test.score == pytest.approx(found.mean)
    assert seen == [("studies", 18), ("permutations", 15)]
    assert re.fullmatch(r"4 permutations take 12 fits, about [\d.]+ m?s\.", said[0])


def test_more_classes_and_targets():
    X, y = counts()
    kinds = np.where(X[:, 3] > np.median(X[:, 3]), "deep", y)
    many = study_scores(clone(MODELS["no map"]).fit(X, kinds), X, kinds, STUDIES, permutations=19)
    assert many.measure == "balanced_accuracy"
    assert 0 < many.test.p_value <= 1
    target = np.sqrt(X[:, 0]) + X[:, 1] / X.sum(axis=1)
    regressor = HistogramRegressor("exp-chi2", features="exact", random_state=0).fit(X, target)
    numbers = study_scores(regressor, X, target, STUDIES, permutations=19)
    assert numbers.measure == "r2"
    assert numbers.test.p_value == 0.05
    tasks = np.column_stack([y == "sick", X[:, 3] > X[:, 4]]).astype(float)
    several = study_scores(clone(MODELS["no map"]).fit(X, tasks), X, tasks, STUDIES, permutations=9)
    assert several.measure == "mean roc_auc"
    assert several.test.p_value <= 0.2


def test_a_study_of_one_class_is_told_of_and_left_out_of_the_mean():
    X, y = counts()
    y = np.where(STUDIES == "Riga", "well", y)
    found = study_scores(clone(MODELS["no map"]).fit(X, y), X, y, STUDIES, permutations=9)
    assert np.isnan(found.across).tolist() == np.isnan(found.within).tolist() == [False, False, True]
    assert found.mean == pytest.approx(found.across[:2].mean())
    assert found.notes == ("Riga: all labels are well, so neither score is defined",)
    assert "Riga: all labels are well" in found.lines()["not scored"]
    assert found.as_dict()["studies"][2]["across"] is None
    told = replace(found, notes=tuple(map(str, range(8)))).lines()["not scored"]
    assert told.splitlines() == [*"01234", "and 3 more; the JSON shows all"]


def test_a_study_whose_numbers_do_not_differ_has_no_score():
    X, _ = counts()
    y = np.where(STUDIES == "Riga", 2.0, X[:, 0] + X[:, 1])
    found = study_scores(HistogramRegressor("exp-chi2", random_state=0).fit(X, y), X, y, STUDIES)
    assert np.isnan(found.across).tolist() == np.isnan(found.within).tolist() == [False, False, True]
    assert found.notes == ("Riga: all labels are 2.0, so neither score is defined",)


def test_bad_input():
    X, y = counts()
    model = clone(MODELS["no map"]).fit(X, y)
    with pytest.raises(DataError, match="all rows are of one study, Lyon"):
        study_scores(model, X, y, np.full(y.size, "Lyon"))
    with pytest.raises(InputError, match="permutations must be 0, for no test, or more; got -1"):
        study_scores(model, X, y, STUDIES, permutations=-1)
    apart = np.where(STUDIES == "Riga", y, "well")
    with pytest.raises(DataError, match="without study Riga all labels are well"):
        study_scores(model, X, apart, STUDIES)
    with pytest.raises(DataError, match=r"in each of the \d+ studies all labels are the same"):
        study_scores(model, X, y, np.arange(y.size))
    few = np.concatenate([np.arange(3), np.arange(30, 33)])
    labels = np.array(["sick", "well", "well"] * 2)
    with pytest.raises(DataError, match=r"only 9 permutations .* differ, too few for permutations=99.*permutations=8 "):
        study_scores(model, X[few], labels, STUDIES[few], permutations=99)


def test_what_is_shown():
    test = PermutationTest(0.8, np.linspace(0.4, 0.6, 30), "one factor for all")
    scores = StudyScores(
        "roc_auc",
        ("a<b", "c"),
        np.array([20, 30]),
        np.array([0.75, math.nan]),
        np.array([0.9, math.nan]),
        ("c: too few rows",),
        test,
    )
    lines = scores.lines()
    assert lines["by study"].splitlines()[1].split() == ["a<b", "20", "0.750", "0.900"]
    assert lines["by study"].splitlines()[2].split() == ["c", "30", "-", "-"]
    assert "p = 0.032: 0.800 against 0.500" in lines["permutations"]
    assert scores.as_dict()["permutations"]["p_value"] == 1 / 31
    for svg in (studies_figure(scores), permutations_figure(test, "ROC AUC")):
        assert svg.startswith("<svg")
        assert "a<b" not in svg


def test_a_table_has_a_line_for_each_machine_and_study(tmp_path):
    scores = StudyScores("r2", ("Lyon, 1", "Oslo"), np.array([30, 4]), np.array([0.5, np.nan]), np.array([0.25, 1.0]))
    save_table({"ridge": scores, "chi2": scores}, tmp_path / "studies.csv")
    lines = (tmp_path / "studies.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "machine,study,rows,measure,across,within"
    assert lines[1:3] == ['ridge,"Lyon, 1",30,r2,0.5,0.25', "ridge,Oslo,4,r2,,1.0"]
    assert len(lines) == 5
