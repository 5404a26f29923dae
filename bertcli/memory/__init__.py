"""Memory: what training needs, by calculation; what is free; and what a process has used."""
