"""Law: skops writes every estimator, and reads it with the list of trusted types and nothing else."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from chimap.model_files import TRUSTED_TYPES

from .models import MODELS
from .models import X as ROWS
from .test_transformers import TRANSFORMERS, X, Y, answers

skops = pytest.importorskip("skops.io")
MADE = {name: (make, ROWS) for name, make in MODELS.items()}
MADE |= {type(made).__name__: (lambda made=made: made.fit(X, Y), X) for made in TRANSFORMERS}


def test_the_list_names_what_chimap_has():
    assert all(name.startswith("chimap.") for name in TRUSTED_TYPES)
    assert [*TRUSTED_TYPES] == sorted({*TRUSTED_TYPES})


@pytest.mark.parametrize("name", MADE)
def test_every_estimator_comes_back_by_skops(name):
    make, rows = MADE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = make()
        again = skops.loads(skops.dumps(made), trusted=TRUSTED_TYPES)
        assert np.array_equal(answers(made, rows), answers(again, rows))
