"""Token ids -> batches: the token store, its order, sentence pairs and masks."""
