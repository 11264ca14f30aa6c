"""Writes the full-text index of an experiment: posting items (which say that an entity's field has
a word or value) and the dictionary of words and values."""
