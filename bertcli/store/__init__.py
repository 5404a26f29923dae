"""The token store: a corpus as memory-mapped ids, built once, opened at once."""
