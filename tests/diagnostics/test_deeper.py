"""Which rows of a pool to sequence deeper."""

from __future__ import annotations

import numpy as np
import pytest

from chimap import HistogramClassifier, HistogramRegressor, suggest
from chimap.diagnostics.deeper import _differing, changes
from chimap.diagnostics.depth import MarginSpread, Samples

RNG = np.random.default_rng(0)
SHARES = RNG.dirichlet(np.full(12, 2.0), size=2)


def rows_of(mixtures, depths):
    """Rows of so many counts, whose shares are between those of two classes."""
    mixed = np.multiply.outer(1 - np.asarray(mixtures), SHARES[0]) + np.multiply.outer(mixtures, SHARES[1])
    return np.array([RNG.multinomial(depth, shares) for depth, shares in zip(depths, mixed, strict=True)])


@pytest.fixture(scope="module")
def model():
    y = np.arange(80) % 2
    return HistogramClassifier("chi2", normalize="l1", alpha=0.1).fit(rows_of(0.15 + 0.7 * y, [300] * 80), y)


def test_the_chance_to_differ_is_that_of_two_normal_margins_one_of_which_is_known_first():
    known = MarginSpread(np.array([[0.3], [-0.2], [2.0]]), np.array([[0.5], [0.4], [0.0]]), np.empty(0))
    full = MarginSpread(np.array([[0.3], [-0.1], [1.0]]), np.array([[0.8], [0.7], [1.0]]), np.empty(0))
    first = RNG.normal(size=(3, 200_000)) * known.deviation
    rest = RNG.normal(size=first.shape) * np.sqrt(full.deviation**2 - known.deviation**2)
    at_times, at_full = known.mean + first, full.mean + first + rest
    expected = ((at_times > 0) != (at_full > 0)).mean(axis=1)
    np.testing.assert_allclose(_differing(known, full, None), expected, atol=0.01)
    expected = (np.abs(at_times - at_full) > 0.6).mean(axis=1)
    np.testing.assert_allclose(_differing(known, full, np.full((3, 1), 0.6)), expected, atol=0.01)


def test_chances_are_those_of_rows_that_are_drawn_deeper(model):
    counts = rows_of(np.linspace(0.3, 0.7, 12), [60] * 12)
    samples, _ = Samples.read(model.fitted, counts)
    now, later = changes(samples, 2, RNG)
    found = np.zeros((12, 2))
    n = 400
    for i, row in enumerate(counts):
        pseudo, chances = samples.kinds.pseudo_counts(row.astype(float)), samples.memberships[i]
        kinds = RNG.choice(2, n, p=chances / chances.sum())
        shares = np.array([RNG.dirichlet(pseudo[kind]) for kind in kinds])
        at_times = row + np.array([RNG.multinomial(60, each) for each in shares])
        answers = [model.predict(rows) for rows in (row[None], at_times, at_times + 4000 * shares)]
        found[i] = [np.mean(each != answers[2]) for each in answers[:2]]
    np.testing.assert_allclose(now, found[:, 0], atol=0.1)
    np.testing.assert_allclose(later, found[:, 1], atol=0.1)
    assert later.sum() < 0.9 * now.sum()


def test_rows_near_the_threshold_come_first_and_cheap_ones_before_others(model):
    pool = rows_of([0.5] * 10 + [0.0] * 10, [40] * 20)
    pool[19] = 0
    found = suggest(model, pool, 20, deeper=2)
    places = np.concatenate(found.places)
    assert (places[:6] < 10).all()
    assert places[-1] == 19  # an empty row
    assert (np.diff(found.removed) >= 0).all()
    assert 0 < found.removed[0] < found.removed[-1] < 1
    assert found.sentence.endswith("of the answers expected to differ at full depth")
    assert "What to sequence deeper" in found.to_html()
    assert suggest(model, pool, 20, deeper=8).removed[-1] > found.removed[-1]
    cost = np.where(np.arange(20) % 2, 1e6, 1.0)
    assert not (np.concatenate(suggest(model, pool, 5, deeper=2, cost=cost).places) % 2).any()
    groups = np.repeat(["near", "far"], 10)
    assert suggest(model, pool, 2, deeper=2, groups=groups).chosen == ("near", "far")


def test_numbers_several_classes_and_several_tasks():
    y = np.arange(90) % 3
    counts = rows_of(y / 2, [50] * 90)
    for machine, targets in (
        (HistogramRegressor("chi2", normalize="l1", alpha=0.1), y / 2),
        (HistogramClassifier("chi2", normalize="l1", alpha=0.1), y),
        (HistogramClassifier("chi2", normalize="l1", alpha=0.1), np.column_stack([y > 0, y > 1]).astype(int)),
    ):
        samples, _ = Samples.read(machine.fit(counts, targets).fitted, counts[:8])
        now, later = changes(samples, 4, np.random.default_rng(0))
        assert (later <= now).all()
        assert (now > 0).any()
        assert later.sum() < now.sum()


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        (rows_of([0.5], [40]), {"deeper": 1.0}, "deeper must be above 1"),
        (rows_of([0.5], [40]), {"deeper": 2, "labelled": np.ones((3, 12))}, "labelled is for rows to label"),
        (rows_of([0.5], [40]) / 40, {"deeper": 2}, "give the counts from which they were made"),
    ],
)
def test_bad_input_is_refused(model, rows, more, message):
    with pytest.raises(ValueError, match=message):
        suggest(model, rows, 1, **more)
