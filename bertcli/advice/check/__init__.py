"""A corpus or labeled files -> what is in them, and what to mend before a run reads them."""
