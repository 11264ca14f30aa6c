"""The commands ``verify`` and ``reindex``: compare an experiment's derived items with their
sources, and repair them."""
