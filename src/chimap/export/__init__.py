"""Models in forms that need no chimap: ONNX graphs, tables of the bins, weights."""

from chimap.export.files import FORMATS, Exported, export_model

__all__ = ["FORMATS", "Exported", "export_model"]
