"""Spans in MLflow's stored form, and the data about a trace that is derived from them, independent
of how they arrive."""
