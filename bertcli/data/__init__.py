"""The token store -> batches: order, sentence pairs, masks. Numbers drawn, never stored."""
