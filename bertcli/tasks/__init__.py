"""What a model is trained for: batches, loss terms and scores, behind one contract."""
