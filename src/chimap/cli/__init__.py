"""The command line, ``chimap``: one file per command, each a thin layer over what the package exports.

The way through the folder: ``main`` lists the commands and turns errors into one line and an exit code
(``support.errors``). An option is declared once: one that a single command has in its signature; those that belong
together as fields of a dataclass, a bundle, which commands take whole (``support.bundles``): ``support.table`` says
what the columns of DATA are, ``support.fit_settings``, ``support.kernel_settings`` and ``support.compare_settings`` how
to fit, to learn a kernel and to compare, ``support.image_options`` how to describe images. What bundles share is in
``support.options`` and ``support.fit_options``. ``support.data_rows`` opens data, ``support.held_out_rows`` says which
rows of it are meant, ``support.training`` fits on a file, ``support.score`` predicts and measures, ``support.show``
prints. Nothing imports NumPy, numba or scikit-learn before a command runs: ``--help`` answers at once, and
``support.blas`` can choose the BLAS kernels first. A new command is one file and one line in ``main``.
"""
