"""The objectives of pretraining on text: masked words, pairs, replaced words, a teacher's answers."""
