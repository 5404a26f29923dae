"""Files -> documents -> sentences -> a token store, which is built once and opens quickly, without torch."""
