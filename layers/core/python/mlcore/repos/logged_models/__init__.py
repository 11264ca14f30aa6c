"""Logged models and their points."""
