"""Advice before a run: a first config, faults of the data, time and memory, the speed of this machine."""
