"""What bertcli wrote, and how it proves that: only what is proven is ever replaced or deleted."""
