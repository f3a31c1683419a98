"""Explanations: why is this a 3?

The score of a row is a base plus what each bin adds. For an additive kernel these contributions are exact; for
an exponential one they are integrated along the path from the mean row.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from chimap import HistogramClassifier
from chimap.explain import permutation_importance

X, y = load_digits(return_X_y=True)
model = HistogramClassifier("chi2", n_terms=3, alpha=1.0).fit(X[:1200], y[:1200])

# %%
# Which cells matter at all: shuffle each among scans held out.
losses = permutation_importance(lambda rows: model.score(rows, y[1200:]), X[1200:], n_repeats=2)
print("cells that matter most:", np.argsort(losses)[-5:][::-1].tolist())

# %%
# What each cell adds to the score of one class: change one cell at a time, from the mean scan.
scans = [int(np.flatnonzero(y[1200:] == digit)[0]) + 1200 for digit in (0, 3, 8)]
empty = X[:1200].mean(axis=0)
figure, axes = plt.subplots(2, 4, figsize=(8, 4.2), layout="constrained")
axes[0, 0].imshow(losses.reshape(8, 8), cmap="Greys")
axes[0, 0].set_title("cells that matter")
axes[1, 0].axis("off")
for (above, below), scan in zip(axes[:, 1:].T, scans, strict=True):
    changed = np.tile(empty, (64, 1))
    np.fill_diagonal(changed, X[scan])
    adds = (model.decision_function(changed) - model.decision_function(empty[None]))[:, y[scan]]
    total = model.decision_function(empty[None])[0, y[scan]] + adds.sum()
    print(
        f"a {y[scan]}: base and contributions {total:.4f}, score {model.decision_function(X[[scan]])[0, y[scan]]:.4f}"
    )
    above.imshow(X[scan].reshape(8, 8), cmap="Greys")
    limit = np.abs(adds).max()
    below.imshow(adds.reshape(8, 8), cmap="RdBu_r", vmin=-limit, vmax=limit)
    above.set_title(f"a {y[scan]}")
    below.set_title("for (red), against (blue)", fontsize=8)
for ax in axes.flat:
    ax.set_xticks([])
    ax.set_yticks([])
