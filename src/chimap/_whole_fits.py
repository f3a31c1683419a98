"""Fits that change an estimator wholly or not at all: one that fails leaves the fitted model as it was."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_FITS = ("fit", "fit_source", "fit_codes", "partial_fit", "_partial_fit")


class WholeFits:
    """A base of estimators: where one of the methods ``_FITS`` raises, all attributes are what they were before.

    The methods may set attributes in any order. What an attribute holds they do not change before they have checked the
    rows.
    """

    def __init_subclass__(cls, **kwargs: object) -> None:
        for name in _FITS:
            if callable(method := vars(cls).get(name)):
                setattr(cls, name, _whole(method))
        super().__init_subclass__(**kwargs)


def _whole(method: Callable[Concatenate[object, P], R]) -> Callable[Concatenate[object, P], R]:
    @wraps(method)
    def fit(self: object, *args: P.args, **kwargs: P.kwargs) -> R:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return fit
