"""Kinds of files and objects that hold rows, a file each."""
