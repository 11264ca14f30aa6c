"""Builds MLflow's JSON of entities, for all functions that return them."""
