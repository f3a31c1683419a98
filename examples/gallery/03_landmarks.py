"""Landmarks and random features: how many are enough?

The exponential kernel compares whole rows. Two kinds of features approximate it. Landmarks are chosen rows with which
all others are compared; random features are cosines of random projections. Landmarks follow the data, so fewer of them
are enough.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from chimap import HistogramClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = X[:1000], X[1000:], y[:1000], y[1000:]

# %%
# The exact machine uses all thousand rows as landmarks. No number of features can beat it.
exact = (
    HistogramClassifier("exp-chi2", features="exact").fit(X, y).score(X_test, y_test)
)
print(f"exact: {exact:.3f}")

# %%
numbers = [16, 32, 64, 128, 256, 512]
figure, axes = plt.subplots(figsize=(6, 3.6))
for features in ("landmarks", "fourier"):
    scores = [
        HistogramClassifier(
            "exp-chi2", features=features, n_components=n, random_state=0
        )
        .fit(X, y)
        .score(X_test, y_test)
        for n in numbers
    ]
    print(f"{features:10}", *(f"{score:.3f}" for score in scores))
    axes.semilogx(numbers, scores, marker="o", label=features, base=2)
axes.axhline(exact, color="gray", linestyle="--", label="exact")
axes.set(
    xlabel="features", ylabel="accuracy", title="Accuracy by the number of features"
)
axes.legend()
