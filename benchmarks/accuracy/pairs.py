"""Pairs of words beside words, with ngrams="auto" and without: sentences of opinion, scored on things that are new.

The benchmark reads a file of Hutto and Gilbert, VADER: a parsimonious rule-based model for sentiment analysis (2014): on
each line an id such as 12_3, the third sentence about thing 12, the mean of twenty ratings, and the sentence, with tabs
between them. It does not fetch it; the source distribution of vaderSentiment 3.2.1 holds such files of reviews of
products, editorials and tweets. Sentences rated beyond .3 are positive or negative. A third of the things is held out.
Linear ridge on tf-idf rows learns from words, from words and pairs, and from what ngrams="auto" takes.

python -m benchmarks.accuracy.pairs --data hutto_ICWSM_2014/amazonReviewSnippets_GroundTruth.txt
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from chimap import HistogramClassifier, open_source
from chimap.readers import WordCounts

LEAST_RATING = 0.3
NGRAMS = {"words": (1, 1), "words and pairs": (1, 2), "auto": "auto"}


def sentences(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sentences that are rated clearly, whether they are positive, and what each is about."""
    lines = [line.rstrip("\n").split("\t") for line in path.read_text(encoding="latin-1").splitlines()]
    rated = [(float(rating), text, int(name.split("_")[0])) for name, rating, text in lines]
    clear = [each for each in rated if abs(each[0]) > LEAST_RATING]
    ratings, texts, things = (np.array(column) for column in zip(*clear, strict=True))
    return texts, ratings > 0, things


def score(texts: np.ndarray, y: np.ndarray, things: np.ndarray, test: np.ndarray, ngrams: object) -> float:
    """Return the accuracy on the test rows."""
    source = open_source(texts[~test].tolist(), y[~test].astype(int), reading=WordCounts(ngrams=ngrams))
    model = HistogramClassifier("linear", normalize="tf-idf", random_state=0)
    model.fit_source(source, groups=things[~test])
    return float((model.predict(texts[test].tolist()) == y[test]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a file of rated sentences")
    parser.add_argument("--seeds", type=int, default=3, help="so many draws of the things that are held out")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    texts, y, things = sentences(options.data)
    scores = []
    for seed in range(options.seeds):
        units = np.unique(things)
        test = np.isin(things, np.random.default_rng(seed).permutation(units)[: units.size // 3])
        scores.append([score(texts, y, things, test, ngrams) for ngrams in NGRAMS.values()])
        told = ", ".join(f"{name} {value:.4f}" for name, value in zip(NGRAMS, scores[-1], strict=True))
        print(f"seed {seed}, {np.sum(~test):,} rows, {test.sum():,} test rows: {told}", flush=True)
    print("mean: " + ", ".join(f"{name} {value:.4f}" for name, value in zip(NGRAMS, np.mean(scores, 0), strict=True)))


if __name__ == "__main__":
    main()
