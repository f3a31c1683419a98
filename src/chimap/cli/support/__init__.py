"""What several commands share: options, messages, tables."""
