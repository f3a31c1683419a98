"""Questions to a fitted model and to rows: may its score be trusted, are there enough counts, do groups differ.

Each is a file with a frozen value that answers it. The value is a page of ``reports`` (``as_dict``, HTML, lines for a
terminal), and its sections are an entry of ``reports.contents.CONTENTS``. A command of ``cli`` prints it. Nothing is
learned twice: a question asks the model, its held-out outputs and the factor of its rows.
"""
