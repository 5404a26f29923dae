"""Text -> token ids: vocabularies are read, trained, extended and saved. No torch here."""
