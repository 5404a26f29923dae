"""A run's folder and what it holds of the run: checkpoints, metrics, whose each file is."""
