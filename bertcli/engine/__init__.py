"""The training loop: its steps, optimizer, schedule and reports."""
