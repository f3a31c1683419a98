"""``python -m chimap`` is the command line."""

import sys

from chimap.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
