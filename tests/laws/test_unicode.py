"""A text is the same in every form of Unicode: as a word, a label, an id, a group and the name of a bin."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from chimap import HistogramClassifier, open_source
from chimap.readers import WordCounts
from chimap.readers.words import words_in

from .test_names import COUNTS, FRAME, IDS, KINDS, LABELS, NAMES, csv, parquet, polars, rows_of

CAFE = unicodedata.normalize("NFC", "café")
DECOMPOSED = unicodedata.normalize("NFD", CAFE)
KINDS_OF_TABLES = {"pandas": lambda frame, folder: frame, "polars": polars, "CSV": csv, "Parquet": parquet}
MIXED = np.where(np.arange(40) % 2, CAFE, DECOMPOSED)
every_form = pytest.mark.parametrize("form", ["NFC", "NFD"])


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_labels_and_groups(kind, tmp_path):
    frame = FRAME.assign(species=np.where(np.arange(40) < 9, "tea", MIXED), plot=MIXED)
    source = open_source(KINDS_OF_TABLES[kind](frame, tmp_path), labels="species", aside="plot")
    assert {*source.labels().tolist()} == {"tea", CAFE}
    assert {*source.column("plot").tolist()} == {CAFE}


def test_labels_beside_rows(tmp_path):
    assert {*open_source(COUNTS, labels=MIXED).labels()} == {CAFE}
    assert {*open_source(COUNTS, labels=MIXED.astype(object)).labels()} == {CAFE}
    np.save(tmp_path / "y.npy", MIXED)
    assert {*open_source(COUNTS, labels=tmp_path / "y.npy").labels()} == {CAFE}
    model = HistogramClassifier("chi2", random_state=0).fit(COUNTS, np.where(LABELS == "more", MIXED, "tea"))
    assert model.classes_.tolist() == [CAFE, "tea"]
    assert model.score(COUNTS, np.where(LABELS == "more", DECOMPOSED, "tea")) > 0.9


@every_form
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("10x", "pandas")])
def test_names_of_bins(kind, form, tmp_path):
    """A model of one form takes columns of the other, wherever they come from."""
    other = unicodedata.normalize({"NFC": "NFD", "NFD": "NFC"}[form], CAFE)
    fitted, asked = (FRAME.rename(columns={"bee": name}) for name in (unicodedata.normalize(form, CAFE), other))
    model = HistogramClassifier("chi2", random_state=0).fit_source(open_source(fitted, LABELS))
    assert model.feature_names_in_.tolist() == [CAFE if name == "bee" else name for name in NAMES]
    data = KINDS[kind].make(asked[asked.columns[::-1]], tmp_path)
    source = open_source(data, like=model)
    assert source.column_names == tuple(model.feature_names_in_)
    np.testing.assert_array_equal(rows_of(source), COUNTS)


@every_form
@pytest.mark.parametrize("convert", [lambda frame: frame, lambda frame: polars(frame, None)], ids=["pandas", "polars"])
def test_names_of_frames(convert, form):
    fitted, asked = (convert(FRAME.rename(columns={"bee": name})) for name in (unicodedata.normalize(form, CAFE), CAFE))
    model = HistogramClassifier("chi2", random_state=0).fit(fitted, LABELS)
    np.testing.assert_array_equal(model.predict(asked), model.predict(fitted))


@every_form
def test_ids_are_joined(form, tmp_path):
    names = [unicodedata.normalize(form, f"{CAFE} {i}") for i in range(40)]
    text = "".join(f"{unicodedata.normalize('NFC', name)},{label}\n" for name, label in zip(names, LABELS, strict=True))
    (tmp_path / "meta.csv").write_text("id,kind\n" + text, encoding="utf-8")
    source = open_source(FRAME.set_axis(names, axis=0), labels=f"{tmp_path}/meta.csv::kind")
    np.testing.assert_array_equal(source.labels(), LABELS)
    assert source.n_left_out == 0
    assert len(IDS) == source.n_rows


TEXTS = {
    "Hindi": ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
    "Thai": ("ภาษาไทย สวัสดี", ["ภาษาไทย", "สวัสดี"]),
    "Arabic with vowels": ("مُحَمَّد كتب", ["مُحَمَّد", "كتب"]),
    "Hebrew with points": ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
    "Persian with joiners": ("می‌خواهم کتاب", ["می‌خواهم", "کتاب"]),
    "decomposed": (f"{DECOMPOSED} bar", [CAFE, "bar"]),
}


@pytest.mark.parametrize("language", TEXTS)
def test_words_keep_their_marks(language):
    text, words = TEXTS[language]
    assert words_in(text) == [unicodedata.normalize("NFC", word) for word in words]
    source = WordCounts(min_count=1).source([unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text)])
    assert source.n_features == len(words)
    np.testing.assert_array_equal(rows_of(source), 1)


def test_words_are_those_of_scikit_learn_elsewhere():
    rng = np.random.default_rng(0)
    letters = np.array(list("abcXYZ019_ .,;!?'-\n\tüßñ"))
    texts = ["".join(rng.choice(letters, 60)) for _ in range(200)]
    analyse = CountVectorizer().build_analyzer()
    assert [words_in(text) for text in texts] == [analyse(text) for text in texts]
    source = WordCounts().source(texts)
    counted = CountVectorizer(vocabulary=source.column_names).transform(texts)
    np.testing.assert_array_equal(rows_of(source), counted.toarray())


CHINESE = ["我爱北京天安门", "北京是中国的首都", "天安门在北京", "中国的首都是北京"]
SENTENCES = [f"{CHINESE[i % 4]}{chr(0x4E00 + i)}" for i in range(20)]


def test_texts_without_blanks_are_told(tmp_path):
    source = WordCounts().source([*SENTENCES, "the same", "the same"])
    assert len(source.notes) == 1
    assert "20 of 22 texts have no word that others have" in source.notes[0]
    assert "tokens='characters'" in source.notes[0]
    with pytest.raises(ValueError, match="tokens='characters'"):
        WordCounts().source(SENTENCES)
    assert WordCounts().source(["the red fox", "a red hen"] * 10).notes == ()


def test_characters_and_pairs_are_counted():
    source = WordCounts(tokens="characters").source(CHINESE)
    assert source.notes == ()
    assert {"北", "京", "北京", "天安"} <= {*source.column_names}
    column = source.column_names.index("北京")
    np.testing.assert_array_equal(rows_of(source)[:, column], [1, 1, 1, 1])
    with pytest.raises(ValueError, match="tokens must be one of"):
        WordCounts(tokens="letters")
