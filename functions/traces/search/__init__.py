"""Searches traces, computes metrics over them, and correlates filters."""
