"""Random splits with the same number of training rows in each class, the usual protocol for image data sets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike, RandomState, Rows
from chimap._validation import DataError, check_positive


class PerClassSplits:
    """Random splits that train on ``n_train`` rows of each class and test on up to ``n_test`` of the others.

    It is a splitter in the sense of scikit-learn: any argument ``cv`` accepts it.

    Parameters
    ----------
    n_train : int
        Rows of each class to train on. Every class must have more rows than that.
    n_test : int, default=None
        Rows of each class to test on, or all that are left if they are fewer. None takes all that are left.
    n_splits : int, default=5
        Number of splits.
    random_state : int or RandomState, default=None
        Seed of the draws.

    Examples
    --------
    >>> y = np.repeat(["cat", "dog"], [3, 4])
    >>> train, test = next(PerClassSplits(2, n_splits=1, random_state=0).split(y, y))
    >>> y[train].tolist(), y[test].tolist()
    (['cat', 'cat', 'dog', 'dog'], ['cat', 'dog', 'dog'])
    """

    def __init__(
        self, n_train: int, n_test: int | None = None, *, n_splits: int = 5, random_state: RandomState = None
    ) -> None:
        self.n_train = n_train
        self.n_test = n_test
        self.n_splits = n_splits
        self.random_state = random_state

    def split(
        self, X: object, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the sorted indices of the training rows and the test rows of each split.

        Parameters
        ----------
        X : object
            Ignored.
        y : array of shape (n,), default=None
            Label of each row; required.
        groups : array, default=None
            Ignored.

        Yields
        ------
        train, test : ndarray of int

        Raises
        ------
        ValueError
            If y is None.
        DataError
            If a class has ``n_train`` rows or fewer; the message names the class.
        """
        check_positive(self.n_train, "n_train", integer=True)
        if self.n_test is not None:
            check_positive(self.n_test, "n_test", integer=True)
        if y is None:
            raise InputError("y must hold the label of each row; got None.")
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        counts = np.bincount(codes)
        small = np.flatnonzero(counts <= self.n_train)
        if small.size:
            raise DataError(
                Message(
                    "class {!s} has {} rows, too few for {n_train=!s} and one to test on ({} of {} classes are too "
                    "small). Train on fewer rows of each class, or leave the small classes out.",
                    classes[small[0]],
                    counts[small[0]],
                    self.n_train,
                    small.size,
                    classes.size,
                )
            )
        from sklearn.utils import check_random_state  # slow to import, and rarely needed

        random = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            train, test = [], []
            for k in range(classes.size):
                rows = random.permutation(np.flatnonzero(codes == k))
                train.append(rows[: self.n_train])
                test.append(rows[self.n_train :][: self.n_test])
            yield np.sort(np.concatenate(train)), np.sort(np.concatenate(test))

    def get_n_splits(
        self, X: Rows | None = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object, default=None
            Ignored.
        """
        return self.n_splits
