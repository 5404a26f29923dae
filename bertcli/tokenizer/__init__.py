"""Text -> token ids. Vocabularies are read, trained, extended and saved here, without torch."""
