"""Runs: the run item, what hangs on it, its history, and how runs are found."""
