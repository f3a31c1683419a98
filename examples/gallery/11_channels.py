"""Channels: which descriptors help?

Several descriptors of the same objects lie side by side. Multiple kernel learning gives each descriptor a kernel and a
weight. The weight is small, or exactly 0, for descriptors that do not help. The models for all strengths of the penalty
come from the sums of one pass over the rows.
"""

# %%
# Two descriptors each tell half of the classes apart, one carries the same information
# with noise, and three are pure noise.
import matplotlib.pyplot as plt
import numpy as np

from chimap import HistogramClassifier, MultipleKernelLearner

rng = np.random.default_rng(0)
y = rng.integers(0, 4, 1200)


def histograms(group, n_groups, purity):
    """Return rows of 12 bins that depend on the group; higher purity makes them depend on it more."""
    centres = np.random.default_rng(7).dirichlet(np.full(12, 0.5), n_groups)
    shares = purity * centres[group] + (1 - purity) / 12
    return np.array([rng.multinomial(60, rng.dirichlet(20 * p)) for p in shares])


channels = {
    "colour": histograms(y % 2, 2, 0.5),
    "texture": histograms(y // 2, 2, 0.5),
    "shape": histograms(y, 4, 0.2),
    "noise 1": histograms(0 * y, 1, 0.5),
    "noise 2": histograms(0 * y, 1, 0.5),
    "noise 3": histograms(0 * y, 1, 0.5),
}
X = np.hstack(list(channels.values())).astype(float)
blocks = {name: slice(12 * i, 12 * i + 12) for i, name in enumerate(channels)}

# %%
model = MultipleKernelLearner(
    "exp-chi2", blocks=blocks, n_components=64, shared=True, random_state=0
)
model.fit(X[:800], y[:800])
plain = HistogramClassifier("exp-chi2", n_components=384, random_state=0).fit(
    X[:800], y[:800]
)
weights = np.abs(model.kernel_weights_).mean(axis=0)
print(f"learned weights: accuracy {model.score(X[800:], y[800:]):.3f}")
print(f"one kernel for all bins: accuracy {plain.score(X[800:], y[800:]):.3f}")

# %%
figure, axes = plt.subplots(figsize=(6, 3.2))
axes.bar(list(blocks), weights)
axes.set(ylabel="weight of the kernel", title="What multiple kernel learning keeps")
