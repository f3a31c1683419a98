from pathlib import Path

STYLE = Path(__file__).resolve().parents[2] / "docs" / "assets" / "transparent.mplstyle"
"""Of pictures of the site, which are seen on light and on dark pages."""
