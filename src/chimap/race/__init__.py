"""The race that chooses what is left open: candidates of all kinds, compared on the same held-out rows.

Read ``choose.race`` first, from top to bottom: it draws a sample and holds rows of it out (``runner.Race.on``, with
``rows``); lists the recipes that suit these rows (``candidates``); lets them learn from more and more rows and
drops those that are behind (``rounds.successive_halving``, which keeps a ``trials.Trial`` of each); lets the winner run
as it will be fitted on all rows; and tries weights of its bins (``bins``). One trial is ``Race.__call__``: ``shared``
searches the strength and gamma of exact machines and LIBLINEAR's (``machines``), for many of which it computes products
of rows once; whatever else is a fit of its own. ``compare`` runs all candidates for a page.
"""

from chimap.models.race_result import Candidate, RaceResult, Trial

__all__ = ["Candidate", "RaceResult", "Trial"]
