"""Write the model files that later versions must read: ``python -m tests.model_files.write``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .models import ANSWERS, MODELS, X

if __name__ == "__main__":
    folder = Path(__file__).parent / "written"
    folder.mkdir(exist_ok=True)
    answers = {}
    for name, make in MODELS.items():
        model = make()
        model.save(folder / f"{name}.model", overwrite=True)
        answers[name] = model.predict(X)
        if name in ANSWERS:
            answers |= {f"{name}: {what}": answer for what, answer in ANSWERS[name](model).items()}
    np.savez_compressed(folder / "predictions.npz", **answers)
