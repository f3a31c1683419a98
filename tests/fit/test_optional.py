"""Pairs of words are counted where they predict texts that are left out better, and a model without them has none."""

from __future__ import annotations

import numpy as np
import pytest

import chimap
from chimap import HistogramClassifier, HistogramRegressor
from chimap.data.views import ChosenRows
from chimap.engines import Progress
from chimap.readers import WordCounts, open_source
from chimap.reports.comparison import compare

N = 240
RNG = np.random.default_rng(0)
WORDS = np.array(["red", "fox", "hen", "dog", "old", "new", "big", "sly"])
LABELS = np.arange(N) % 2


def texts_with(order_tells):
    """Texts of the same words each: their label is the order of two of them, or a word."""
    texts = []
    for label in LABELS:
        words = RNG.permutation(WORDS).tolist()
        if order_tells:
            words = [word for word in words if word not in ("not", "good")]
            told = ["not", "good"] if label else ["good", "not"]
            texts.append(" ".join([*words[:4], *told, *words[4:]]))
        else:
            texts.append(" ".join([*words, "cat" if label else "cow"]))
    return texts


class Told(Progress):
    """Keeps the notes of a fit."""

    def __init__(self):
        self.notes = []

    def note(self, text, *, matters=False):
        self.notes.append(text)


def fitted(texts, y=LABELS, model=None, **others):
    told = Told()
    source = open_source(texts, y.tolist(), ngrams="auto")
    model = model or HistogramClassifier("linear", alpha=0.1)
    return model.fit_source(source, told, **others), source, told.notes[0]


@pytest.mark.parametrize("order_tells", [True, False])
def test_pairs_are_counted_where_order_tells(order_tells, tmp_path):
    texts = texts_with(order_tells)
    model, source, note = fitted(texts)
    names = source.column_names
    assert source.n_optional == sum(" " in name for name in names) > 40
    kept = names if order_tells else names[: len(names) - source.n_optional]
    assert tuple(model.feature_names_in_) == kept
    assert note.startswith(f"pairs of words are {'' if order_tells else 'not '}counted: accuracy ")
    explicit = WordCounts(ngrams=(1, 2) if order_tells else (1, 1), vocabulary=kept)
    assert model.reading_ == explicit
    model.save(tmp_path / "words.model")
    loaded = chimap.load(tmp_path / "words.model")
    assert loaded.reading_ == explicit
    np.testing.assert_allclose(loaded.decision_function(texts), model.decision_function(source), atol=1e-6)


def test_targets_tasks_groups_and_weights():
    texts = texts_with(True)
    for y in (LABELS * 2.5, np.column_stack([LABELS, 1.0 - LABELS])):
        regressor = HistogramRegressor("linear", alpha=0.1) if y.ndim == 1 else None
        model, source, note = fitted(texts, y, regressor, sample_weight=1.0 + LABELS)
        assert model.n_features_in_ == source.n_features
        assert " counted: " in note
    for groups in (np.repeat(np.arange(N // 8), 8), np.arange(N) // (N // 2)):
        assert fitted(texts, groups=groups)[0].n_features_in_ == source.n_features


def test_too_few_texts_to_leave_any_out():
    model, source, note = fitted(texts_with(True)[:3], LABELS[:3])
    assert model.n_features_in_ == source.n_features - source.n_optional
    assert note.startswith("pairs of words are not counted, as no texts could be left out: n_samples = 3 are too few")


def test_a_comparison_has_the_columns_of_a_fit():
    source = open_source(texts_with(False), LABELS.tolist(), ngrams="auto")
    compared = compare(HistogramClassifier("linear", normalize=[None, "l1"], random_state=0), source)
    assert compared.data["bins"] == source.n_features - source.n_optional


def test_nothing_is_said_of_pairs_to_a_model_without_them(recwarn):
    model, source, _ = fitted(texts_with(False))
    recwarn.clear()
    model.predict(ChosenRows(source, np.arange(20), None))
    assert not recwarn.list
