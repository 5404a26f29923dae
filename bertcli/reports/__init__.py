"""Reports: run folders -> one HTML page, which needs no network and no second file."""
