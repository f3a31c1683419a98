"""Export models to formats that do not need chimap: ONNX graphs, tables of the bins' functions, and weights."""

from chimap.export.files import FORMATS, Exported, export_model

__all__ = ["FORMATS", "Exported", "export_model"]
