"""The ``chimap`` command line: one file per command, each a thin layer over the public API of the package.

``main`` lists the commands and turns errors into one line and an exit code (``support.errors``). Each option is
declared once. An option of a single command is declared in that command's signature. Options that belong together are
the fields of a dataclass, called a bundle, which a command takes as one parameter (``support.bundles``):

- ``support.table``: the roles of the columns of DATA
- ``support.fit_settings``: how to fit
- ``support.kernel_settings``: how to learn a kernel
- ``support.compare_settings``: what to compare
- ``support.image_options``: how to describe images

``support.options`` and ``support.fit_options`` declare the options that several bundles share. ``support.data_rows``
opens data, ``support.held_out_rows`` selects rows, ``support.training`` fits on a file, ``support.score`` predicts and
scores, and ``support.show`` prints.

Nothing imports NumPy, numba or scikit-learn before a command runs, so that ``--help`` answers at once and
``support.blas`` can choose the BLAS kernels first. A new command needs one file and one line in ``main``.
"""
