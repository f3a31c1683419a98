"""Results that a fitted model keeps from one prediction to the next."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar, cast

Result = TypeVar("Result")


class KeptResults:
    """Results by name, each kept as long as the objects that it is made of are the same.

    Copies and pickles of a model are without them: what is on a device stays there.
    """

    def __init__(self) -> None:
        self._results: dict[str, tuple[list[Any], Any]] = {}

    def __reduce__(self) -> tuple[type[KeptResults], tuple[()]]:
        return KeptResults, ()

    def get(self, name: str, made_of: list[Any], make: Callable[[], Result]) -> Result:
        """Return the result of ``make``, which is called if there is none or one made of other objects."""
        sources, result = self._results.get(name, (None, None))
        if sources is None or not all(map(operator.is_, sources, made_of)):
            self._results.pop(name, None)  # frees its memory for the next
            result = make()
            self._results[name] = made_of, result
        return cast("Result", result)
