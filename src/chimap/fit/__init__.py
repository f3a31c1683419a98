"""A fit from beginning to end: settings, plan of memory, passes, solution, checkpoint."""

from chimap.fit.smooth import HeldOutLosses
from chimap.model_files import register

register(HeldOutLosses)
