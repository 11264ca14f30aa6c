"""Entities of evaluation: datasets, scorers, judges, label schemas, review queues, issues and
jobs."""
