"""Permanent deletion of experiments, runs and models with their items and files, and moves between
workspaces."""
