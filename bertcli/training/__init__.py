"""A config -> a finished run: pretraining, fine-tuning, and what is done around them."""
