"""Explicit features whose dot product is a kernel, or close to it: maps, random features, landmarks, and blocks of
them.
"""
