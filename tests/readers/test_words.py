"""Words, neighbours and hashes of texts, against those of scikit-learn, within the memory that is allowed."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

import chimap
from chimap import HistogramClassifier
from chimap._validation import DataError
from chimap.readers import MorganCounts, WordCounts, open_source
from chimap.readers.words import tokens_in

RNG = np.random.default_rng(0)
WORDS = [f"{a}{b}" for a in ("ba", "do", "ki", "lu", "me") for b in ("ra", "sto", "tin", "ve")]
TEXTS = [" ".join(RNG.choice(WORDS, RNG.integers(3, 12))).capitalize() + "." for _ in range(60)]
SMILES = ["CC(=O)Nc1ccc(O)cc1", "CCO", "c1ccccc1", "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "CCN(CC)CC", "OCC"] * 4


def counts_of(reading, texts):
    source = reading.source(texts)
    return source.take(np.arange(len(texts))).toarray(), source.column_names


@pytest.mark.parametrize("ngrams", [(1, 1), (1, 2), (2, 2), (2, 4), (3, 3)])
@pytest.mark.parametrize("min_count", [1, 2, 3])
def test_neighbours_among_words_are_those_of_scikit_learn(ngrams, min_count):
    twice = [*TEXTS, *TEXTS[:40], *TEXTS[:9]]
    theirs = CountVectorizer(ngram_range=ngrams, min_df=min_count)
    expected = theirs.fit_transform(twice).toarray()
    found, names = counts_of(WordCounts(ngrams=ngrams, min_count=min_count), twice)
    assert [*names] == theirs.get_feature_names_out().tolist()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("ngrams", [None, (1, 1), (2, 5)])
def test_symbols_are_the_characters_of_scikit_learn(ngrams):
    theirs = CountVectorizer(analyzer="char", lowercase=False, ngram_range=ngrams or (1, 3), min_df=2)
    expected = theirs.fit_transform(SMILES).toarray()
    found, names = counts_of(WordCounts(tokens="symbols", ngrams=ngrams), SMILES)
    assert [*names] == theirs.get_feature_names_out().tolist()
    np.testing.assert_array_equal(found, expected)


def test_neighbours_do_not_reach_over_blanks_between_characters():
    assert tokens_in("ab c", "characters", (1, 3)) == ["a", "b", "ab", "c"]
    assert tokens_in("Ab c-", "symbols", (2, 2)) == ["Ab", "c-"]
    assert tokens_in("a", "words", (1, 2)) == tokens_in("", "symbols") == []


@pytest.mark.parametrize("n_buckets", [2**6, 2**12])
def test_hashes_are_those_of_scikit_learn(n_buckets):
    theirs = HashingVectorizer(n_features=n_buckets, alternate_sign=False, norm=None, ngram_range=(1, 2))
    expected = theirs.transform(TEXTS).toarray()
    found, names = counts_of(WordCounts(ngrams=(1, 2), n_buckets=n_buckets, min_count=3), TEXTS)
    kept = np.flatnonzero((expected > 0).sum(axis=0) >= 3)
    assert sorted(int(name.split()[1]) for name in names) == kept.tolist()
    np.testing.assert_array_equal(found, expected[:, [int(name.split()[1]) for name in names]])


def budget_of(n_words, texts):
    """Bytes that hold so many words of these texts while they are counted, and not one more."""
    words = [*dict.fromkeys(word for text in texts for word in tokens_in(text))][: n_words + 1]
    return 2 * sum(len(word) + 49 + 80 for word in words)


def test_words_of_a_single_text_are_forgotten_first(monkeypatch):
    rare = [f"rare{i} " + text for i, text in enumerate(TEXTS)]
    full, tight = WordCounts(), WordCounts(memory=budget_of(60, rare))
    assert tight.source(rare).column_names == full.source(rare).column_names
    assert full.source(rare).notes == ()
    [note] = tight.source(rare).notes
    assert re.search(r"words of a single text were forgotten .* within .* Allow more memory", note)


def test_where_that_is_not_enough_words_are_hashed():
    reading = WordCounts(memory=budget_of(10, TEXTS))
    source = reading.source(TEXTS)
    [note] = source.notes
    told = re.search(
        r"more than (\d+) different words do not fit .* hashed to ([\d,]+) buckets, of which (\d+) are filled", note
    )
    assert int(told[1]) >= 10
    assert int(told[2].replace(",", "")) == source.reading.n_buckets
    assert int(told[3]) == len({word for text in TEXTS for word in tokens_in(text)})
    expected = CountVectorizer(min_df=2).fit_transform(TEXTS).toarray()
    found = source.take(np.arange(60)).toarray()
    np.testing.assert_array_equal(found @ found.T, expected @ expected.T)  # no two of these words share a bucket


@pytest.mark.parametrize("megabytes", [1, 2])
def test_counting_stays_within_the_memory(megabytes):
    """Ten times as many words as fit, each in two texts."""
    n_words = megabytes * 80_000

    def fields():
        for start in range(0, n_words, 1000):
            yield [" ".join(f"w{start + i}x" for i in range(2000))]

    reading = WordCounts(memory=2**20 * megabytes)
    next(iter(fields()))
    tracemalloc.start()
    learned = reading.learned(fields(), "texts")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert learned.n_buckets is not None
    named = sum(len(name) + 49 + 8 for name in learned.vocabulary)
    assert peak < 2**20 * megabytes + 4 * named + 8 * 2**20  # besides: the buckets and their names, and one batch


@pytest.mark.parametrize(
    "settings",
    [{"ngrams": (1, 2), "min_count": 3}, {"tokens": "symbols"}, {"n_buckets": 256, "ngrams": (2, 2)}],
    ids=str,
)
def test_a_model_counts_new_texts_as_those_that_it_was_fitted_on(settings, tmp_path):
    labels = ["bara" in text.lower() for text in TEXTS]
    source = open_source(TEXTS, labels, reading=WordCounts(**settings))
    model = HistogramClassifier("linear", alpha=0.1).fit_source(source)
    model.save(tmp_path / "words.model")
    loaded = chimap.load(tmp_path / "words.model")
    assert loaded.reading_ == source.reading
    new = [*TEXTS[5:9], "Of words that nobody knows", TEXTS[0].upper()]
    again = open_source(new, like=loaded)
    expected = source.reading.source(new)
    assert again.column_names == source.column_names
    np.testing.assert_array_equal(again.take(np.arange(6)).toarray(), expected.take(np.arange(6)).toarray())
    np.testing.assert_allclose(loaded.decision_function(new)[:4], model.decision_function(TEXTS)[5:9])


def test_settings_of_a_source():
    source = open_source(TEXTS, ngrams=(1, 2), min_count=4)
    expected, names = counts_of(WordCounts(ngrams=(1, 2), min_count=4), TEXTS)
    assert source.column_names == names
    np.testing.assert_array_equal(source.take(np.arange(60)).toarray(), expected)
    named = open_source(TEXTS, reading=WordCounts("review"), tokens="characters", ngrams=(2, 3))
    assert named.reading == WordCounts("review", named.column_names, tokens="characters", ngrams=(2, 3))
    model = HistogramClassifier("linear", alpha=1.0).fit_source(
        open_source(TEXTS, [t < "L" for t in TEXTS], min_count=4)
    )
    with pytest.raises(ValueError, match="ngrams: the model of like= keeps how it counts words"):
        open_source(TEXTS, like=model, ngrams=(1, 2))
    with pytest.raises(ValueError, match="ngrams and min_count: for texts, but MorganCounts reads none"):
        open_source(SMILES, reading=MorganCounts("smiles"), ngrams=(1, 2), min_count=1)


def test_pairs_that_a_fit_may_do_without_follow_the_words():
    found, names = counts_of(WordCounts(ngrams="auto"), TEXTS)
    for ngrams, part in (((1, 1), slice(None, len(WORDS))), ((2, 2), slice(len(WORDS), None))):
        expected, of_part = counts_of(WordCounts(ngrams=ngrams), TEXTS)
        assert names[part] == of_part
        np.testing.assert_array_equal(found[:, part], expected)
    for wrong in ({"tokens": "characters"}, {"n_buckets": 64}):
        with pytest.raises(ValueError, match="'auto' is for words that are not hashed"):
            WordCounts(ngrams="auto", **wrong)


def test_common_pairs_are_counted_in_little_memory():
    texts = [f"of the {' '.join(f'w{i}x{j}' for j in range(20))}" for i in range(400)]
    reading = WordCounts(ngrams="auto", memory=2**20)
    tracemalloc.start()
    learned = reading.learned(iter([texts]), "texts")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert learned.settled(True).vocabulary[-1] == "of the"
    assert any("rare ones may be missing" in note for note in learned.notes)
    assert peak < 2**21


def test_the_most_common_of_too_many_words_are_kept_and_told():
    source = WordCounts(most_words=5).source(TEXTS)
    rows_with = (CountVectorizer().fit_transform(TEXTS).toarray() > 0).sum(axis=0)
    assert len(source.column_names) == 5
    [note] = source.notes
    assert (
        f"of {(rows_with > 1).sum()} words, the 5 that are in the most texts, in {np.sort(rows_with)[-5]} or more"
        in note
    )


@pytest.mark.parametrize("ngrams", [(2, 1), (0, 1), (1,), (1, 2, 3), "1,2", 2, (1.0, 2), (True, 2), (-1, 1)])
def test_neighbours_that_there_are_not(ngrams):
    with pytest.raises(ValueError, match=r"ngrams must be the fewest and the most neighbours, two whole numbers"):
        WordCounts(ngrams=ngrams)


@pytest.mark.parametrize("name", ["min_count", "most_words", "n_buckets"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "many"])
def test_numbers_that_there_are_not(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a positive whole number"):
        WordCounts(**{name: value})


def test_no_words_at_all_and_none_that_is_common_enough():
    with pytest.raises(DataError, match=r"no word is in 61 texts or more; the most common, '\w+', is in \d+\."):
        WordCounts(min_count=61).source(TEXTS)
    with pytest.raises(DataError, match="no word is in 2 texts or more; there are no words at all"):
        WordCounts().source(["", "!", "- -"])
    with pytest.raises(DataError, match="no word is in 61 texts or more; the most common, 'bucket"):
        WordCounts(min_count=61, n_buckets=8).source(TEXTS[:3])
