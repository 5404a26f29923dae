"""A model folder -> the same model for other runtimes, proven equal."""
