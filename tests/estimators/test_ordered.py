"""Classes with an order in estimators: classes_, answers, sets, files, and where the order comes from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import chimap
from chimap import HistogramClassifier, HistogramRegressor
from chimap._errors import InputError
from chimap.cli.fit_settings import Settings
from chimap.cli.training import _decide
from chimap.selection.ordered import mean_steps, medians

ORDER = ["well", "mild", "severe", "fatal"]
RNG = np.random.default_rng(0)
PLACES = np.repeat(np.arange(4), 40)
RATES = np.linspace(1, 5, 4)[PLACES, None] * [1, 0.5, 0.2] + np.linspace(5, 1, 4)[PLACES, None] * [0.2, 0.5, 1]
X = RNG.poisson(RATES).astype(float)
Y = np.array(ORDER)[PLACES]
EXACT = {"kernel": "exp-chi2", "features": "exact", "random_state": 0}
MODEL = HistogramClassifier(ordered=ORDER, **EXACT).fit(X, Y)


def test_answers_are_medians_and_sets_are_intervals_in_the_order():
    assert MODEL.classes_.tolist() == ORDER
    p = MODEL.predict_proba(X)
    np.testing.assert_array_equal(MODEL.predict(X), np.array(ORDER)[medians(p)])
    assert (MODEL.predict(X) != np.array(ORDER)[p.argmax(axis=1)]).any()
    sets = MODEL.predict_set(X, 0.1)
    np.testing.assert_array_equal(MODEL._answers.structure.closed(sets), sets)
    assert (np.abs(np.diff(sets.astype(int), axis=1)).sum(axis=1) <= 2).all()
    assert (MODEL.predict_set(X, 0.1, class_conditional=True).sum(axis=1) > 0).all()


def test_names_do_not_matter_but_their_order_does():
    numbered = HistogramClassifier(ordered=[0, 1, 2, 3], **EXACT).fit(X, PLACES)
    np.testing.assert_allclose(numbered.predict_proba(X), MODEL.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(np.array(ORDER)[numbered.predict(X)], MODEL.predict(X))


@pytest.mark.parametrize(
    "form", ["categorical", "series", "column", "AnnData", "source", "Enum of polars", "column of polars"]
)
def test_an_order_of_the_labels_is_taken(form):
    ordered = pd.Categorical(Y, ORDER, ordered=True)
    settings = {"kernel": "chi2", "alpha": 1.0}
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(stage=ordered)
    if form == "categorical":
        given = X, ordered
    elif form == "series":
        given = frame[["a", "b", "c"]], frame["stage"]
    elif form == "column":
        given = frame, "stage"
    elif form == "AnnData":
        anndata = pytest.importorskip("anndata")
        given = anndata.AnnData(X, obs=frame[["stage"]].set_index(frame.index.astype(str))), "stage"
    elif form == "source":
        given = chimap.open_source(X), frame["stage"]
    else:
        pl = pytest.importorskip("polars")
        series = pl.Series("stage", Y, dtype=pl.Enum(ORDER))
        given = (
            (X, series) if form[0] == "E" else (pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(series), "stage")
        )
    assert HistogramClassifier(**settings).fit(*given).classes_.tolist() == ORDER


@pytest.mark.parametrize("ending", ["h5ad", "parquet"])
def test_files_bring_the_order_of_categories(ending, tmp_path):
    path = tmp_path / f"stages.{ending}"
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(stage=pd.Categorical(Y, ORDER, ordered=True))
    if ending == "h5ad":
        anndata = pytest.importorskip("anndata")
        anndata.AnnData(X, obs=frame[["stage"]].set_index(frame.index.astype(str))).write_h5ad(path)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    source = chimap.open_source(path, labels="stage")
    assert HistogramClassifier("chi2", alpha=1.0).fit_source(source).classes_.tolist() == ORDER


def test_a_category_without_an_order_is_nominal():
    unordered = pd.Series(pd.Categorical(Y, ORDER))
    assert HistogramClassifier("chi2", alpha=1.0).fit(X, unordered).classes_.tolist() == sorted(ORDER)


def test_files_compiled_models_and_batches_answer_the_same(tmp_path):
    MODEL.save(tmp_path / "a.model")
    again = chimap.load(tmp_path / "a.model")
    np.testing.assert_array_equal(again.predict(X), MODEL.predict(X))
    np.testing.assert_array_equal(again.predict_set(X, 0.2), MODEL.predict_set(X, 0.2))
    additive = HistogramClassifier("chi2", ordered=ORDER, alpha=1.0).fit(X, Y)
    np.testing.assert_array_equal(additive.compile(1e-5).predict(X), additive.predict(X))
    batches = HistogramClassifier("chi2", ordered=ORDER, alpha=1.0)
    for rows in (slice(0, None, 2), slice(1, None, 2)):
        batches.partial_fit(X[rows], Y[rows], classes=np.unique(Y))
    assert batches.classes_.tolist() == ORDER
    assert (batches.predict(X) == additive.predict(X)).mean() > 0.9


def test_weights_of_classes_are_those_of_their_names():
    weights = {"fatal": 20.0, "well": 0.5}
    model = HistogramClassifier("chi2", ordered=ORDER, alpha=1.0, class_weight=weights).fit(X, Y)
    assert model.class_weight_.tolist() == [0.5, 1, 1, 20]


def test_the_report_measures_steps():
    found = chimap.report(MODEL, X, Y, insight=False)
    metrics, predicted = found.metrics, MODEL.predict(X)
    steps = np.abs([ORDER.index(a) - ORDER.index(b) for a, b in zip(predicted, Y, strict=True)])
    assert metrics.classes == tuple(ORDER)
    assert metrics.as_dict()["mean_absolute_error"] == pytest.approx(steps.mean())
    assert mean_steps(metrics.confusion) == pytest.approx(steps.mean())
    assert 0 < metrics.as_dict()["weighted_kappa"] < 1
    assert {"mean absolute error", "weighted kappa"} <= found.summary().keys()
    assert "Mean absolute error" in [name for name, _, _ in found.sections()[0].facts]
    assert "mean_absolute_error" not in chimap.reports.classification_metrics(Y, predicted).as_dict()


@pytest.mark.parametrize("scoring", [None, "weighted_kappa", "balanced_accuracy", "roc_auc_ovr"])
def test_machines_are_chosen_by_the_score_that_is_named(scoring):
    model = HistogramClassifier(ordered=ORDER, scoring=scoring, **EXACT).fit(X, Y)
    assert model.selection_.measure == (scoring or "neg_mean_absolute_error")
    assert np.isfinite(model.selection_.means).any()


@pytest.mark.parametrize(
    ("ordered", "y", "said"),
    [
        (ORDER[:3], Y, "lacks the class 'fatal'"),
        ([*ORDER, "mild"], Y, "'mild' twice"),
        (ORDER, np.column_stack([PLACES > 1, PLACES > 2]), "one column of classes"),
    ],
)
def test_bad_orders_are_refused(ordered, y, said):
    with pytest.raises(InputError, match=said):
        HistogramClassifier("chi2", ordered=ordered).fit(X, y)


def test_scores_of_related_classes_need_the_relation():
    with pytest.raises(InputError, match="nothing says how: give ordered too"):
        HistogramClassifier("chi2", scoring="weighted_kappa").fit(X, Y)
    with pytest.raises(InputError, match="give label_tree too"):
        HistogramRegressor("chi2", scoring="neg_mean_tree_distance").fit(X, PLACES)


def test_flags_give_the_order_and_refuse_one_for_numbers():
    asked = Settings(ordered="well, mild,severe,fatal")
    assert asked.weighing("classify", Y)["ordered"] == ORDER
    assert _decide(np.arange(50.0), "rows", asked)[0] == "classify"
    with pytest.raises(InputError, match="--ordered is for classes"):
        asked.weighing("regress", PLACES)
