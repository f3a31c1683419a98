"""Single cells in scanpy's terms: fit a model on an AnnData object, and write its answers into one, in place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._messages import Message, quoted_names, shown
from chimap._validation import DataError
from chimap.data import Source
from chimap.data.label_kinds import texts_of
from chimap.data.labels import IGNORE_LABELS, Labels
from chimap.data.overlap import Overlap
from chimap.data.table import instead
from chimap.estimators import HistogramClassifier, load
from chimap.models.answers import ClassAnswers, class_scores
from chimap.models.explain import contributions_to, mean_row_of_fit
from chimap.models.model import Model
from chimap.models.predict import outputs_of_source
from chimap.models.predictor import Predictor
from chimap.models.unassigned import UNASSIGNED, checked_share, is_unassigned, marked, with_shares
from chimap.readers.anndata import anndata_source, is_anndata

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

__all__ = ["annotate", "fit"]

_LOOKED_AT = 256  # cells whose values say whether they are counts
_EXPLAINED = 50  # cells of each class whose contributions are averaged
_MOST_NUMBERS = 2**23  # contributions in memory at once


def fit(
    adata: AnnData,
    labels: str,
    *,
    layer: str | None = None,
    use_raw: bool = False,
    groups: str | None = None,
    **settings: object,
) -> HistogramClassifier:
    """Fit a classifier of cells on the counts of an AnnData object.

    An object that is backed by a file is read from it, cell by cell. Cells without a label are left out.

    Parameters
    ----------
    adata : AnnData of n cells and m genes
        The cells.
    labels : str
        The column of ``obs`` with their types.
    layer : str or None, default=None
        The layer that holds the counts; None is ``X``, and so is "X", without a look at whether it holds counts.
    use_raw : bool, default=False
        Whether to take ``adata.raw`` and its genes.
    groups : str or None, default=None
        The column of ``obs`` of donors or samples, which are held out as a whole where the fit chooses.
    **settings : object
        Settings of ``HistogramClassifier``, such as ``memory="2GiB"``. Without any, a race chooses.

    Returns
    -------
    HistogramClassifier
        The fitted model, which knows the names of its genes.

    Raises
    ------
    DataError
        If a column, layer or ``raw`` is not there (with the nearest names), if values are negative, or if they are no
        counts and another matrix, which is named, holds counts.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from chimap import sc
    >>> rng = np.random.default_rng(0)
    >>> kinds = rng.integers(0, 2, 100)
    >>> cells = anndata.AnnData(rng.poisson(rng.gamma(0.3, size=(2, 30))[kinds] * 6).astype(np.float32))
    >>> cells.obs["cell_type"] = np.array(["B", "T"])[kinds]
    >>> sc.fit(cells, "cell_type", kernel="hellinger", normalize="log-cp10k").classes_.tolist()
    ['B', 'T']
    """
    _check_is_anndata(adata)
    is_labelled = _column(adata, labels).notna().to_numpy()
    if not is_labelled.all():
        adata = adata[is_labelled]
    source = _cells(adata, labels, layer, use_raw)
    given = {} if groups is None else {"groups": _column(adata, groups).to_numpy()}
    return HistogramClassifier(**settings).fit_source(source, **given)  # type: ignore[arg-type]


def annotate(
    adata: AnnData,
    model: HistogramClassifier | str | Path,
    key_added: str = "chimap",
    *,
    over: str | None = None,
    unassigned: float | None = 0.05,
    layer: str | None = None,
    use_raw: bool = False,
    copy: bool = False,
) -> AnnData | None:
    """Write the types that a model gives to cells into their AnnData object.

    Genes are matched by name, or by the second names in ``var`` (symbols and Ensembl ids). It writes

        obs[key]                     the label, a category: a class of the model or "unassigned"
        obs[key_probability]         the probability of the most probable class
        obsm[key_probabilities]      the probabilities of all classes, a frame (cells, classes)
        obs[key_vote]                with ``over``, the most frequent label of the cell's cluster
        obs[key_vote_share]          and its share of the cluster
        varm[key_contributions]      a frame (genes, classes): what a gene adds to the score of a class, on average over
                                     up to 50 cells that got it, beside the mean cell of the fit; NaN for other genes
        uns[key]                     the settings, and why contributions are missing where the model is not additive

    Parameters
    ----------
    adata : AnnData
        The cells; in memory or backed by a file, whose matrix is not changed.
    model : HistogramClassifier or path
        A fitted classifier, or a file of one.
    key_added : str, default="chimap"
        The key.
    over : str or None, default=None
        A column of ``obs`` with clusters, such as "leiden", within which cells vote.
    unassigned : float or None, default=0.05
        See ``HistogramClassifier.predict``; None labels every cell.
    layer, use_raw
        The matrix, see ``fit``. Contributions need the genes of ``adata``, and are not written with ``use_raw``.
    copy : bool, default=False
        Whether to return a copy with the answers, and leave ``adata`` as it is.

    Returns
    -------
    AnnData or None
        The copy, or None.

    Raises
    ------
    DataError
        If a column, layer or ``raw`` is not there, if no gene is known to the model, or for values that are no counts.
    ValueError
        If the model is no classifier of one label per cell, or knows of no left-out cells for ``unassigned``.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from chimap import sc
    >>> rng = np.random.default_rng(0)
    >>> kinds = rng.integers(0, 2, 100)
    >>> cells = anndata.AnnData(rng.poisson(rng.gamma(0.3, size=(2, 30))[kinds] * 6).astype(np.float32))
    >>> cells.obs["cell_type"] = np.array(["B", "T"])[kinds]
    >>> model = sc.fit(cells, "cell_type", kernel="hellinger", normalize="log-cp10k")
    >>> sc.annotate(cells, model, over="cell_type")
    >>> cells.obs["chimap"].cat.categories.tolist(), cells.obs["chimap_vote"].iloc[0] == cells.obs["cell_type"].iloc[0]
    (['B', 'T', 'unassigned'], True)
    """
    import pandas as pd

    _check_is_anndata(adata)
    fitted, classified = _classifier(model)
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    clusters = None if over is None else _column(adata, over)
    source = _cells(adata, IGNORE_LABELS, layer, use_raw)
    overlap = _overlap(fitted, source)
    source = fitted.schema.rows(source)
    outputs, labels = _answers(fitted, source, unassigned)
    classes, p = texts_of(classified.classes).tolist(), classified.calibration(outputs)

    adata.obs[key_added] = pd.Categorical(texts_of(labels), categories=[*dict.fromkeys([*classes, UNASSIGNED])])
    adata.obs[f"{key_added}_probability"] = p.max(axis=1)
    adata.obsm[f"{key_added}_probabilities"] = pd.DataFrame(p, index=adata.obs_names, columns=classes)
    if clusters is not None:
        votes = _votes(adata.obs[key_added], clusters)
        adata.obs[f"{key_added}_vote"], adata.obs[f"{key_added}_vote_share"] = votes
    told = {"kernel": fitted.describe()["kernel"], "unassigned": unassigned, "matrix": _matrix(layer, use_raw) or "X"}
    exact = fitted.exact
    if exact is None or not exact.is_additive:
        told["contributions"] = "the kernel mixes genes: HistogramClassifier.explain has those of single cells"
    elif use_raw:
        told["contributions"] = "the genes are those of raw, which has no varm"
    else:
        chosen = class_scores(outputs).argmax(axis=1)
        by_gene = pd.DataFrame(_contributions(exact, source, chosen), index=_genes(overlap, adata), columns=classes)
        by_gene = by_gene.reindex(adata.var_names)
        adata.varm[f"{key_added}_contributions"] = by_gene
    adata.uns[key_added] = {name: value for name, value in told.items() if value is not None}
    return adata if copy else None


def _check_is_anndata(adata: object) -> None:
    if not is_anndata(adata):
        raise InputError(
            f"expected an AnnData object, such as anndata.read_h5ad('cells.h5ad', backed='r'); got a "
            f"{type(adata).__name__}. Files are taken by chimap.open_source and the commands too."
        )


def _column(adata: AnnData, name: str) -> pd.Series:
    """Return a column of obs. Raise DataError, with the nearest names, if there is none."""
    if name not in adata.obs:
        columns = [str(column) for column in adata.obs.columns]
        raise DataError(f"AnnData: no column {name!r} in obs{instead(name, columns, f'there are {shown(columns)}')}.")
    return adata.obs[name]


def _matrix(layer: str | None, use_raw: bool) -> str | None:
    """Return the name of a matrix as readers have it; None for X."""
    if use_raw:
        return "raw/X"
    return layer if layer in (None, "X") else f"layers/{layer}"


def _cells(adata: AnnData, labels: Labels, layer: str | None, use_raw: bool) -> Source:
    """Return the cells as rows of counts. Raise DataError if the matrix is not there, or holds no counts."""
    if layer is not None and use_raw:
        raise InputError(Message("{layer=} and {use_raw=True} name two matrices: leave one of them out.", layer))
    if layer not in (None, "X") and layer not in adata.layers:
        layers = [*adata.layers]
        raise DataError(
            Message("AnnData: no {layer=}{}.", layer, instead(str(layer), layers, f"there are {shown(layers)}"))
        )
    if use_raw and adata.raw is None:
        raise DataError(Message("AnnData: raw is None, and {use_raw=True}. Leave it out, or name a {layer}."))
    values = _some(adata.raw.X if use_raw else adata.X if layer in (None, "X") else adata.layers[layer])
    counts = _where_counts(adata)
    remedy = f"Counts are in {' and '.join(counts)}" if counts else "Take the counts of molecules, before any scaling"
    if (values < 0).any():
        raise DataError(f"AnnData: {values.min():g} is below 0, and these are no counts. {remedy}.")
    if layer is None and not use_raw and counts and not _are_whole(values):
        raise DataError(
            f"AnnData: X holds {values[values != np.rint(values)][0]:g}, and no counts. {remedy}; layer='X' takes it."
        )
    return anndata_source(adata, labels, matrix=_matrix(layer, use_raw))


def _some(matrix: object) -> np.ndarray:
    """Return the entries of some cells."""
    rows = matrix[:_LOOKED_AT]  # type: ignore[index]
    return np.asarray(rows.data if _arrays.is_sparse(rows) else rows)


def _are_whole(values: np.ndarray) -> bool:
    return bool((values == np.rint(values)).all())


def _where_counts(adata: AnnData) -> list[str]:
    """Return the arguments that name matrices, other than X, that hold counts."""
    matrices = {f"layer={name!r}": adata.layers[name] for name in adata.layers}
    if adata.raw is not None:
        matrices["use_raw=True"] = adata.raw.X
    looked_at = {name: _some(matrix) for name, matrix in matrices.items()}
    return [name for name, values in looked_at.items() if _are_whole(values) and (values >= 0).all()]


def _classifier(model: object) -> tuple[Predictor, ClassAnswers]:
    """Return a fitted classifier of one label per cell and its answers, or raise ValueError."""
    if isinstance(model, str | Path):
        model = load(model, kind="model")
    fitted: Predictor | None = getattr(model, "fitted", None)
    if fitted is None or not isinstance(fitted.answers, ClassAnswers) or fitted.answers.is_multilabel:
        raise InputError(
            f"cells are annotated by a fitted HistogramClassifier of one label per cell; got a {type(model).__name__}. "
            "chimap.sc.fit(adata, 'cell_type') fits one."
        )
    return fitted, fitted.answers


def _overlap(fitted: Predictor, source: Source) -> Overlap | None:
    """Return which genes stand for those of the model; None where either side has no names.

    Raise DataError, with names of both sides, if the model knows none of the genes.
    """
    names, mass = fitted.schema.names, fitted.schema.mass
    if names is None or source.column_names is None:
        return None
    overlap = Overlap.of(names, source.column_names, source.other_names, (), None if mass is None else mass.other_names)
    if (overlap.places < 0).all():
        raise DataError(
            f"AnnData: the model knows none of the {source.n_features:,} genes. It was fitted on "
            f"{quoted_names(names, 3)}, and here are {quoted_names(source.column_names, 3)}. Where one side has "
            "symbols and the other Ensembl ids, write the others into adata.var['gene_ids'], which is matched too."
        )
    return overlap


def _answers(fitted: Predictor, source: Source, unassigned: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the outputs (n, t) of cells, and their labels (n,)."""
    if unassigned is None:
        outputs = outputs_of_source(fitted, source)
        return outputs, fitted.answers.predicted(outputs)
    share = checked_share(unassigned)
    both = outputs_of_source(fitted, source, scorer=with_shares(fitted))
    outputs = both[:, :-1]
    return outputs, marked(fitted.answers.predicted(outputs), is_unassigned(both[:, -1], share))


def _votes(labels: pd.Series, clusters: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Return the most frequent label of each cell's cluster, and its share; a cell in no cluster has neither."""
    import pandas as pd

    counts = pd.crosstab(clusters, labels)
    most = counts.idxmax(axis=1).astype(object)
    shares = counts.max(axis=1) / counts.sum(axis=1)
    places = clusters.astype(object)
    return places.map(most).astype(labels.dtype), places.map(shares).astype(float)


def _contributions(model: Model, source: Source, chosen: np.ndarray) -> np.ndarray:
    """Return the mean contribution of each gene of the model to each class, on cells that got it, (genes, classes).

    source: the cells with the genes of the model. chosen (cells,): places of classes.
    """
    reference = mean_row_of_fit(model)
    n_classes = model.answers.classes.size  # type: ignore[union-attr]
    out = np.full((model.n_bins, n_classes), np.nan)
    step = max(1, _MOST_NUMBERS // (model.n_bins * model.n_outputs))
    for place in range(n_classes):
        cells = np.flatnonzero(chosen == place)
        cells = cells[np.linspace(0, cells.size - 1, min(cells.size, _EXPLAINED)).astype(np.intp)]
        total = np.zeros(model.n_bins)
        for some in (cells[i : i + step] for i in range(0, cells.size, step)):
            prepared = model.preparation(source.take(some), some, source.name)
            of_genes, _ = contributions_to(model, prepared, reference)
            total += _of_class(of_genes, place)
        if cells.size:
            out[:, place] = total / cells.size
    return out


def _of_class(of_genes: np.ndarray, place: int) -> np.ndarray:
    """Return the sums (genes,) over cells of contributions (n, genes, t) to the score of a class."""
    if of_genes.shape[2] == 1:
        return np.asarray((2 * place - 1) * of_genes[:, :, 0].sum(axis=0))
    return np.asarray(of_genes[:, :, place].sum(axis=0))


def _genes(overlap: Overlap | None, adata: AnnData) -> Sequence[str]:
    """Return the name in the data of each gene of the model, or the model's where the data has none."""
    if overlap is None:
        return [*adata.var_names]
    pairs = zip(overlap.bins, overlap.places.tolist(), strict=True)
    return [name if place < 0 else overlap.columns[place] for name, place in pairs]
