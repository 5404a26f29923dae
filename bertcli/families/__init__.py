"""The facts about each family of models, only data: one file for each family."""
