"""The ``chimap`` command line: one file per command, each a thin layer over the public API of the package.

``commands`` lists the commands, and ``main`` turns errors into one line and an exit code (``messages``). ``parser``
makes commands of functions. An option is a parameter of its command, described in its docstring, or in
``options.SHARED`` if several commands have it. Options that belong together are the fields of a dataclass, called a
bundle, which a command takes as one parameter: the roles of the columns (``options.TableOptions``), the settings of a
fit (``fit_settings``), images (``image_rows``). A test compares defaults, and names that the help lists, with those of
the package.

``data_rows`` opens data and holds rows out, ``training`` fits on a file, ``predictions`` writes files of predictions,
``describe`` says what a file holds, ``messages`` says what went wrong, and ``show`` prints.

Nothing imports NumPy, numba or scikit-learn before a command runs, so that ``--help`` answers at once and ``machine``
can choose the BLAS kernels first. A new command needs one file and its name in ``commands``.
"""
