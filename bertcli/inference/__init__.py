"""A model folder and text -> predictions, streamed."""
