"""Text: documents as counts of words

A document is a row of many thousand bins, one per word, and nearly all of them are empty. chimap keeps such rows
sparse, and the features of additive kernels are sparse too.
"""

# %%
# We draw documents from topics that share most of their words, and write them as JSON lines.
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from chimap import AutomaticFeatures, HistogramClassifier
from chimap.readers.words import WordCounts

rng = np.random.default_rng(0)
syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
vocabulary = np.array([a + b for a in syllables for b in syllables[::6]])
common = rng.dirichlet(np.full(len(vocabulary), 0.3))
topics = [
    0.8 * common + 0.2 * rng.dirichlet(np.full(len(vocabulary), 0.02)) for _ in range(4)
]
names = np.array(["hockey", "space", "medicine", "cars"])
labels = rng.integers(0, 4, 1200)
shares = [
    rng.dirichlet(40 * topics[k] + 1e-4) for k in labels
]  # a used word is likely to be used again
texts = [" ".join(rng.choice(vocabulary, rng.integers(20, 120), p=p)) for p in shares]
lines = [
    json.dumps({"text": text, "topic": names[k]})
    for text, k in zip(texts, labels, strict=True)
]
Path("documents.jsonl").write_text("\n".join(lines) + "\n")
print(texts[0][:70], "...")

# %%
# The words are learned from the file.
source = WordCounts("text").source("documents.jsonl", labels="topic")
[chunk] = source.chunks(source.n_rows)
X, y = chunk.X, source.labels()
print(f"{X.shape[1]} words, {X.nnz / X.shape[0]:.0f} of them in a document")

# %%
# The square root of each count (`hellinger`) gives most of the gain, at the cost of a linear model.
sizes, figure = [100, 200, 400, 800], plt.figure(figsize=(6, 3.6))
for kernel in ("linear", "hellinger", "chi2"):
    scores = []
    for n in sizes:
        model = HistogramClassifier(
            kernel, features=AutomaticFeatures(n_terms=1), normalize="l1"
        ).fit(X[:n], y[:n])
        scores.append(model.score(X[800:], y[800:]))
    print(f"{kernel:10}", *(f"{score:.3f}" for score in scores))
    plt.plot(sizes, scores, marker="o", label=kernel)
plt.xlabel("training documents")
plt.ylabel("accuracy")
plt.title("Four topics: accuracy by documents")
plt.legend()
