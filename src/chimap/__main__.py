"""``python -m chimap`` is the command line."""

from chimap.cli.main import run

if __name__ == "__main__":
    run()
