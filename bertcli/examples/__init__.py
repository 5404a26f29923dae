"""Labeled files -> examples: tables, CoNLL columns, SQuAD JSON. Text only; no torch."""
