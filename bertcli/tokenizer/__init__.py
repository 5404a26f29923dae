"""Text -> token ids. Vocabularies are read, trained, extended, transplanted and saved here, without torch."""
