"""Rows unlike those of a fit are said with numbers, whatever the normalisation; others, and unseen totals, are not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier, load, report
from chimap.data import ArraySource
from chimap.data.doubts import DataWarning
from chimap.data.units import discrimination
from chimap.normalizations import CATALOGUE

pd = pytest.importorskip("pandas")

NORMALIZATIONS = [None, *CATALOGUE]
rng = np.random.default_rng(0)
Y = np.arange(240) % 2


def species(depth, y=Y):
    """Counts of 60 species, a third of which are there, at some depth; four of them tell the classes."""
    profile = rng.lognormal(0, 1.5, (y.size, 60)) * (rng.random((y.size, 60)) < 0.33)
    profile[:, :4] = 3 * (1 + 4 * (y[:, None] == np.arange(4) % 2))
    totals = depth * rng.uniform(0.7, 1.4, (y.size, 1))
    return rng.poisson(totals * profile / profile.sum(axis=1, keepdims=True)).astype(np.float32)


X, FRESH = species(2000), species(2000)
THINNED = rng.binomial(FRESH.astype(int), 0.1).astype(np.float32)
NEW = {
    "fresh": FRESH,
    "thinned": THINNED,
    "scaled": 10 * FRESH,
    "mostly lost": FRESH * (rng.random(FRESH.shape) < 0.2),
    "filled": np.maximum(FRESH, rng.poisson(5, FRESH.shape)),
    "half of the bins": FRESH * (np.arange(60) % 2),
}
TOTALS, FILLED = "they sum to ", "they fill "
SAID = {
    "fresh": (),
    "thinned": (TOTALS,),
    "scaled": (TOTALS,),
    "mostly lost": (TOTALS, FILLED, "of the training mass"),
    "filled": (FILLED,),
    "half of the bins": (FILLED, "of the training mass"),
}


def said(ask):
    """The doubts that are said while a function runs."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask()
    return [str(warning.message) for warning in caught if issubclass(warning.category, DataWarning)]


@pytest.fixture(scope="module")
def fitted():
    return {
        each: HistogramClassifier("chi2", normalize=each, alpha=1.0, random_state=0).fit(X, Y)
        for each in NORMALIZATIONS
    }


@pytest.mark.parametrize("new", NEW)
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_what_is_said_of_new_rows(fitted, normalize, new):
    model, rows = fitted[normalize], NEW[new]
    words = [word for word in SAID[new] if word != TOTALS or not ignores_totals(normalize)]
    for ask in (lambda: model.predict(rows), lambda: model.predict_source(ArraySource(sp.csr_matrix(rows)))):
        notes = said(ask)
        assert len(notes) == bool(words), notes
        assert all(word in notes[0] for word in words)
        assert not notes or ("normalize='l1'" in notes[0]) == (TOTALS in notes[0])
        assert not ignores_totals(normalize) or TOTALS not in str(notes)


def ignores_totals(normalize):
    return normalize is not None and CATALOGUE[normalize].ignores_totals


@pytest.mark.parametrize("normalize", CATALOGUE)
def test_what_ignores_totals_gives_the_same_for_other_totals(fitted, normalize):
    found = [fitted[normalize].normalization_(rows.astype(float), [np.arange(60)]) for rows in (FRESH, 10 * FRESH)]
    assert np.allclose(*found, rtol=1e-9) == ignores_totals(normalize)


def test_a_note_has_both_numbers(fitted):
    [note] = said(lambda: fitted[None].predict(NEW["mostly lost"]))
    for rows in (X, NEW["mostly lost"]):
        assert f"{np.median((rows > 0).sum(axis=1)):g}" in note
        assert f"{np.median(rows.sum(axis=1)):.3g}" in note
    assert "Their ranks may hold; classes, probabilities and values may not." in note


def test_shares_in_place_of_counts_are_said_to_machines_that_see_totals(fitted):
    shares = FRESH / FRESH.sum(axis=1, keepdims=True)
    for normalize, model in fitted.items():
        notes = said(lambda model=model: model.predict(shares))
        assert len(notes) == (not ignores_totals(normalize))
        assert all("fractions, but the model was fitted on whole numbers" in note for note in notes)
    [note] = said(lambda: fitted["log-cpm"].predict(np.log1p(FRESH)))  # logarithms have other shares
    assert "fractions" in note


def test_rows_of_all_chunks_are_looked_at(fitted):
    rows = np.vstack([FRESH, *[THINNED] * 40])
    model = fitted["log1p"]
    assert rows.shape[0] > model.fitted.rows_at_once
    assert "they sum to" in said(lambda: model.predict(rows))[0]


def test_notes_are_kept_in_the_file_in_tables_and_for_covariates(fitted, tmp_path):
    fitted[None].save(tmp_path / "my.model")
    old = fitted[None].units_
    for model in (load(tmp_path / "my.model"), fitted[None].compile()):
        assert (model.units_, model.mass_) == (old, fitted[None].mass_)
        assert len(said(lambda model=model: model.predict(NEW["filled"]))) == 1
    frame = pd.DataFrame(X, columns=[f"s{i}" for i in range(60)]).assign(age=Y + rng.normal(0, 0.1, Y.size))
    model = HistogramClassifier("chi2", covariates="age", random_state=0).fit(frame, Y)
    assert model.fitted.recipe.n_covariates
    assert said(lambda: model.predict(frame)) == []
    assert FILLED in said(lambda: model.predict(frame.assign(**dict.fromkeys(frame.columns[:60], 7.0))))[0]


def test_an_evaluation_shows_the_note(fitted):
    with pytest.warns(DataWarning, match="unlike"):
        found = report(fitted[None], NEW["filled"], Y, insight=False)
    assert FILLED in found.data["unlike the training rows"]
    assert "unlike the training rows" not in report(fitted[None], FRESH, Y, insight=False).data


# --- labels that follow from totals


DEPTHS = np.vstack([species(90, Y[:120]), species(9000, Y[:120])])
SCALED = np.vstack([X[:120], 100 * X[120:]])
DEEP = np.repeat(["shallow", "deep"], 120)


@pytest.mark.parametrize("normalize", [None, "log1p", "log-cpm"])
def test_totals_that_tell_the_label_are_said_with_the_score_of_the_machine(normalize):
    model = HistogramClassifier("chi2", normalize=normalize, random_state=0)
    [note] = said(lambda: model.fit(DEPTHS[:, 4:], DEEP))
    what = "numbers of filled bins" if ignores_totals(normalize) else "totals of rows"
    assert f"the {what} alone tell the classes, with an area under the ROC curve of " in note
    assert "the machine: generalised cross-validation" in note
    assert ("normalize='l1'" in note) == (not ignores_totals(normalize))
    assert len(said(lambda: model.fit(SCALED[:, 4:], DEEP))) == (not ignores_totals(normalize))


def test_a_race_is_named_beside_totals():
    model = HistogramClassifier("chi2", normalize=[None, "sqrt"], bin_weights=None, random_state=0)
    [note] = said(lambda: model.fit(DEPTHS[:, 4:], DEEP))
    assert f"(the machine: ROC AUC {model.race_.trials[0].score:.3f} in its race)" in note


def test_totals_that_tell_little_are_not_said():
    three = np.repeat([0, 1, 2], 80)
    values = three * 10.0 + rng.random(240)
    assert discrimination(values, three) == 1
    pairs = [(values[three != k], three[three != k]) for k in range(3)]
    noise = rng.random(240)
    assert discrimination(noise, three) == pytest.approx(
        np.mean([discrimination(noise[three != k], three[three != k]) for k in range(3)])
    )
    assert all(discrimination(*pair) == 1 for pair in pairs)
    assert discrimination(values, np.column_stack([three, three])) is None
    assert discrimination(values[:30], three[:30]) is None
