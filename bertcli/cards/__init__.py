"""A finished run -> the README.md of its model folder."""
