"""The kinds of files and objects that hold rows, one module each."""
