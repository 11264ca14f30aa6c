"""Writes the full-text index of an experiment: posting items and the dictionary of words."""
