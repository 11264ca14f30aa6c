"""MLflow's entities as plain immutable values, a file for each noun, without storage or wire.

Field names and meanings are those of MLflow's ``mlflow.entities``; times are milliseconds since the
epoch.
"""
