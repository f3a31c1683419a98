"""The compiled inner loops, all of them, and nothing else; a file a folder that they serve.

Plain arithmetic on C-contiguous arrays: no checks, no allocation the size of the output.
``error_model="numpy"`` and contiguous row slices let the compiler vectorise; without them every division
carries a check and the loops run ten times slower. Results of compilation are cached on disk.

Loops are compiled without threads of their own and release the interpreter lock; ``_threads.over_rows`` runs them on
slices of rows. (numba's parallel loops were tried: their worker threads spin after each loop and take the
cores from BLAS, which made the pass a third slower, and one of their layers aborts when two Python threads meet.)

Loops, and with them numba, are imported when the first of them is used: an estimator is imported in less time without.
"""

from typing import TYPE_CHECKING

from chimap._loops.numbers import CHI2 as CHI2
from chimap._loops.numbers import DISTANCE as DISTANCE
from chimap._loops.numbers import HELLINGER as HELLINGER
from chimap._loops.numbers import INTERSECTION as INTERSECTION
from chimap._loops.numbers import JENSEN_SHANNON as JENSEN_SHANNON
from chimap._loops.numbers import LOG_SECH as LOG_SECH

if TYPE_CHECKING:
    from chimap._loops.every import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        """A loop; all of them are there from the first use of one on (PEP 562)."""
        if name.startswith("__"):
            raise AttributeError(name)
        import chimap._loops.every as every

        globals().update({word: getattr(every, word) for word in every.__all__})
        if name not in every.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals()[name]
