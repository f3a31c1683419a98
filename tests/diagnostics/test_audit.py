"""An audit of a score: what it rests on, rows that look wrong, groups; all equal to fits without the rows."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import chimap
from chimap import HistogramClassifier, HistogramRegressor
from chimap._errors import DataError, InputError
from chimap.data import ArraySource
from chimap.data.doubts import DataWarning
from chimap.diagnostics import audited
from chimap.diagnostics.audit import audit
from chimap.diagnostics.doubtful_rows import p_values_of, true_class_probabilities
from chimap.diagnostics.shortcuts import doubts_of_study, shortcuts_at_fit
from tests.reports.test_evaluation_page import Page

RNG = np.random.default_rng(1)
N, BINS, STUDIES = 90, 12, 5
STUDY = np.arange(N) % STUDIES
SICK = RNG.random(N) < 0.5
PROFILE = RNG.gamma(1.0, size=BINS)


def sampled(tilt: np.ndarray, depth: float = 300.0) -> np.ndarray:
    """Counts whose totals tell nothing."""
    rates = PROFILE * np.exp(tilt)
    return RNG.poisson(depth * rates / rates.sum(axis=1, keepdims=True))


COUNTS = sampled(0.3 * np.outer(SICK, np.linspace(-1, 1, BINS)))
EXACT = {"features": "exact", "gamma": 20.0, "alpha": 0.1, "normalize": "l1", "precision": "float64", "random_state": 0}


def fitted(**settings) -> HistogramClassifier:
    return HistogramClassifier("gaussian", **EXACT | settings)


@pytest.fixture(scope="module")
def found():
    return audit(fitted().fit(COUNTS, SICK), COUNTS, SICK, groups=STUDY)


def line(found, kind, name):
    return next(line for line in found.shortcuts if (line.kind, line.name) == (kind, name))


def test_what_a_group_is_worth_is_what_fits_without_it_say(found):
    from sklearn.metrics import roc_auc_score

    def outputs(*gone: int) -> np.ndarray:
        kept = ~np.isin(STUDY, gone)
        return fitted().fit(COUNTS[kept], SICK[kept]).decision_function(COUNTS)

    assert found.rows.is_own
    worth, alone = found.groups, np.concatenate([outputs(g)[g == STUDY] for g in range(STUDIES)])
    order = np.concatenate([np.flatnonzero(g == STUDY) for g in range(STUDIES)])
    np.testing.assert_allclose(found.rows.left_out[order, 0], alone, atol=1e-6)
    for g in range(2):
        without = np.full(N, np.nan)
        for h in set(range(STUDIES)) - {g}:
            rows = h == STUDY
            without[rows] = outputs(g, h)[rows]
            gained = roc_auc_score(SICK[rows], outputs(h)[rows]) - roc_auc_score(SICK[rows], without[rows])
            assert worth.helps[g, h] == pytest.approx(gained, abs=1e-6)
        others = g != STUDY
        with_it = roc_auc_score(SICK[others], found.rows.left_out[others, 0])
        assert worth.worth[g] == pytest.approx(with_it - roc_auc_score(SICK[others], without[others]), abs=1e-6)
        assert np.isnan(worth.helps[g, g])


def test_how_much_a_row_decides_is_what_a_fit_without_it_says():
    few = np.arange(30)
    own = audit(fitted().fit(COUNTS[few], SICK[few]), COUNTS[few], SICK[few]).doubtful
    row, moved, changed = int(own.deciding[0]), [], 0
    for other in np.setdiff1d(few, row):
        outputs = []
        for gone in ([other], [other, row]):
            kept = np.setdiff1d(few, gone)
            outputs += [fitted().fit(COUNTS[kept], SICK[kept]).decision_function(COUNTS[[other]])[0]]
        moved.append(outputs[1] - outputs[0])
        changed += (outputs[1] > 0) != (outputs[0] > 0)
    assert own.influence[row] == pytest.approx(np.sqrt(np.mean(np.square(moved))), rel=1e-5)
    assert own.n_changed[row] == changed


def test_labels_that_are_depth_are_told_by_the_first_line():
    deep = RNG.random(120) < 0.5
    counts = RNG.poisson(np.where(deep, 60.0, 20.0)[:, None] * PROFILE / PROFILE.sum() * 5)
    model = HistogramClassifier("chi2", normalize=None, alpha=1.0, random_state=0).fit(counts, deep)
    found = audit(model, counts, deep)
    assert (found.shortcuts[0].kind, found.shortcuts[0].name) == ("alone", "totals")
    assert found.shortcuts[0].is_clear
    assert found.sentence.startswith("Labels are told by totals alone: ROC AUC 1.000")
    assert line(found, "counts", "counts").score > 0.95
    left = line(found, "left", "totals")
    assert left.score < 0.5 + 3 * left.error  # nothing but depth
    assert not line(found, "alone", "order of rows").is_clear


def test_no_shortcut_is_found_where_there_is_none(found):
    assert not any(line.is_clear for line in found.shortcuts if line.kind == "alone")
    assert found.sentence.startswith("No shortcut tells the labels")
    counts, left = line(found, "counts", "counts"), line(found, "left", "totals")
    assert counts.is_clear
    assert left.score > counts.score - 4 * counts.error


def test_labels_of_a_study_are_a_shortcut_that_can_be_taken_out():
    study = np.arange(120) % 3
    sick = RNG.random(120) < np.array([0.05, 0.5, 0.95])[study]
    counts = sampled(0.7 * np.eye(BINS)[study + 3])  # bins tell the study, and nothing else
    model = HistogramClassifier("chi2", normalize="l1", alpha=0.1, random_state=0).fit(counts, sick)
    found = audit(model, counts, sick, groups=study)
    assert found.shortcuts[0].name == "group"
    assert found.shortcuts[0].is_clear
    assert line(found, "told", "group").score > 0.9
    left = line(found, "left", "group")
    assert left.score < 0.5 + 3 * left.error


def test_covariates_are_judged_too():
    age = RNG.uniform(20, 80, N)
    old = age > 50
    model = fitted().fit(COUNTS, old)
    found = audit(model, COUNTS, old, covariates={"age": age, "site": np.where(STUDY > 2, "a", "b")})
    assert found.shortcuts[0].name == "covariates (age, site)"
    assert found.shortcuts[0].score > 0.95


def test_flipped_labels_come_first():
    flipped = RNG.choice(N, 5, replace=False)
    far = sampled(1.2 * np.outer(SICK, np.linspace(-1, 1, BINS)))
    y = np.where(SICK, "sick", "well")
    wrong = y.copy()
    wrong[flipped] = np.where(SICK[flipped], "well", "sick")
    found = audit(fitted().fit(far, wrong), far, wrong)
    assert {*found.doubtful.order[:5].tolist()} == {*flipped.tolist()}
    assert {*found.wrong_labels(0.1).tolist()} == {*flipped.tolist()}
    np.testing.assert_array_equal(found.doubtful.looks_like[flipped], y[flipped])
    assert found.doubtful.share_wrong == pytest.approx(5 / N, abs=0.03)


def test_p_values_of_right_labels_are_no_smaller_than_uniform():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 3000)
    outputs = 1.5 * np.eye(3)[truth] + rng.normal(size=(3000, 3))
    probabilities, share = true_class_probabilities(outputs, truth)
    p, own = p_values_of(probabilities, truth)
    assert share < 0.02
    for level in (0.01, 0.05, 0.2):
        assert (p <= level).mean() <= level + 0.01
    np.testing.assert_allclose(own, probabilities[np.arange(3000), truth])


def test_numbers_have_residuals_for_p_values():
    target = COUNTS @ np.linspace(0, 1, BINS) / 100
    wrong = target.copy()
    wrong[7] += 20 * target.std()
    found = audit(HistogramRegressor("chi2", alpha=0.1, random_state=0).fit(COUNTS, wrong), COUNTS, wrong)
    assert found.doubtful.order[0] == 7
    assert found.doubtful.rates[7] < 1e-6
    assert found.doubtful.looks_like[7] == pytest.approx(target[7], abs=4 * target.std())
    assert found.measure == "R²"
    assert found.shortcuts[0].name == "totals"  # the target is a sum of bins


def test_copies_with_other_labels_are_listed():
    rows, y = np.vstack([COUNTS, COUNTS[4]]), np.append(SICK, not SICK[4])
    found = audit(fitted().fit(rows, y), rows, y)
    assert (found.doubtful.copies[0].row, found.doubtful.copies[0].other) == (4, N)
    assert found.doubtful.copies[0].distance == pytest.approx(0, abs=1e-9)
    sparse = audit(fitted().fit(rows, y), sp.csr_matrix(rows), y)
    assert sparse.as_dict()["copies"] == found.as_dict()["copies"]


def test_many_rows_are_audited_in_blocks(monkeypatch):
    monkeypatch.setattr(audited, "MOST_ROWS", 40)
    found = audit(fitted().fit(COUNTS, SICK), COUNTS, SICK, groups=STUDY)
    assert "3 blocks of about 30 rows, each by itself" in found.data["machine"]
    block = found.rows.blocks[0]
    kept = np.setdiff1d(block.rows, np.flatnonzero(STUDY == 2))
    asked = np.intersect1d(block.rows, np.flatnonzero(STUDY == 2))
    alone = fitted().fit(COUNTS[kept], SICK[kept]).decision_function(COUNTS[asked])
    np.testing.assert_allclose(found.rows.left_out[asked, 0], alone, atol=1e-6)
    assert np.isfinite(found.groups.worth).all()


def test_features_with_few_columns_need_no_matrix(monkeypatch):
    settings = {"normalize": "l1", "alpha": 0.3, "precision": "float64", "random_state": 0}
    model = HistogramClassifier("hellinger", class_weight="balanced", **settings).fit(COUNTS, SICK)
    found = audit(model, COUNTS, SICK, groups=STUDY)
    assert found.rows.is_own
    assert not found.rows.blocks[0].values.is_matrix
    assert found.data["machine"] == "that of the model"


def test_rows_of_very_large_numbers_are_scaled_as_the_model_scales_them():
    settings = EXACT | {"normalize": None, "gamma": "auto"}
    large = HistogramClassifier("minmax+chi2", **settings).fit(COUNTS * 2.0**30, SICK)
    assert audit(large, COUNTS * 2.0**30, SICK).rows.is_own


def test_machines_of_another_loss_are_audited_by_ridge_with_their_kernel():
    model = HistogramClassifier("chi2", loss="logistic", normalize="l1", random_state=0).fit(COUNTS, SICK)
    found = audit(model, COUNTS, SICK)
    assert found.data["machine"] == "ridge with the kernel of the model, on these rows"
    assert line(found, "counts", "counts").is_clear


def test_groups_that_are_nested_in_labels_are_told():
    nested = 2 * (np.arange(N) % 10) + SICK
    found = audit(fitted().fit(COUNTS, SICK), COUNTS, SICK, groups=nested)
    assert any("nested in labels" in note and "cannot be permuted" in note for note in found.notes)
    assert not [line for line in found.shortcuts if (line.kind, line.name) == ("left", "group")]
    assert found.groups.measure == "accuracy"
    same = audit(fitted().fit(COUNTS, SICK), COUNTS, SICK, groups=np.where(SICK, "a", "b"))
    assert any("2 classes with rows in one group only, such as False" in note for note in same.notes)


def test_the_page_and_json_show_everything(found, tmp_path):
    page = Page(found.to_html())
    assert "What the score may rest on" in found.to_html()
    assert "Who helps whom" in found.to_html()
    assert page is not None
    shown = found.as_dict()
    assert json.loads(json.dumps(shown)) == shown
    assert len(shown["shortcuts"]) == len(found.shortcuts)
    assert shown["groups"]["names"] == [str(g) for g in range(STUDIES)]
    assert set(shown["labels"]["doubtful"][0]) == {"row", "name", "label", "looks_like", "p_value", "rate"}
    assert "rests on" in repr(found)
    assert found.save(tmp_path / "audit.html").exists()


def test_no_error_of_0_is_written_and_no_label_that_fits_is_listed():
    rows = sampled(2 * np.outer(SICK, np.linspace(-1, 1, BINS)))
    rows[SICK] *= 4  # totals tell every label, and no part of the rows another score
    told = audit(fitted().fit(rows, SICK), rows, SICK, groups=STUDY)
    assert line(told, "alone", "totals").told == ("1.000", "")
    assert "± 0.000" not in repr(told)
    found = {section.title: section for section in told.sections()}["Labels that look wrong"]
    assert (told.doubtful.p_values > 0.9).all()
    assert found.tables == ()


def test_bad_input_is_refused():
    model = fitted().fit(COUNTS, SICK)
    with pytest.raises(DataError, match="one class only: all labels are True"):
        audit(model, COUNTS[SICK], SICK[SICK])
    with pytest.raises(DataError, match="all rows are of one group, 7, so none can be left out"):
        audit(model, COUNTS, SICK, groups=np.full(N, 7))
    with pytest.raises(DataError, match="groups"):
        audit(model, COUNTS, SICK, groups=STUDY[:-1])
    with pytest.raises(DataError, match="too few"):
        audit(model, COUNTS[:3], np.array([True, False, True]))
    with pytest.raises(InputError, match="fitted HistogramClassifier"):
        audit(LogisticRegression(), COUNTS, SICK)
    with pytest.raises(NotFittedError):
        audit(HistogramClassifier(), COUNTS, SICK)
    both = np.stack([SICK, ~SICK], axis=1).astype(int)
    several = HistogramClassifier("chi2", alpha=1.0, random_state=0).fit(COUNTS, both)
    with pytest.raises(DataError, match="one label for each row"):
        audit(several, COUNTS, both)
    assert chimap.audit is audit


def test_a_fit_tells_totals_and_groups_that_tell_the_label():
    deep = RNG.random(120) < 0.5
    counts = RNG.poisson(np.where(deep, 30.0, 20.0)[:, None] * PROFILE / PROFILE.sum())
    found = shortcuts_at_fit(ArraySource(counts, deep), deep, True, None)
    assert "totals alone" in [line.words for line in found]
    assert shortcuts_at_fit(ArraySource(COUNTS, SICK), SICK, True, STUDY) == ()
    study = np.where(RNG.random(N) < 0.9, SICK, ~SICK)
    assert [line.words for line in shortcuts_at_fit(ArraySource(COUNTS, SICK), SICK, True, study)] == ["group alone"]
    patients = 2 * np.arange(N) // 3 * 2 + SICK  # each has one label
    assert shortcuts_at_fit(ArraySource(COUNTS, SICK), SICK, True, patients) == ()
    assert shortcuts_at_fit(ArraySource(COUNTS[:30], SICK[:30]), SICK[:30], True, None) == ()


def test_a_fit_in_python_warns_of_groups_that_get_most_of_the_way():
    study = np.where(np.arange(N) % 40 > 0, SICK, ~SICK)
    (told,) = doubts_of_study(ArraySource(COUNTS, SICK), SICK, True, study)
    assert re.fullmatch(r"array: labels are told by group alone 0\.9\d\d ± 0\.\d\d\d .*; see chimap audit", str(told))
    patients = np.arange(N) // 15 * 2 + SICK  # each has one label
    mixed = np.where(np.arange(N) % 5 > 0, SICK, ~SICK)
    for groups in (patients, mixed, STUDY):
        assert not [*doubts_of_study(ArraySource(COUNTS, SICK), SICK, True, groups)]
    names = np.where(SICK, "sick", "well")
    with pytest.warns(DataWarning, match="labels are told by group alone"):
        HistogramClassifier(random_state=0).fit(COUNTS, names, groups=study)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        HistogramClassifier("chi2", normalize="l1", random_state=0).fit(COUNTS, names, groups=study)
        HistogramClassifier(random_state=0).fit_source(ArraySource(COUNTS, SICK), groups=study)
    assert not [each for each in said if "labels are told" in str(each.message)]
