"""The ``chimap`` command line: one file per command, each a thin layer over the public API of the package.

``main`` lists the commands and turns errors into one line and an exit code (``messages``). Each option is declared
once. An option of a single command is a parameter of it, described in its docstring; ``options`` has those of several
commands. Options that belong together are the fields of a dataclass, called a bundle, which a command takes as one
parameter: the roles of the columns (``options.TableOptions``), the settings of a fit (``fit_settings``), images
(``image_rows``). Defaults, and the names that the help lists, are those of the package (``declared``).

``data_rows`` opens data and holds rows out, ``training`` fits on a file, ``predictions`` writes files of predictions,
``describe`` says what a file holds, ``messages`` says what went wrong, and ``show`` prints.

Nothing imports NumPy, numba or scikit-learn before a command runs, so that ``--help`` answers at once and ``machine``
can choose the BLAS kernels first. A new command needs one file and one line in ``main``.
"""
