"""The token store -> batches: order, sentence pairs, masks. Random numbers are computed, never stored."""
