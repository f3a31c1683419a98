"""Explicit features whose dot product is or approximates a kernel: maps, random features, landmarks and blocks."""
