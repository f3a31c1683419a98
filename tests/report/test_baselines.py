"""What one gets without looking at the histograms."""

from __future__ import annotations

from chimap.report import (
    majority_baseline,
    mean_baseline,
)


def test_baselines():
    assert majority_baseline(["a", "b", "b"], ["b", "a", "a", "b"]).value == 0.5
    assert "“b”" in majority_baseline(["a", "b", "b"], ["b"]).name
    assert mean_baseline([1.0, 3.0], [1.0, 3.0]).value == 1.0
