"""Code shared by several commands: options, messages, tables."""
