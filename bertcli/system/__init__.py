"""The machine below: errors, files, the terminal, processes, memory, devices."""
