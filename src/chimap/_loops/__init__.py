"""All compiled inner loops of the package, and nothing else: a file for each folder that they serve.

Loops do plain arithmetic on C-contiguous arrays: no checks, no allocation the size of the output.
``error_model="numpy"`` and contiguous row slices let the compiler vectorise; without them every division carries a
check and the loops run ten times slower. Results of compilation are cached on disk.

Loops are compiled without threads of their own and release the interpreter lock; ``_threads.over_rows`` runs them on
slices of rows. (numba's parallel loops were tried. Their worker threads spin after each loop and take the cores from
BLAS, which made the pass a third slower, and one of their threading layers aborts when two Python threads meet.)

The loops, and numba with them, are imported when the first of them is used, so that estimators are imported faster.
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
        """Return a loop; the first use of any loop imports all of them (PEP 562)."""
        if name.startswith("__"):
            raise AttributeError(name)
        import chimap._loops.every as every

        globals().update({loop: value for loop, value in vars(every).items() if not loop.startswith("_")})
        if name not in globals():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals()[name]
