"""Entities as plain immutable values, a file for each noun, without storage or wire format.

Entities that MLflow has, too, use the field names and meanings of ``mlflow.entities``. Times are
milliseconds since the epoch unless said otherwise.
"""
