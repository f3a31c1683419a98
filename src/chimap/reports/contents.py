"""The sections of each page, in their order: the address of a function of its value that returns a section, or None."""

from __future__ import annotations

_RETRAINED = ("chimap.reports.sections.splits:section", "chimap.reports.sections.studies:section")
_INSIGHT = ("chimap.reports.sections.insight:more_rows", "chimap.reports.sections.insight:top_bins")
_OF_THE_FIT = (
    "chimap.reports.sections.covariates:section",
    "chimap.reports.sections.selection:strength",
    "chimap.reports.sections.stages:section",
    "chimap.reports.sections.selection:components",
)

CONTENTS: dict[str, tuple[str, ...]] = {
    "evaluation of classes": (
        "chimap.reports.sections.classes:headline",
        "chimap.reports.sections.unassigned:section",
        *_RETRAINED,
        "chimap.reports.sections.confusion:section",
        "chimap.reports.sections.calibration:two_classes",
        *_INSIGHT,
        "chimap.reports.sections.insight:mistakes",
        "chimap.reports.sections.calibration:section",
        "chimap.reports.sections.ranking:section",
        "chimap.reports.sections.classes:section",
        *_OF_THE_FIT,
    ),
    "evaluation of tasks": (
        "chimap.reports.sections.tasks:headline",
        *_RETRAINED,
        "chimap.reports.sections.tasks:section",
        *_INSIGHT,
        *_OF_THE_FIT,
    ),
    "evaluation of numbers": (
        "chimap.reports.sections.numbers:headline",
        *_RETRAINED,
        "chimap.reports.sections.numbers:section",
        *_INSIGHT,
        "chimap.reports.sections.insight:largest_errors",
        *_OF_THE_FIT,
    ),
    "explanation": (
        "chimap.reports.sections.importance:section",
        "chimap.reports.sections.stability:section",
        "chimap.reports.sections.covariates:section",
        "chimap.reports.sections.effects:section",
        "chimap.reports.sections.explained_rows:section",
    ),
    "comparison": (
        "chimap.reports.comparison:advice",
        "chimap.reports.sections.behind:section",
        "chimap.reports.comparison:candidates",
        "chimap.reports.comparison:by_rows",
    ),
    "audit": (
        "chimap.diagnostics.audit_sections:shortcut_table",
        "chimap.diagnostics.audit_sections:labels",
        "chimap.diagnostics.audit_sections:deciding",
        "chimap.diagnostics.audit_sections:copies",
        "chimap.diagnostics.audit_sections:groups",
    ),
    "suggestion": ("chimap.diagnostics.suggestion:choices",),
    "learned kernel": (
        "chimap.reports.kernel:summary",
        "chimap.reports.kernel:widths",
        "chimap.reports.kernel:learning",
        "chimap.reports.kernel:channels",
        "chimap.reports.kernel:path",
        "chimap.reports.kernel:strength",
        "chimap.reports.kernel:inverse_widths",
        "chimap.reports.kernel:weights",
    ),
    "selection": (
        "chimap.reports.selection:components_by_folds",
        "chimap.reports.selection:error_along_path",
        "chimap.reports.selection:used_along_path",
        "chimap.reports.selection:optimality_along_path",
    ),
    "ordination": ("chimap.diagnostics.ordination:picture", "chimap.diagnostics.ordination:axes_and_bins"),
    "permanova": (
        "chimap.diagnostics.permanova:terms",
        "chimap.diagnostics.permanova:dispersion",
        "chimap.diagnostics.permanova:difference",
    ),
    "depth": ("chimap.diagnostics.depth:headline", "chimap.diagnostics.depth:curve", "chimap.diagnostics.depth:rows"),
}
