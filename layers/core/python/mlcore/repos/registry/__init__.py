"""Registered models and their versions."""
