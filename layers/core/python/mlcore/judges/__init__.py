"""Judges: what they are shown and asked, and how their answers are read; keeps nothing."""
