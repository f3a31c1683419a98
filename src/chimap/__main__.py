"""Run the command line by ``python -m chimap``."""

from chimap.cli.main import run

if __name__ == "__main__":
    run()
