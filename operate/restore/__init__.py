"""``python -m operate.restore``: a table as it was, its files as they were, and a stack that adopts
them."""
