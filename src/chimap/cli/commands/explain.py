"""``chimap explain``: which bins drive a model, and why it predicts what it does for single rows."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from chimap._errors import InputError
from chimap.cli import flag_values, messages, outputs, show
from chimap.cli.options import TableOptions
from chimap.cli.parser import Without

if TYPE_CHECKING:
    import numpy as np

    from chimap._types import JSON
    from chimap.data import Source
    from chimap.explain.contributions import Explanation
    from chimap.explain.stability import Stability
    from chimap.models.model import Model
    from chimap.models.predictor import Predictor
    from chimap.reports import ExplainedRow, ModelExplanation

_ARRAY_ENDINGS = (".npz",)


def explain(
    model: Path,
    data: str | None = None,
    *,
    labels: str | None = None,
    table: Annotated[TableOptions, Without("split", "sample_weight", "covariates")],
    output: Path | None = None,
    rows: str | None = None,
    kind: str = "auto",
    stability: int | None = None,
    counterfactuals: bool = False,
    movable: str | None = None,
    shape: str | None = None,
    part: str | None = None,
    overwrite: bool = False,
    json: bool = False,
) -> None:
    """Explain which columns decide the answers of MODEL.

    The explanation ranks the columns, shows what each does to the scores, and says why rows of DATA get their answers.
    The contributions of the columns of a row and the score of the mean row add up to the score of the row. If MODEL was
    fitted on DATA with --test-fraction, only the held-out rows are used.

    Parameters
    ----------
    data
        Rows to explain, as for 'chimap evaluate'. Without DATA, only the model is explained.
    output : FILE, common
        Write a page (.html), or the contributions and importances as arrays (.npz).
    rows : ROWS, common
        Which rows to explain, by id or by number from 0, such as 3,17. The default is the worst mistakes if there are
        labels, else the least certain predictions; for .npz, all rows.
    kind : NAME
        How to rank the columns: gradient, variance, removal, permutation (needs labels) or auto. auto is variance for
        kernels without exp-, and gradient for others.
    stability : N, common
        Also learn N times from half of the rows, and show which columns matter again; 100 is usual. A bound says how
        many do so by chance (stability selection). Rows of one of --groups stay together. DATA needs labels.
    counterfactuals : common
        Show for each row the least change of counts that changes its answer, beside the nearest real row.
    movable : BINS
        Which columns --counterfactuals may change, by name or pattern, such as 'g_Bacteroides*,age'. The default is
        all.
    shape : HxW
        Height and width of the picture whose pixels are the columns, such as 28x28. Squares are recognised.

    \b
    Examples:
      chimap explain plots.model plots.csv --labels site
      chimap explain plots.model plots.csv --labels site --output why.html
      chimap explain my.model table.csv --rows sample-12,sample-40 -o why.html
      chimap explain my.model
      chimap explain my.model table.csv --stability 100 --groups subject
      chimap explain my.model table.csv --counterfactuals --movable 'otu_*'
      chimap explain my.model data.npz --rows 0,1,2 --output contributions.npz
      chimap explain digits.model digits.npz --shape 28x28 --output why.html
      chimap explain my.model data.npz --kind permutation --json
    """
    from chimap import load
    from chimap._validation import check_choice
    from chimap.cli import data_rows
    from chimap.models.explain import KINDS
    from chimap.reports import explained_rows as explained
    from chimap.reports.explanation import explainable, explanation_of
    from chimap.reports.importance import importance_of
    from chimap.reports.rows import sample_of
    from chimap.reports.score import as_answers, true_answers

    check_choice(kind, "--kind", ("auto", *KINDS))
    if output is not None and output.suffix.lower() not in (".html", ".htm", *_ARRAY_ENDINGS):
        raise InputError(f"--output must end in .html (a page) or .npz (arrays); got {str(output)!r}.")
    if data is None and (rows is not None or labels is not None):
        raise InputError("--rows and --labels need DATA; name it after MODEL.")
    if stability is not None:
        flag_values.check_least(stability, "--stability", 2)
        if data is None:
            raise InputError("--stability halves labelled rows of DATA; name it after MODEL.")
    if table.groups is not None and stability is None:
        raise InputError("--groups says what --stability halves; give both.")
    if counterfactuals and data is None:
        raise InputError("--counterfactuals changes rows of DATA; name it after MODEL.")
    if movable is not None and not counterfactuals:
        raise InputError("--movable names bins that --counterfactuals may change; give both.")
    outputs.check_outputs({"--output": output}, (model, data, labels), overwrite)
    fitted: Predictor = load(model, kind="model").fitted
    exact = explainable(fitted)

    def check_labels(y: np.ndarray | None, name: str) -> None:
        if y is not None:
            as_answers(fitted, y, name)

    source = sample = y = None
    which, places = "", None
    if data is not None:
        source = data_rows.open_data(
            data, labels, fitted, part=part, silent=json, check_labels=check_labels, needs_labels=False, table=table
        )
        if rows is None:
            source = data_rows.choose_rows(fitted, source, all_rows=False).source
        y = true_answers(fitted, source) if source.has_labels else None
        places, which = _chosen(exact, source, y, rows, output, json)
        sample, of_sample = sample_of(source)
    with show.busy("explaining"):
        pixels = _pixels(exact, shape, sample)
        importance = importance_of(exact, sample, None if y is None else y[of_sample], kind)
        stable = None if stability is None or source is None else _stability(exact, source, table, stability, json)
        explanation: Explanation | None = None
        explained_rows: list[ExplainedRow] = []
        if source is not None and places is not None:
            explained.check_room(places.size, exact.schema.n_features, exact.n_outputs)
            explained_rows, explanation = explained.explained_rows(exact, source, places, y, pixels)
            if counterfactuals:
                bins = None if movable is None else flag_values.listed(movable)
                explained_rows = explained.with_counterfactuals(exact, source, places, explained_rows, bins, of_sample)
        page = explanation_of(exact, model.name, source, sample, importance, explained_rows, which, pixels, stable)
    _write(page, explanation, output, overwrite)
    if json:
        show.as_json({"command": "explain", "output": output and str(output), **page.as_dict()})
        return
    show.facts(f"Explained {model}", summary(page, output))
    if output is None:
        data_argument = "" if data is None else f" {show.quoted(data)}"
        show.next_commands(
            "Next, write a page with the functions of the bins and explained rows:",
            f"chimap explain {show.quoted(model)}{data_argument or ' DATA'} --output why.html",
        )


def _chosen(
    model: Model, source: Source, y: np.ndarray | None, rows: str | None, output: Path | None, silent: bool
) -> tuple[np.ndarray, str]:
    """Return the places of the rows to explain, and a sentence that says which rows these are."""
    import numpy as np

    from chimap.reports import explained_rows as explained
    from chimap.reports.rows import named_rows

    if rows is not None:
        return named_rows(source, flag_values.listed(rows)), "The rows named with --rows."
    if output is not None and output.suffix.lower() in _ARRAY_ENDINGS:
        return np.arange(source.n_rows), "All rows."
    margins = explained.margins(model, source, y, show.progress(silent))
    worst = np.argsort(margins, kind="stable")[: explained.MISTAKES_EXPLAINED]
    return worst, explained.told_by_margins(margins[worst], y is not None, model.answers.classes is not None)


def _stability(model: Model, source: Source, table: TableOptions, n_resamples: int, silent: bool) -> Stability:
    """Return which bins halves of the rows of a source choose."""
    from chimap.cli import data_rows
    from chimap.data.labelled import labels_of
    from chimap.diagnostics.stability import stability

    labels_of(source)  # without labels, its error says how to name them
    return stability(model, source, data_rows.groups_of(source, table), n_resamples, progress=show.progress(silent))


def _pixels(model: Model, shape: str | None, sample: Source | None) -> tuple[int, int] | None:
    """Return the height and width of the picture that a row forms, or None.

    The sizes are those of ``shape``, or those of a square whose neighbouring pixels are alike.
    """
    import numpy as np

    from chimap.reports.pictures import check_shape, picture_shape

    if shape is not None:
        sizes = re.fullmatch(r"(\d+)[x×](\d+)", shape.strip())
        if sizes is None:
            raise InputError(f"--shape must be HEIGHTxWIDTH in pixels, such as 28x28; got {shape!r}.")
        sides = int(sizes[1]), int(sizes[2])
        check_shape(sides, model.schema.n_features)
        return sides
    if sample is None or model.histograms is not None:
        return None

    from chimap import _arrays

    return picture_shape(np.asarray(_arrays.to_dense(sample.block(0, sample.n_rows).X), np.float64))


def _write(page: ModelExplanation, explanation: Explanation | None, output: Path | None, overwrite: bool) -> None:
    import numpy as np

    from chimap._files import replacing

    if output is None:
        return
    if output.suffix.lower() not in _ARRAY_ENDINGS:
        with show.busy("drawing the page"):
            page.save(output, overwrite=overwrite)
    else:
        ranked = page.importance
        arrays: JSON = {
            "importance": ranked.by_bin,
            "bin_names": page.bin_names.astype(str),
            "output_names": np.asarray(page.output_names).astype(str),
        }
        if explanation is not None:
            arrays |= {
                "contributions": explanation.contributions,
                "base": explanation.base,
                "rows": np.array([row.name for row in page.rows]),
            }
        with replacing(output) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, **arrays)
    messages.written.append(str(output))


def summary(page: ModelExplanation, output: Path | None) -> dict[str, str | None]:
    """Return the lines of the terminal summary: the most important bins and the explained rows."""
    top, rows = page.importance.top(), []
    width = max(len(name) for name, _ in top)
    bins = [f"{i:>2}  {name:<{width}}  {value:<9.3g}" for i, (name, value) in enumerate(top, 1)]
    said = [f"  {page.speaks_for(effect)}" for effect in page.effects]
    bins = [f"{line}{end}".rstrip() for line, end in zip_longest(bins, said[: len(bins)], fillvalue="")]
    for row in page.rows[:5]:
        largest = ", ".join(f"{page.bin_names[i]} {row.contributions[i]:+.2g}" for i in row.top(3))
        truth = "" if row.truth is None or row.truth == row.predicted else f", true {_shown(row.truth)}"
        rows.append(f"row {row.name}: predicted {_shown(row.predicted)}{truth}; bins {largest}")
        if row.counterfactual is not None:
            rows.append(f"    {row.counterfactual}")
    return {
        "in short": page.sentence or None,
        "ranked by": page.importance.kind,
        "bins": "\n".join(bins),
        "bin weights": page.data.get("bin weights"),
        "stable bins": None if page.stability is None else page.stability.sentence,
        "chosen by": None if page.stability is None else _shares(page.stability),
        "rows": "\n".join(rows) or None,
        "output": None if output is None else str(output),
    }


def _shares(stability: Stability) -> str:
    """Return the bins that halves of the rows choose, with their shares."""
    places = stability.ranked[:20]
    width = max((len(str(stability.names[i])) for i in places), default=0)
    return "\n".join(f"{stability.names[i]!s:<{width}}  {show.percent(stability.shares[i], 0)}" for i in places)


def _shown(answer: object) -> str:
    """Return a label as it is, or a number with four digits."""
    return f"{answer:.4g}" if isinstance(answer, float) else f"{answer}"
