"""The sections of pages of evaluations and explanations: a file each, with its figure and table."""
