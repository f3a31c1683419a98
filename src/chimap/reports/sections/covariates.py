"""What covariates and counts add to each other."""

from __future__ import annotations

from chimap._formatting import measure_in_words, number
from chimap.reports.evaluation import Evaluation
from chimap.reports.explanation import ModelExplanation
from chimap.reports.measures import Metrics
from chimap.reports.section import Section, Table


def section(page: Evaluation[Metrics] | ModelExplanation) -> Section | None:
    """Return the scores of counts alone, of covariates alone and of both, if the model has covariates."""
    about = page.covariates
    if about is None:
        return None
    measure = measure_in_words(about["measure"])
    use = (
        f"Their {about['kernel']} kernel has the weight {number(about['weight'], 3)} besides that of the counts."
        if about["weight"]
        else "They are not used, as they improve the predictions of training rows that are left out by no more than "
        "two standard errors."
    )
    rows = [
        (
            f"{alone} alone",
            f"{about[alone]:.3f}".replace("-", "−"),
            f"{about[f'{other} add']:+.3f} ± {about[f'error of {other} add']:.3f}".replace("-", "−"),
        )
        for alone, other in (("counts", "covariates"), ("covariates", "counts"))
    ]
    rows.append(("both", f"{about['both']:.3f}".replace("-", "−"), ""))
    return Section(
        "Counts and covariates",
        f"The covariates are {', '.join(about['names'])}. {use} The scores are those of {about['rows']:,} training "
        "rows that are left out, ± is one standard error.",
        tables=(Table(("Learned from", measure[0].upper() + measure[1:], "Added by the other"), rows),),
    )
