"""A corpus without copies, noise and what is not text: the rules of `bertcli clean`, and its work in stages."""
