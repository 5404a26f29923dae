"""Proof of which files bertcli wrote: it never replaces or deletes any others."""
