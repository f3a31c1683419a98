"""Text in the form NFC."""

from __future__ import annotations

import numpy as np
import pytest

from chimap._unicode import composed, composed_names, composed_texts

MARKED, LETTER = "e\u0300", "\u00e8"  # the first of all marks


def test_marks_become_part_of_their_letters():
    assert composed(MARKED) == LETTER
    assert composed("abc") == "abc"
    assert composed_names([MARKED, 3]) == (LETTER, "3")


@pytest.mark.parametrize("shape", [(2,), (2, 1), (1, 2)])
@pytest.mark.parametrize("dtype", [str, object])
def test_arrays_keep_their_shape(shape, dtype):
    texts = composed_texts(np.array([MARKED, "plain"], dtype=dtype).reshape(shape))
    assert texts.shape == shape
    assert texts.dtype.kind == np.dtype(dtype).kind
    assert texts.reshape(-1).tolist() == [LETTER, "plain"]


def test_text_of_every_other_row():
    assert composed_texts(np.array([MARKED, "x", MARKED])[::2]).tolist() == [LETTER, LETTER]


@pytest.mark.parametrize(
    "values", [np.empty(0, "<U3"), np.empty((0, 2), "<U3"), np.array(["", ""]), np.array(["a", LETTER])]
)
def test_text_without_marks_is_given_back(values):
    assert composed_texts(values) is values
    assert composed_texts(values[:0]).size == 0


def test_a_letter_that_has_another_form():
    assert composed_texts(np.array(["\u212b"])).tolist() == ["\u00c5"]  # the sign of the unit angstrom, and the letter


def test_other_objects_stay():
    values = np.array([MARKED, None, 3, np.nan], dtype=object)
    assert composed_texts(values).tolist()[:3] == [LETTER, None, 3]
    numbers = np.arange(3)
    assert composed_texts(numbers) is numbers
