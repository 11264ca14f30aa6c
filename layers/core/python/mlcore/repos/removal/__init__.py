"""Permanent deletion of items with their files, and moves between workspaces."""
