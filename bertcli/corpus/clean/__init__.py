"""A corpus without copies and noise: the rules of `bertcli clean`, and its work in stages."""
