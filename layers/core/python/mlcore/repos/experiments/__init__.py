"""Experiments, their names and ids."""
