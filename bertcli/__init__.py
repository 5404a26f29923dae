"""bertcli: from raw text to your own BERT and on to predictions."""
