"""Packs metric history, and completes log requests that were interrupted."""
