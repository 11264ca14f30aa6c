"""Reads and writes the items of registered models and of their versions."""
