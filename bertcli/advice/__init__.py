"""Advice before a run: a first config, a better one, faults of the data, time, memory, a machine's speed."""
