"""Files -> documents -> sentences -> a token store, built once, opened at once. No torch here."""
