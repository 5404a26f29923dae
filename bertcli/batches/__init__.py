"""Batches from the token store: order, sentence pairs, masks. Random numbers are computed, never stored."""
