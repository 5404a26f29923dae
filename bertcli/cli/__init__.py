"""One verb a file: its options, then the program from top to bottom."""
