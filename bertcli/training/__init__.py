"""Training runs: pretraining, fine-tuning, and the work around them."""
