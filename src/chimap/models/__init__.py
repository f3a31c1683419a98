"""What a fit returns, and what can be asked of it: outputs, answers, explanations."""

from __future__ import annotations
