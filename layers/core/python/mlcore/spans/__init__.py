"""Spans in MLflow's stored form, and the data about a trace that is derived from its spans,
independent of the order in which they arrive.
"""
