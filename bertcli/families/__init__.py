"""What is particular to each family of models, as data alone: a file a family."""
