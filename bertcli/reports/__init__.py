"""A run folder -> one HTML page that needs nothing but itself: no network, no second file."""
