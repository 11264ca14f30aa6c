"""Converts entities to JSON (MLflow's, for entities that MLflow has), for all functions that return
them. A function is named after the entity whose JSON it returns.
"""
