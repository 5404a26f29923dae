"""What a model learns from text alone: masked words, pairs, replaced words, a teacher's answers."""
