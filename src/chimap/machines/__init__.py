"""Machines: how the rows at hand are solved, what that costs, and which one is taken."""
