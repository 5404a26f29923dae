"""Predictions and truth -> scores, by the rules of the field's own scorers. Pure functions."""
