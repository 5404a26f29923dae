"""Speed and size: of this machine, measured; of a run, before it begins."""
