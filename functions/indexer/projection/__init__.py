"""Keeps derived items (child, index and full-text items) equal to their source items."""
