"""The command `bertcli check-data`: the content of a corpus or labeled files, and what to mend in it."""
