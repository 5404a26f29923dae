"""Parts of `same_bits.py`: two checkouts, what they run, and the comparison of what came out."""
