"""Explanations: why is this a 3?

The score of a row is a base plus what each bin adds. For an additive kernel these contributions are exact. For an
exponential kernel they are integrated along the path from the mean row to the row.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from chimap import HistogramClassifier, OptimalMap

X, y = load_digits(return_X_y=True)
model = HistogramClassifier("chi2", features=OptimalMap(n_terms=3), alpha=1.0).fit(
    X[:1200], y[:1200]
)

# %%
# Which cells matter at all? Those whose contributions vary most over the held-out scans.
ranked = model.importance(X[1200:], kind="variance")
print("cells that matter most:", [name for name, _ in ranked.top(5)])

# %%
# What does each cell add to the score of the digit, beyond what it adds on the mean scan?
scans = [int(np.flatnonzero(y[1200:] == digit)[0]) + 1200 for digit in (0, 3, 8)]
explanation = model.explain(X[scans])
scores = model.decision_function(X[scans])
figure, axes = plt.subplots(2, 4, figsize=(8, 4.2), layout="constrained")
axes[0, 0].imshow(ranked.by_bin.reshape(8, 8), cmap="Greys")
axes[0, 0].set_title("cells that matter")
axes[1, 0].axis("off")
for i, (scan, (above, below)) in enumerate(zip(scans, axes[:, 1:].T, strict=True)):
    digit = y[scan]
    adds = explanation.contributions[i, :, digit]
    print(
        f"a {digit}: base and contributions {explanation.scores[i, digit]:.4f}, score {scores[i, digit]:.4f}"
    )
    above.imshow(X[scan].reshape(8, 8), cmap="Greys")
    limit = np.abs(adds).max()
    below.imshow(adds.reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
    above.set_title(f"a {digit}")
    below.set_title("for (blue), against (red)", fontsize=8)
for ax in axes.flat:
    ax.set_xticks([])
    ax.set_yticks([])

# %%
# How does the score of each digit change with the cell that matters most, with all other cells as on the mean scan?
effect = model.effects([ranked.bins[0]], X[:1200])[0]
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for digit in (1, 3, 7):
    ax.plot(effect.values, effect.effects[:, digit], label=f"a {digit}")
ax.set(
    title=f"the function of cell {effect.name}",
    xlabel="ink in the cell",
    ylabel="adds to the score",
)
ax.legend()
