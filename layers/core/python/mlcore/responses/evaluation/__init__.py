"""Converts entities of evaluation (datasets, scorers, jobs, reviews, issues) to MLflow's JSON."""
