"""Classes in a tree, such as cell types: answers on every level, sets of whole branches, distances in the tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._onnx import Value
from chimap._validation import DataError
from chimap.data.label_kinds import texts_of
from chimap.model_files import register
from chimap.selection.calibration import Calibration
from chimap.selection.structures import Measure, RelatedClasses, mean_over

PATHS = "paths"
"""The tree of labels that are paths themselves: a/b/c is below a/b, which is below a."""
_TOP = "/"  # the root of paths


@dataclass(frozen=True, eq=False)
class LabelTree(RelatedClasses):
    """Classes in a tree. The probability of a node is the sum over the classes at and below it.

    The answer is found from the root down: the most probable child of a node, or the node itself where it is a class,
    until no child is left. On every level its ancestor is thus chosen by the probabilities of that level. The nodes on
    this way are nested. A class is as unusual as the first of them that it is not below is probable, so that a
    conformal set holds all classes of a node: the deepest on the way that is probable enough.

    Parameters
    ----------
    children, parents : arrays of text of shape (m,)
        The edges: each child once, with its parent. None for labels that are paths.
    leaves : array of shape (k,) or None, default=None
        The classes as they are arranged; see ``of_classes``.

    References
    ----------
    Mortier, Wydmuch, Dembczynski, Huellermeier and Waegeman, Set-valued prediction in hierarchical classification with
    constrained representation complexity (2022); Angelopoulos and Bates, A gentle introduction to conformal
    prediction and distribution-free uncertainty quantification (2023), for nested sets.

    Examples
    --------
    >>> tree = LabelTree.of({"T": "cell", "B": "cell", "CD4": "T", "CD8": "T"})
    >>> classes = tree.arranged(np.array(["B", "CD8", "CD4"]))
    >>> tree, p = tree.of_classes(classes), np.array([[0.4, 0.35, 0.25]])
    >>> classes.tolist(), tree.names.tolist(), tree.best(p).tolist()
    (['B', 'CD4', 'CD8'], ['cell', 'B', 'T', 'CD4', 'CD8'], [1])
    >>> tree.unlikeness(np.log(p)).round(2), tree.nodes_of(tree.closed(np.array([[False, True, True]])))
    (array([[0.6 , 0.  , 0.35]]), array(['T'], dtype=object))
    """

    scorers: ClassVar[tuple[str, ...]] = ("neg_mean_tree_distance",)
    children: np.ndarray
    parents: np.ndarray
    leaves: np.ndarray | None = None

    @classmethod
    def of(cls, label_tree: object) -> LabelTree:
        """Return the tree of a mapping from children to parents, of pairs of these, or of "paths".

        Raise InputError for a circle, several roots, and a child with two parents.
        """
        if isinstance(label_tree, str) and label_tree == PATHS:
            return cls(np.zeros(0, dtype="<U1"), np.zeros(0, dtype="<U1"))
        try:
            pairs = [*label_tree.items()] if isinstance(label_tree, Mapping) else [*map(tuple, label_tree)]  # type: ignore[call-overload]
            edges = [(str(child), str(parent)) for child, parent in pairs]
        except (TypeError, ValueError):
            edges = []
        if not edges or isinstance(label_tree, str):
            raise InputError(
                Message(
                    "{label_tree} must be a mapping of children to parents, pairs of these, or {label_tree='paths'}; "
                    "got {!r:.80}. From the command line it may be a file.",
                    label_tree,
                )
            )
        tree = cls(*(np.array(side) for side in zip(*edges, strict=True)))
        tree._check()
        return tree

    def _check(self) -> None:
        above, parent_of = [*dict.fromkeys(self.parents.tolist())], self._parent_of
        if len(parent_of) < self.children.size:
            named, counts = np.unique(self.children, return_counts=True)
            twice = named[counts > 1][0].item()
            both = ", ".join(dict.fromkeys(self.parents[self.children == twice].tolist()))
            raise InputError(Message("{label_tree}: {!r} has two parents: {}. Keep one of the lines.", twice, both))
        roots = [each for each in above if each not in parent_of]
        if len(roots) > 1:
            raise InputError(
                Message(
                    "{label_tree} has {} roots: {}. Give all but one a parent, or put a common one above them.",
                    len(roots),
                    ", ".join(roots[:5]),
                )
            )
        for child in parent_of:
            self._path(child)  # raises for a circle

    @cached_property
    def _parent_of(self) -> dict[str, str]:
        return dict(zip(self.children.tolist(), self.parents.tolist(), strict=True))

    def _path(self, label: object) -> tuple[str, ...]:
        """Return the nodes from the root to the class. Raise InputError for one that is none, and for a circle."""
        (name,) = texts_of(np.array([label])).tolist()
        if not self.children.size:
            parts = name.strip("/").split("/")
            return (_TOP, *("/".join(parts[: i + 1]) for i in range(len(parts))))
        if name not in self._parent_of and name not in self._parent_of.values():
            raise InputError(
                Message(
                    "{label_tree} has no node {!r}, which is a class of the labels. Add a line with its parent.", name
                )
            )
        path = [name]
        while (parent := self._parent_of.get(path[0])) is not None:
            if parent in path:
                circle = " > ".join([parent, *path[: path.index(parent) + 1]][:6])
                raise InputError(Message("{label_tree} has a circle: {}. Remove one of its lines.", circle))
            path.insert(0, parent)
        return tuple(path)

    def arranged(self, classes: np.ndarray) -> np.ndarray:
        """Return the classes as the tree is walked: those of a node stand together, neighbours by name."""
        paths = [self._path(label) for label in classes.tolist()]
        return classes[sorted(range(len(paths)), key=paths.__getitem__)]

    def of_classes(self, classes: np.ndarray) -> LabelTree:
        return replace(self, leaves=classes)

    # --- the nodes above the classes

    @cached_property
    def _paths(self) -> list[tuple[str, ...]]:
        assert self.leaves is not None
        return [self._path(label) for label in self.leaves.tolist()]

    @cached_property
    def _ways(self) -> list[tuple[str, ...]]:
        """The path to each node that has classes at or below it, parents first."""
        return sorted({path[: i + 1] for path in self._paths for i in range(len(path))})

    @cached_property
    def names(self) -> np.ndarray:
        """Names of the nodes that have classes at or below them, parents first, (nodes,)."""
        return np.array([way[-1] for way in self._ways], dtype=object)

    @cached_property
    def members(self) -> np.ndarray:
        """Which classes are at or below each node, (nodes, k)."""
        return np.array([[path[: len(way)] == way for path in self._paths] for way in self._ways])

    @cached_property
    def _options(self) -> list[tuple[int, np.ndarray]]:
        """Each node with what may follow on the way down: its children, and nodes + j if it is class j itself."""
        place = {way: i for i, way in enumerate(self._ways)}
        options: list[list[int]] = [[] for _ in place]
        for j, path in enumerate(self._paths):
            options[place[path]].append(len(place) + j)
        for way in self._ways[1:]:
            options[place[way[:-1]]].append(place[way])
        return [(node, np.array(following)) for node, following in enumerate(options)]

    @cached_property
    def distances(self) -> np.ndarray:
        """Edges between the classes in the tree, (k, k)."""
        shared = self.members.T.astype(np.float64) @ self.members
        lengths = np.diag(shared)
        return lengths[:, None] + lengths - 2 * shared

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Return the probabilities (n, nodes) of the nodes, given those of the classes (n, k)."""
        return p @ self.members.T.astype(p.dtype)

    # --- as a structure

    def best(self, p: np.ndarray) -> np.ndarray:
        """Return the place (n,) of the class at the end of the way down."""
        both, n = np.hstack([self.probabilities(p), p]), self.names.size
        at = np.zeros(len(p), dtype=np.intp)
        for node, options in self._options:
            rows = np.flatnonzero(at == node)
            at[rows] = options[np.argmax(both[rows][:, options], axis=1)]
        return at - n

    def onnx(self, outputs: Value, calibration: Calibration) -> Value:
        n, k = self.names.size, len(self._paths)
        both = calibration.onnx(outputs) @ np.hstack([self.members.T, np.eye(k)])
        is_at = {0: both.take(0, 1) > -1.0}
        for node, options in self._options:
            place = both.take(options, 1).place_of_largest()
            for i, option in enumerate(options.tolist()):
                is_at[option] = is_at[node].graph.node("And", is_at[node], place.equals(i))
        ends = [is_at[n + j].cast(np.int64) * j for j in range(k)]
        return sum(ends[1:], start=ends[0])

    def unlikeness(self, logs: np.ndarray) -> np.ndarray:
        """Return the probability of the first node on the way down that a class is not below, 0 for none."""
        p = np.exp(logs)
        of_nodes, answers = self.probabilities(p), self.best(p)
        out = np.zeros(p.shape)
        for answer in np.unique(answers).tolist():
            rows, on_way = np.flatnonzero(answers == answer), self.members[:, answer]
            lacks = ~self.members[on_way]  # (nodes on the way, k); parents first, of probabilities that fall
            first = np.where(lacks.any(axis=0), lacks.argmax(axis=0), -1)
            values = np.column_stack([of_nodes[np.ix_(rows, np.flatnonzero(on_way))], np.zeros(rows.size)])
            out[rows] = values[:, first]
        return out

    def closed(self, sets: np.ndarray) -> np.ndarray:
        """Return all classes of the deepest node that holds those of each set; none of an empty one."""
        return np.asarray(self.members[self._deepest(sets)] & sets.any(axis=1, keepdims=True))

    def nodes_of(self, sets: np.ndarray) -> np.ndarray:
        """Return the name (n,) of the deepest node that holds each set (n, k); the root for an empty one."""
        return np.asarray(self.names[self._deepest(sets)])

    def _deepest(self, sets: np.ndarray) -> np.ndarray:
        size = sets.sum(axis=1, keepdims=True)
        holds = (sets.astype(np.float64) @ self.members.T == size) & (size > 0)
        return np.argmax(np.where(holds, [len(way) for way in self._ways], 0), axis=1)

    def scored(self, scoring: str, confusion: np.ndarray) -> float:
        """Return minus the mean number of edges between truth and answer; NaN without rows."""
        return -mean_over(confusion, self.distances)

    def measures(self, confusion: np.ndarray) -> list[Measure]:
        """Return the mean distance in the tree, and the accuracy on each level above the classes."""
        distance = -self.scored(self.scorers[0], confusion)
        found = [Measure("tree distance", distance, f"{distance:.3g}", "edges from the truth in the tree, on average")]
        deepest = max(len(path) for path in self._paths) - 1
        for level in range(1, deepest):
            cut = np.unique([path[: level + 1][-1] for path in self._paths], return_inverse=True)[1]
            share = mean_over(confusion, cut[:, None] == cut)
            about = f"rows below the right one of {cut.max() + 1} nodes"
            found.append(Measure(f"level {level}", share, f"{100 * share:.1f} %", about))
        return found


def tree_of_file(path: str | Path) -> dict[str, str]:
    """Return the parent of each child in a text file of lines "child<TAB>parent"; empty lines and # are left out.

    Raises DataError, naming the line, for one that is no pair, and for a child that comes twice.
    """
    lines: Iterable[str] = Path(path).read_text(encoding="utf-8-sig").splitlines()
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        child, *others = [part.strip() for part in line.split("\t")]
        if len(others) != 1 or not child or not others[0]:
            raise DataError(
                f"{path}, line {number}: {line[:60]!r}. Expected a child and its parent with a tab between."
            )
        if found.get(child, others[0]) != others[0]:
            raise DataError(
                f"{path}, line {number}: {child!r} is below {others[0]!r}, and below {found[child]!r} in an earlier "
                "line. A node of a tree has one parent: keep one of the lines."
            )
        found[child] = others[0]
    return found


register(LabelTree)
