"""Images: textures by their visual words

An image becomes a histogram of visual words, which say what its small patches look like. We use four textures under
changing light and shift.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from chimap import HistogramClassifier, ImageHistograms
from chimap.images import SIFT

rng = np.random.default_rng(0)
y, x = np.mgrid[:64, :64]


def texture(kind):
    shift, period = rng.uniform(0, 6, 2), rng.uniform(0.5, 0.7)
    waves = {
        "stripes": np.sin(period * x + shift[0]),
        "checks": np.sign(
            np.sin(period * x + shift[0]) * np.sin(period * y + shift[1])
        ),
        "rings": np.sin(period * np.hypot(x - 10 * shift[0], y - 10 * shift[1])),
        "dots": (np.sin(period * x + shift[0]) + np.sin(period * y + shift[1]) > 1.2)
        * 2.0
        - 1,
    }[kind]
    light = (
        rng.uniform(25, 60) * waves + rng.normal(0, 12, x.shape) + rng.uniform(90, 160)
    )
    return np.repeat(light.clip(0, 255).astype(np.uint8)[:, :, None], 3, axis=2)


kinds = np.array(["stripes", "checks", "rings", "dots"])
labels = np.tile(kinds, 25)
images = [texture(kind) for kind in labels]

# %%
# We learn the words from the first 40 images and pass the histograms to a classifier.
histograms = ImageHistograms(
    SIFT(step=6), n_words=40, grids=((1, 1),), random_state=0
).fit(images[:40])
X = histograms.transform(images)
model = HistogramClassifier("exp-chi2", n_components=512, random_state=0).fit(
    X[:40], labels[:40]
)
answers = model.predict(X[40:])
print(f"{len(labels) - 40} new images, accuracy {np.mean(answers == labels[40:]):.2f}")

# %%
figure, axes = plt.subplots(2, 4, figsize=(7, 3.8), layout="constrained")
for ax, image, answer in zip(axes.flat, images[40:48], answers[:8], strict=True):
    ax.imshow(image)
    ax.set_title(answer, fontsize=9)
    ax.axis("off")
figure.suptitle("New textures and what they are taken for")
