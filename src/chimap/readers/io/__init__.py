"""The bytes behind a path or an address: files, archives, compression, reading ahead."""
