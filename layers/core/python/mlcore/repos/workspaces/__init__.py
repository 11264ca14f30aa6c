"""Workspaces, and what moves between them."""
