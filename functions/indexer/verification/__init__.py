"""``verify`` and ``reindex``: compares an experiment's derived items with their sources and repairs
them."""
