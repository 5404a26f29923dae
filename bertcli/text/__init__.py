"""Raw text -> documents -> sentences -> token ids. No torch here."""
