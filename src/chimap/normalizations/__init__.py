"""Normalisations of rows, which come before the kernel."""

from __future__ import annotations

from chimap.model_files import register
from chimap.normalizations.base import KnownTargets, Normalization
from chimap.normalizations.entries import Log1p, Presence, Roots
from chimap.normalizations.log_scores import LogScores
from chimap.normalizations.shares import LogCP10K, LogCPM, Shares
from chimap.normalizations.tf_idf import TfIdf
from chimap.normalizations.tf_idf_ratio import TfIdfRatio

CATALOGUE: dict[str, Normalization] = {
    each.name: each
    for each in (Shares(), Log1p(), Roots(), LogCPM(), LogCP10K(), LogScores(), Presence(), TfIdf(), TfIdfRatio())
}
"""Values of ``normalize`` besides None, before they have learned anything."""

register(*(type(each) for each in CATALOGUE.values()))

__all__ = [
    "CATALOGUE",
    "KnownTargets",
    "LogCP10K",
    "LogCPM",
    "LogScores",
    "Log1p",
    "Normalization",
    "Presence",
    "Roots",
    "Shares",
    "TfIdf",
    "TfIdfRatio",
]
