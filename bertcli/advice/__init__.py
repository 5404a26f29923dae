"""What to do before a run: a first config, faults of the data, time and memory, this machine's speed."""
