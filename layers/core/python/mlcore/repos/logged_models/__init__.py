"""Logged models and their metric points."""
