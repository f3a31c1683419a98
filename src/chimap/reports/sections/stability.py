"""Which bins other rows would choose again."""

from __future__ import annotations

from chimap._formatting import percent
from chimap.explain.stability import THRESHOLD
from chimap.reports.explanation import ModelExplanation
from chimap.reports.figures import LONGEST_NAME, MUTED, drawing, horizontal_bars, to_svg
from chimap.reports.section import Figure, Section, folded

_DRAWN = 20  # bins that are drawn


def section(explanation: ModelExplanation) -> Section | None:
    """Return the stable bins, with the bound on those among them that were chosen by chance."""
    found = explanation.stability
    if found is None:
        return None
    order = found.ranked
    rows = [(str(found.names[i]), percent(found.shares[i])) for i in order]
    heads = ("Bin", "Chosen by")
    return Section(
        "Would other rows choose the same bins?",
        f"{found.sentence}. A half chooses the {found.n_chosen} bins that move its scores most when they take their "
        "values in another row; halves "
        "come in complementary pairs, and are machines of the same kernel and strength.",
        (Figure(lambda: share_bars(explanation), caption=f"Bars that reach {percent(THRESHOLD, 0)} are stable."),),
        folded(heads, rows, "bins", caption=f"Bins chosen by any of {found.n_resamples} halves"),
        lead=", ".join(str(found.names[i]) for i in found.stable[:8]) or "No bin is stable",
    )


def share_bars(explanation: ModelExplanation) -> str:
    """Draw the share of halves that choose each bin as horizontal bars."""
    found = explanation.stability
    assert found is not None
    order = found.ranked[:_DRAWN]
    names, shares = [str(found.names[i]) for i in order], found.shares[order]
    with drawing(250, 22 * len(names)) as (figure, axes):
        horizontal_bars(axes, names, shares, [*map(percent, shares)], height=0.66, room=1.25, longest=LONGEST_NAME)
        axes.axvline(THRESHOLD, color=MUTED, linewidth=0.8, linestyle="--")
        listed = ", ".join(f"{name} {percent(share)}" for name, share in zip(names, shares, strict=True))
        return to_svg(figure, "stability", f"Share of halves that choose each bin: {listed}.")
