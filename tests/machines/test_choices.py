"""Every combination of settings and rows gets the machine that the table says."""

from .choices import FILE, lines


def test_each_combination_gets_its_machine():
    assert lines() == FILE.read_text().splitlines()
