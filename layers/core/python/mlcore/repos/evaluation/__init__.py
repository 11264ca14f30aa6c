"""Evaluation: datasets, scorers, label schemas, review queues, issues and jobs."""
