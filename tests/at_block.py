"""Something that happens in the middle of a sweep over blocks."""

from __future__ import annotations

from collections.abc import Callable

from chimap._progress import Progress


class AtBlock(Progress):
    """Calls ``act`` when so many blocks are done; ``left`` falls below 0 if others follow."""

    def __init__(self, n_blocks: int, act: Callable[[], None]):
        self.left, self._act, self._name = n_blocks, act, ""

    def stage(self, name, total, unit="rows"):
        self._name = name

    def advance(self, amount=1):
        if self._name == "blocks":
            self.left -= 1
            if self.left == 0:
                self._act()


def press_ctrl_c() -> None:
    """Raise what Ctrl-C does."""
    raise KeyboardInterrupt
