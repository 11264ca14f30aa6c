"""Runs: the run item and its writes (``core``), metric history, metric ranks, and search."""
