"""Translates the span attributes of other instrumentations to MLflow's attributes."""
