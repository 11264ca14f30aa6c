"""Converts entities to MLflow's JSON, for all functions that return them. A function is named after
the entity whose JSON it returns.
"""
