"""Hugging Face model folders <-> ours."""
