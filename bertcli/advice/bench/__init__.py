"""Measurements of this machine's speed, and estimates of a run's time and memory before it begins."""
