"""Training and evaluation: optimiser, schedule, loop, checkpoints, reports."""
