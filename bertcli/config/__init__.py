"""A run's configuration: YAML and `--set` in, one frozen, checked `PretrainConfig` out.

The limits of numbers in configs and in options stand here, so that `bertcli --help` does not import pydantic.
"""

MOST = 10**9
"""Largest number of steps and the like: far more than anyone waits for, and products of two still fit into 64
bits."""
MOST_ROWS = MOST_TOKENS = 2**24
"""Most rows of a step, tokens of a row, or entries of a vocabulary: larger tables would fill any memory."""
MOST_FOLDERS = 500
"""Most folders inside each other: Python makes and removes them by recursion, within its limit of 1,000
calls."""
