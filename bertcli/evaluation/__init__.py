"""A model and held-out text or labeled files -> scores, and what they say."""
