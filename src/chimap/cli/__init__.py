"""The command line, ``chimap``: one file per command, each a thin layer over what the package exports.

The way through the folder: ``main`` lists the commands and turns errors into one line and an exit code
(``_errors``); ``_options`` holds what commands share, ``_fit_options`` and ``_image_options`` what those that fit and
those that read images do; ``_rows`` opens data and says which rows of it are meant;
``_training`` fits on a file; ``_score`` predicts and measures; ``_show`` prints. Nothing imports NumPy, numba or
scikit-learn before a command runs: ``--help`` answers at once, and ``_blas`` can choose the BLAS kernels first.
A new command is one file and one line in ``main``.
"""
